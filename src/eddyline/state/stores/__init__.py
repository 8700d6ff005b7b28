"""Columns of any Arrow type, laid out as plain columns: append arrays, gather rows, forget both ends.

A type is taken apart as Arrow does it: fixed-width words (fixed.py), a heap of bytes (heap.py), children (nested.py),
codes into a dictionary (dictionary.py); any.py finds the store for a type.
"""
