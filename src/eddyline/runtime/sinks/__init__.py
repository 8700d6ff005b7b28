"""Where rows go: files, the terminal, Python; one small interface for all of them."""
