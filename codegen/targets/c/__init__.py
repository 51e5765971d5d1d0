"""C11 of the loop IR: one serial file a program, which needs libm, and a CBLAS for products of matrices."""
