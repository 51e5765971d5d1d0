"""Making tensors: from data, constants, random numbers, and from each other."""
