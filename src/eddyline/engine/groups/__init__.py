"""Results: rows of the SELECT list, and groups of aggregates until their boundary."""
