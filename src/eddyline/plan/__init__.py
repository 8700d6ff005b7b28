"""Plans of a query: the join graph, the steps that a packet may take next, and what each SteM must keep."""
