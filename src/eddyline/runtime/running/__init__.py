"""A job from its script to its end: its sources and sinks, the reading loop between them, its checkpoint."""
