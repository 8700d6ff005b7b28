"""Lookup tables: which keys are asked, pending, answered, evicted; and how answers meet the rows that wait."""
