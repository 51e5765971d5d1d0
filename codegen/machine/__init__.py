"""Text as machine code: compiled, cached, called, in threads and memory of our own."""
