"""Routing policies: each remakes the decision of an entry of the routing arrays, in its own way."""
