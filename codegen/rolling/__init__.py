"""Loops over steps: found in traces, reversed, and looked into."""
