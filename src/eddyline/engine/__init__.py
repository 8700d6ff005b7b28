"""One slot: record batches of tagged rows in, results and statistics out. No I/O, no threads, no clock of its own."""
