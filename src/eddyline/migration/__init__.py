"""Migration: the change of a slot's plan while the slot runs."""
