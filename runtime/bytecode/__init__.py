"""What the instructions of the user's code tell: names, writes, and what a line was calling."""
