"""Balance: which slot has which partition group, and when groups move to another slot."""
