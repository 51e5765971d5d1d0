"""How a graph becomes fast code: differentiate, simplify, partition, fuse, emit, compile."""
