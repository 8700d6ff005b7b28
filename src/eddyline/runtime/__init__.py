"""The in-process runner: sources, sinks, and the loop between them."""
