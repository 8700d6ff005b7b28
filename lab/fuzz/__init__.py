"""Random queries, expressions, files and schedules, compared with an oracle."""
