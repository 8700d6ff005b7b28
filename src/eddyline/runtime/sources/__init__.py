"""Where rows come from: files, Python, the generator; one small interface for all of them."""
