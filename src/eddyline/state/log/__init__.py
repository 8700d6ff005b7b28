"""Durable files: a store that writes files whole or not at all, checksums, and segments of rows."""
