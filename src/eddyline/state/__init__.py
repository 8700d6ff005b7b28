"""What a slot keeps: append-only columns, indexes over them, and the SteMs made of both.

Everything lives in an Arena, sparse files that are memory-mapped. Nothing in a column is ever overwritten or moved, so
undoing a batch is lowering counts and popping indexes, and a row number is valid from the build of the row to its
release. What is known beside the files is a few numbers (`saved`, `restore`): with them another process goes on.
"""
