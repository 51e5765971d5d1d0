"""torch.nn.functional's functions: layers, activations, normalisations, windows, losses."""
