"""What is wrong with a compiled function, and what takes its time."""
