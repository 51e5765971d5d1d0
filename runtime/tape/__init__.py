"""Define-by-run autograd: recording operators, writes, loops and choices on the tape."""
