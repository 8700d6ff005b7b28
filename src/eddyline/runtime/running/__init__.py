"""A job from its script to its end: what it reads and writes, the loop between them, what makes it durable."""
