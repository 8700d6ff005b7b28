"""The sweep: missing results of groups on disk, made from the rows of the log."""
