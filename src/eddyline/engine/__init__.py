"""The engine of a slot: record batches of tagged rows in, results and statistics out. No I/O, no threads, no own
clock."""
