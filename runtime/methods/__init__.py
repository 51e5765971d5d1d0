"""What completes the tensor's class: its methods, operators, copies, and Python's numbers."""
