"""Planted faults: what each breaks, and the test that must notice."""
