"""Derivatives of functions by repeated backward passes, under the names of torch.autograd.functional."""

from pullback.runtime.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
