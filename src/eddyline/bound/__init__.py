"""The bound query: typed expressions and their functions, evaluated over Arrow arrays."""
