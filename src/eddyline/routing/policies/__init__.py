"""Routing policies: each decides in its own way which step an entry of the routing arrays takes."""
