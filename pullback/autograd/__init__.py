"""Gradients of recorded computations, functions with a backward of their own, and checks of gradients."""

from pullback.runtime.autograd.autograd import Variable, backward, grad
from pullback.runtime.autograd.custom_function import Function, once_differentiable
from pullback.runtime.autograd.gradcheck import gradcheck, gradgradcheck
from pullback.runtime.tape.anomaly import detect_anomaly, set_detect_anomaly
from pullback.runtime.values.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)

from . import forward_ad, function, functional, graph

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "once_differentiable",
    "set_detect_anomaly",
    "set_grad_enabled",
]
