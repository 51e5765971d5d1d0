"""A graph as loops over elements: what is stored, in which nest, and in whose memory."""
