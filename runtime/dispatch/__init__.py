"""From a call to the program that runs: variants, paths, shared programs."""
