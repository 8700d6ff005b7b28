"""The state of a slot: append-only columns, indexes over them, and the SteMs made of both.

All state lives in an Arena: sparse files that are memory-mapped. A value in a column is never overwritten or moved. So
a batch is undone by lowering counts and popping indexes, and a row number is valid from the build of the row to its
release. Beside the files there are only a few numbers (`saved`, `restore`); with them another process can continue.
"""
