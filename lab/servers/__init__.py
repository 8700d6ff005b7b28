"""Real servers for tests, benchmarks and chaos, each on a port that nobody else has."""
