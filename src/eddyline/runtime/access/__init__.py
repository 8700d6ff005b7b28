"""Access modules: tables in databases and behind services, which are asked for the rows of some keys."""
