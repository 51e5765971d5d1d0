"""Derivatives of graphs: the reverse sweep, the reverse of loops, and what forward saves for backward."""
