"""Running the user's function once, on tensors that stand for its arguments."""
