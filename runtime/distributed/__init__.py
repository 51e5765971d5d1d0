"""Gradients of sums over rows whose data lie in parts, on a cluster."""
