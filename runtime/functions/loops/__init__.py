"""Loops and choices as functions, and what they keep for their reversal."""
