"""What notebooks show: generated code beside the user's lines, pictures of loops, a cell's backward."""
