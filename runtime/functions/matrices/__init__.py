"""Products, equations and factors of matrices."""
