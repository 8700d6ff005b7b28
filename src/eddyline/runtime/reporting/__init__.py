"""Reports on a run for users, while it runs and at its end."""
