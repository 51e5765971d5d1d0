"""Functions from functions: `grad`, `vjp`, `jvp`, `vmap`, `jacobian`, `hessian`."""
