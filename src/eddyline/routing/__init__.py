"""The eddy: packets, the router that chooses their next step, and the loop that takes it."""
