"""The language: statements, windows and the syntax tree of the query, each with its place in the script."""
