"""Changing the plan of a slot while it runs."""
