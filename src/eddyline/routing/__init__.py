"""The eddy: packets, the router that chooses their next step, and the one loop that takes it."""
