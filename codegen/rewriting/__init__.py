"""Graph in, graph out: what a program means, said in a way that costs less."""
