"""Sinks: files, the terminal, Python functions; one small interface for all of them."""
