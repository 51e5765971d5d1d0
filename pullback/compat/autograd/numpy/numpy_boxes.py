"""What stands for arrays while they are differentiated: HIPS autograd's boxes, pullback's Tensors."""

from pullback.compat.autograd.insides import missing_of
from pullback.compat.autograd.tracer import Box

__all__ = ["ArrayBox"]


class ArrayBox(Box):
    """For annotations and `isinstance(x, ArrayBox)`: whether x stands for a value that is differentiated.

    Where pullback is in HIPS autograd's place, `type(x)` of such a value is this class, and `x._value` its
    array.
    """

    __module__ = "autograd.numpy.numpy_boxes"


__getattr__ = missing_of(__name__)
