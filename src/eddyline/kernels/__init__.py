"""Compiled loops over plain arrays. Each is one Numba function, cached on disk, with a NumPy twin in tests/kernels.

Row numbers are absolute (a row keeps its number for life) and arrays are indexed by them directly: see state/column.py.
Loops that produce matches stop when their output is full and return where to continue, so no step needs unbounded
memory.
"""
