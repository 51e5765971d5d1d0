"""What computing costs, and on which machine: the questions that passes ask before they choose loops."""
