"""Loops as the text of Python functions."""
