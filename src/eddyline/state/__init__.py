"""What a slot keeps: append-only columns, indexes over them, and the SteMs made of both.

Everything lives in an Arena, a sparse file that can be memory-mapped. Nothing is ever overwritten or moved, so
undoing a batch is lowering counts and popping indexes, and a row number is valid from the build of the row to its
release.
"""
