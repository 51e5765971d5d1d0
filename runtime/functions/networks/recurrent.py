"""Steps of recurrent networks, as in torch: Hochreiter and Schmidhuber (1997), Cho et al. (2014)."""

from __future__ import annotations

from ...values.tensor import Tensor
from ..common import tensors
from ..declared import sigmoid, tanh
from ..matrices.contraction import linear
from ..shapes.joining import chunk
from .activation import relu

__all__ = ["gru_cell", "lstm_cell", "rnn_relu_cell", "rnn_tanh_cell"]

Bias = Tensor | None


def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Bias = None, b_hh: Bias = None
) -> Tensor:
    """tanh(input @ w_ih.T + b_ih + hx @ w_hh.T + b_hh).

    Example:
        >>> rnn_tanh_cell(tensor([[0.0]]), tensor([[0.0]]), tensor([[1.0]]), tensor([[1.0]]))
        tensor([[0.]])
    """
    return tanh(linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh))


def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Bias = None, b_hh: Bias = None
) -> Tensor:
    """relu(input @ w_ih.T + b_ih + hx @ w_hh.T + b_hh).

    Example:
        >>> rnn_relu_cell(tensor([[2.0]]), tensor([[1.0]]), tensor([[1.0]]), tensor([[1.0]]))
        tensor([[3.]])
    """
    return relu(linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh))


def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Bias = None, b_hh: Bias = None
) -> Tensor:
    """A gated recurrent unit: weights of the gates r, z and n one after the other.

    Example:
        >>> gru_cell(tensor([[0.0]]), tensor([[2.0]]), zeros(3, 1), zeros(3, 1))
        tensor([[1.]])
    """
    reset, update, new = chunk(linear(input, w_ih, b_ih), 3, -1)
    reset_h, update_h, new_h = chunk(linear(hx, w_hh, b_hh), 3, -1)
    kept = sigmoid(update + update_h)
    candidate = tanh(new + sigmoid(reset + reset_h) * new_h)
    return candidate + kept * (hx - candidate)


def lstm_cell(
    input: Tensor, hx: tuple[Tensor, Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Bias = None,
    b_hh: Bias = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Long short-term memory: weights of the gates i, f, g and o one after the other; (h, c) to (h, c).

    Example:
        >>> lstm_cell(tensor([[0.0]]), (tensor([[0.0]]), tensor([[2.0]])), zeros(4, 1), zeros(4, 1))[1]
        tensor([[1.]])
    """
    hidden, memory = tensors(hx, "lstm_cell", "hx")
    entry, forget, new, output = chunk(linear(input, w_ih, b_ih) + linear(hidden, w_hh, b_hh), 4, -1)
    memory = sigmoid(forget) * memory + sigmoid(entry) * tanh(new)
    return sigmoid(output) * tanh(memory), memory
