"""The command line: the only part of Eddyline that prints."""
