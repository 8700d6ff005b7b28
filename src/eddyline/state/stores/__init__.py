"""Columns of any Arrow type, laid out as plain columns: append arrays, gather rows, forget both ends.

A type is divided as in Arrow: fixed-width words (fixed.py), a heap of bytes (heap.py), children (nested.py), codes into
a dictionary (dictionary.py); any.py makes the store for a type.
"""
