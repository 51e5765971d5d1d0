"""For tests of users' functions: gradients entry by entry, peaks of memory, strategies of hypothesis."""
