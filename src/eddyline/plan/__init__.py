"""How a query can be answered: what joins with what, which steps a packet may take next, what each SteM must keep."""
