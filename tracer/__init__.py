"""What a program is: specs, operators and their rules, the graph, tracing a function into it."""
