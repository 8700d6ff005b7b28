"""Durable state: files that are written whole or not at all, segments of rows with checksums, and commits."""
