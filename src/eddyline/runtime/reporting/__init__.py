"""What a run tells people while it runs and when it has ended."""
