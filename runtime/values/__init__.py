"""What a tensor is, of which kind, and what Python and libraries may ask of it."""
