"""`pullback.autograd`: the backward pass's faces, custom functions, forward mode, checks."""
