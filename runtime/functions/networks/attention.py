"""Attention, under the names of torch.nn.functional. Source: Vaswani et al. (2017)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....tracer.errors import ArgumentError, ShapeError, UnsupportedError
from ....tracer.ops import elementwise as e
from ...tape.apply import apply, wrap
from ...values.tensor import Tensor
from ..common import (
    array_dtype,
    as_dtype,
    at_least_single,
    fail,
    filled,
    floating,
    require_rank,
    shape_list,
    tensor,
)
from ..declared import all
from ..matrices.contraction import linear, matmul
from ..reductions.reduction import mean
from ..selections.selection import repeat_interleave
from ..shapes.joining import cat, chunk
from ..shapes.movement import expand_to, reshape_to, transpose
from .activation import softmax
from .noise import dropout

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """softmax(query @ key.T * scale + mask) @ value.

    Args:
        query: of shape (..., places, size).
        key: of shape (..., sources, size).
        value: of shape (..., sources, size of the result).
        attn_mask: bools, true where a source counts, or numbers that are added.
        dropout_p: the probability that a share is dropped.
        is_causal: each place sees the sources up to itself.
        scale: 1 / sqrt(size) unless given.
        enable_gqa: repeat the heads of key and value to those of the query, dimension -3.

    Raises:
        ArgumentError: a mask beside `is_causal`. ShapeError: the shapes do not fit.

    Example:
        >>> q = tensor([[0.0]])
        >>> scaled_dot_product_attention(q, tensor([[1.0], [2.0]]), tensor([[2.0], [4.0]]))
        tensor([[3.]])
    """
    q, k, v = (
        floating(one, "scaled_dot_product_attention", name)
        for one, name in ((query, "query"), (key, "key"), (value, "value"))
    )
    if min(q.ndim, k.ndim, v.ndim) < 2:
        fail(
            ShapeError,
            "scaled_dot_product_attention: Expected query, key, and value to all be at least 2 dimensional, "
            f"but found shapes {shape_list(q, k, v)}.",
        )
    if attn_mask is not None and is_causal:
        fail(
            ArgumentError,
            "scaled_dot_product_attention: explicit attn_mask should not be set when is_causal=True",
        )
    if enable_gqa:
        k, v = (repeat_interleave(one, q.shape[-3] // one.shape[-3], -3) for one in (k, v))
    factor = (1.0 / math.sqrt(q.shape[-1]) if q.shape[-1] else 1.0) if scale is None else float(scale)
    q, k, precise = at_least_single(q), at_least_single(k), at_least_single(v)
    scores = matmul(apply(e.multiply, q, factor), transpose(k, -2, -1))
    mask = wrap(np.tri(q.shape[-2], k.shape[-2], dtype=bool)) if is_causal else attn_mask
    return as_dtype(matmul(dropout(_shares(scores, mask), dropout_p), precise), array_dtype(v))


def _shares(scores: Tensor, mask: Tensor | None) -> Tensor:
    """The softmax of scores that count; 0 where none of a row does."""
    if mask is None:
        return softmax(scores, -1)
    if array_dtype(mask).kind != "b":
        return softmax(apply(e.add, scores, as_dtype(mask, array_dtype(scores))), -1)
    masked = softmax(apply(e.where, mask, scores, -np.inf), -1)
    excluded = all(apply(e.logical_not, mask), -1, True)
    return apply(e.where, excluded, 0.0, masked)


def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None,
    bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor,
    out_proj_bias: Tensor | None, training: bool = True, key_padding_mask: Tensor | None = None,
    need_weights: bool = True, attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None, static_k: Tensor | None = None, static_v: Tensor | None = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Attention of several heads between linear maps.

    Args:
        query: of shape (places, batch, size), or without batch; key and value of (sources, batch, size).
        num_heads: how many heads the size is divided into.
        in_proj_weight, in_proj_bias: the maps of query, key and value, one above the other; or separately.
        key_padding_mask, attn_mask: bools, true where a source does not count, or numbers that are added.
        need_weights: give the shares as well, the mean of the heads if `average_attn_weights`.

    Returns:
        The result and the shares, or None.

    Raises:
        ShapeError: the size is not divisible by the heads. UnsupportedError: `static_k` or `static_v`.

    Example:
        >>> x, w = tensor([[1.0]]), tensor([[1.0]])
        >>> weights = [tensor([[1.0], [1.0], [1.0]]), None, None, None, False, 0.0, w, None]
        >>> multi_head_attention_forward(x, x, x, 1, 1, *weights)
        (tensor([[1.]]), tensor([[1.]]))
    """
    name = "multi_head_attention_forward"
    if static_k is not None or static_v is not None:
        fail(UnsupportedError, f"{name}(): static_k and static_v are not supported.")
    query, key, value = (
        require_rank(tensor(one, name, argument), (2, 3), name, argument)
        for one, argument in ((query, "query"), (key, "key"), (value, "value"))
    )
    is_batched = query.ndim == 3
    if not is_batched:
        query, key, value = (one.unsqueeze(1) for one in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    places, batch, size = query.shape
    if size != embed_dim_to_check or size % num_heads:
        fail(
            ShapeError,
            f"{name}(): was expecting embedding dimension of {embed_dim_to_check}, divisible by {num_heads}, "
            f"but got {size}",
        )
    if use_separate_proj_weight:
        weights: Any = (q_proj_weight, k_proj_weight, v_proj_weight)
    else:
        weights = chunk(in_proj_weight, 3, 0)  # type: ignore[arg-type]
    biases: Any = (None, None, None) if in_proj_bias is None else chunk(in_proj_bias, 3, 0)
    q, k, v = (linear(*one) for one in zip((query, key, value), weights, biases))
    padding = _additive(key_padding_mask, array_dtype(q))
    mask = _additive(attn_mask, array_dtype(q))
    if bias_k is not None and bias_v is not None:
        k, v = (cat([one, expand_to(bias, (1, batch, size))], 0) for one, bias in ((k, bias_k), (v, bias_v)))
        padding, mask = _one_more(padding), _one_more(mask)
    if add_zero_attn:
        k, v = (cat([one, filled((1, batch, size), 0, array_dtype(one))], 0) for one in (k, v))
        padding, mask = _one_more(padding), _one_more(mask)
    sources, width = k.shape[0], size // num_heads

    def heads(x: Tensor) -> Tensor:
        return transpose(reshape_to(x, (x.shape[0], batch * num_heads, width)), 0, 1)

    scores = matmul(apply(e.multiply, heads(q), 1.0 / math.sqrt(width)), transpose(heads(k), 1, 2))
    scores = reshape_to(scores, (batch, num_heads, places, sources))
    if mask is not None:
        shaped = mask if mask.ndim == 2 else reshape_to(mask, (batch, num_heads, places, sources))
        scores = apply(e.add, scores, shaped)
    if padding is not None:
        scores = apply(e.add, scores, reshape_to(padding, (batch, 1, 1, sources)))
    shares = softmax(scores, -1)
    kept = dropout(shares, dropout_p, training)
    mixed = matmul(reshape_to(kept, (batch * num_heads, places, sources)), heads(v))
    result = linear(reshape_to(transpose(mixed, 0, 1), (places, batch, size)), out_proj_weight, out_proj_bias)
    given = None if not need_weights else mean(kept, 1) if average_attn_weights else kept
    if is_batched:
        return result, given
    return result.squeeze(1), None if given is None else given.squeeze(0)


def _additive(mask: Tensor | None, dtype: np.dtype) -> Tensor | None:
    """A mask as numbers that are added to scores."""
    if mask is None or array_dtype(mask).kind != "b":
        return mask if mask is None else as_dtype(mask, dtype)
    nothing = filled(tuple(mask.shape), 0, dtype)
    return apply(e.where, mask, -np.inf, nothing)


def _one_more(mask: Tensor | None) -> Tensor | None:
    """The mask for one more source, which counts."""
    return None if mask is None else cat([mask, filled((*mask.shape[:-1], 1), 0, array_dtype(mask))], -1)
