"""Sources: files, Redis streams, Python, the generator; one small interface for all of them."""
