"""An autograd compiler that writes the backward code: trace, differentiate, generate, compile, cache.

`import pullback as pb` for NumPy models, `import pullback as torch` for programs in PyTorch's style.
"""

# ruff: noqa: I001 (grouped by subject)
import math as _math

from pullback.runtime import methods as _methods  # noqa: F401 (completes Tensor)
from pullback.runtime import numpy_front as _numpy_front  # noqa: F401 (np.sin(tensor) and its kin)
from pullback.runtime.modes import (
    enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled,
)  # fmt: skip
from pullback.runtime.dtypes import (
    DType as dtype, bool, double, finfo, float, float16, float32, float64, get_default_dtype, half, iinfo,
    int, int16, int32, int64, int8, is_floating_point, long, promote_types, result_type, set_default_dtype,
    short, uint16, uint32, uint64, uint8,
)  # fmt: skip
from pullback.runtime.tensor import Device as device, Size, Tensor, is_tensor
from pullback.runtime.creation import (
    BoolTensor, ByteTensor, CharTensor, DoubleTensor, FloatTensor, HalfTensor, IntTensor, LongTensor,
    ShortTensor, arange, as_tensor, asarray, empty, empty_like, eye, from_numpy, full, full_like, linspace,
    logspace, ones, ones_like, scalar_tensor, tensor, zeros, zeros_like,
)  # fmt: skip
from pullback.runtime.sampling import (
    Generator, bernoulli, default_generator, get_rng_state, initial_seed, manual_seed, normal, rand,
    rand_like, randint, randint_like, randn, randn_like, randperm, seed, set_rng_state,
)  # fmt: skip
from pullback.runtime.printing import printoptions, set_printoptions
from pullback.runtime.functions.elementwise import (
    abs, absolute, acos, acosh, arccos, arccosh, arcsin, arcsinh, arctan, arctanh, asin, asinh, atan, atanh,
    bitwise_not, cbrt, ceil, clone, cos, cosh, deg2rad, digamma, erf, erfc, exp, exp2, expit, expm1, fix,
    floor, frac, lgamma, log, log10, log1p, log2, logit, nan_to_num, neg, negative, polygamma, positive,
    rad2deg, reciprocal, round, rsqrt, sgn, sigmoid, sign, sin, sinc, sinh, sqrt, square, tan, tanh, trunc,
)  # fmt: skip
from pullback.runtime.functions.arithmetic import (
    add, addcdiv, addcmul, atan2, clamp, clamp_max, clamp_min, clip, div, divide, float_power, floor_divide,
    fmax, fmin, fmod, hypot, lerp, logaddexp, logaddexp2, maximum, minimum, mul, multiply, pow, remainder,
    rsub, sub, subtract, true_divide, xlogy,
)  # fmt: skip
from pullback.runtime.functions.comparison import (
    allclose, bitwise_and, bitwise_or, bitwise_xor, eq, equal, ge, greater, greater_equal, gt, isclose,
    isfinite, isinf, isnan, isneginf, isposinf, le, less, less_equal, logical_and, logical_not, logical_or,
    logical_xor, lt, ne, not_equal, signbit, where,
)  # fmt: skip
from pullback.runtime.functions.reduction import (
    all, amax, amin, aminmax, any, argmax, argmin, count_nonzero, cumprod, cumsum, diff, max, mean, min,
    nanmean, nansum, prod, sum,
)  # fmt: skip
from pullback.runtime.functions.statistics import (
    corrcoef, cosine_similarity, cov, dist, logsumexp, matrix_norm, norm, normalize, std, std_mean, var,
    var_mean, vector_norm,
)  # fmt: skip
from pullback.runtime.functions.movement import (
    adjoint, atleast_1d, atleast_2d, atleast_3d, broadcast_tensors, broadcast_to, expand, expand_as, flatten,
    moveaxis, movedim, permute, ravel, repeat, repeat_interleave, reshape, reshape_as, squeeze, swapaxes,
    swapdims, t, tile, transpose, unflatten, unsqueeze, view, view_as,
)  # fmt: skip
from pullback.runtime.functions.parts import (
    diag, diag_embed, diagonal, flip, fliplr, flipud, narrow, roll, rot90, select, tril, triu,
)  # fmt: skip
from pullback.runtime.functions.joining import (
    cat, chunk, column_stack, concat, concatenate, dstack, hsplit, hstack, meshgrid, row_stack, split, stack,
    tensor_split, unbind, vsplit, vstack,
)  # fmt: skip
from pullback.runtime.functions.selection import (
    argwhere, gather, index_add, index_copy, index_fill, index_put, index_select, masked_fill, masked_scatter,
    masked_select, nonzero, one_hot, scatter, scatter_add, take, take_along_dim,
)  # fmt: skip
from pullback.runtime.functions.ordering import (
    argsort, bincount, kthvalue, median, quantile, searchsorted, sort, topk, unique,
)  # fmt: skip
from pullback.runtime.functions.padding import pad
from pullback.runtime.functions.contraction import (
    addbmm, addmm, addmv, addr, baddbmm, bilinear, bmm, chain_matmul, cross, dot, ger, inner, kron, linear,
    matmul, mm, multi_dot, mv, outer, tensordot, trace, vdot,
)  # fmt: skip
from pullback.runtime.functions.einsum import einsum
from pullback.runtime.functions.linalg import (
    cholesky, cholesky_inverse, cholesky_solve, det, inverse, logdet, matrix_power, slogdet,
)  # fmt: skip
from pullback.runtime.functions.activation import (
    celu, elu, gelu, glu, hardsigmoid, hardswish, hardtanh, leaky_relu, log_softmax, logsigmoid, mish, prelu,
    relu, relu6, selu, silu, softmax, softmin, softplus, softsign, tanhshrink, threshold,
)  # fmt: skip
from pullback.runtime.functions.losses import (
    binary_cross_entropy, binary_cross_entropy_with_logits, cross_entropy, gaussian_nll_loss,
    hinge_embedding_loss, huber_loss, kl_div, l1_loss, mse_loss, nll_loss, poisson_nll_loss, smooth_l1_loss,
    soft_margin_loss,
)  # fmt: skip
from pullback.runtime.functions.margins import (
    cosine_embedding_loss, margin_ranking_loss, triplet_margin_loss,
)  # fmt: skip
from pullback.runtime.functions.ctc import ctc_loss
from pullback.runtime.functions.normalisations import (
    batch_norm, group_norm, instance_norm, layer_norm, rms_norm,
)  # fmt: skip
from pullback.runtime.functions.windows import (
    conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d,
)  # fmt: skip
from pullback.runtime.functions.pooling import (
    adaptive_avg_pool1d, adaptive_max_pool1d, avg_pool1d, max_pool1d, max_pool2d, max_pool3d,
)  # fmt: skip
from pullback.runtime.functions.resampling import (
    channel_shuffle, native_channel_shuffle, pixel_shuffle, pixel_unshuffle,
)  # fmt: skip
from pullback.runtime.functions.embedding import embedding, embedding_bag
from pullback.runtime.functions.distances import cdist, pairwise_distance, pdist
from pullback.runtime.functions.noise import (
    alpha_dropout, dropout, feature_alpha_dropout, feature_dropout, rrelu,
)  # fmt: skip
from pullback.runtime.functions.activation import hardshrink, softshrink
from pullback.runtime.in_place_activations import (
    celu_, relu_, rrelu_, selu_, threshold_,
)  # fmt: skip
from pullback.runtime.functions.control_flow import fori_loop, map, scan, while_loop
from pullback.runtime.functions.choices import cond, switch
from pullback.runtime.functions.checkpointing import checkpoint
from pullback.runtime.compiled import compile
from pullback.runtime.transforms import grad, hessian, jacobian, jvp, value_and_grad, vjp
from pullback.codegen.machine.threads import get_num_threads, set_num_threads
from pullback.tracer.version import __version__

from . import autograd, errors, func, linalg, nn, random, testing

inf = _math.inf
nan = _math.nan
pi = _math.pi
e = _math.e
newaxis = None

__all__ = [
    "__version__", "abs", "absolute", "acos", "acosh", "adaptive_avg_pool1d", "add", "addbmm", "addcdiv",
    "addcmul", "addmm", "addmv", "addr", "adjoint", "all", "allclose", "amax", "amin", "aminmax", "any",
    "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "argmax", "argmin", "argsort",
    "argwhere", "as_tensor", "asarray", "asin", "asinh", "atan", "atan2", "atanh", "atleast_1d",
    "atleast_2d", "atleast_3d", "autograd", "avg_pool1d", "baddbmm", "batch_norm", "bernoulli", "bilinear",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "bincount", "bitwise_and", "bitwise_not",
    "bitwise_or", "bitwise_xor", "bmm", "bool", "BoolTensor", "broadcast_tensors", "broadcast_to",
    "ByteTensor", "cat", "cbrt", "cdist", "ceil", "celu", "chain_matmul", "CharTensor", "checkpoint",
    "cholesky", "cholesky_inverse", "cholesky_solve", "chunk", "clamp", "clamp_max", "clamp_min", "clip",
    "clone", "column_stack", "compile", "concat", "concatenate", "cond", "conv1d", "conv2d", "corrcoef",
    "cos", "cosh", "cosine_similarity", "count_nonzero", "cov", "cross", "cross_entropy", "cumprod",
    "cumsum", "default_generator", "deg2rad", "det", "device", "diag", "diag_embed", "diagonal", "diff",
    "digamma", "dist", "div", "divide", "dot", "double", "DoubleTensor", "dropout", "dstack", "dtype",
    "einsum", "elu", "empty", "empty_like", "enable_grad", "eq", "equal", "erf", "erfc", "errors", "exp",
    "exp2", "expand", "expand_as", "expit", "expm1", "eye", "finfo", "fix", "flatten", "flip", "fliplr",
    "flipud", "float", "float16", "float32", "float64", "float_power", "FloatTensor", "floor",
    "floor_divide", "fmax", "fmin", "fmod", "fori_loop", "frac", "from_numpy", "full", "full_like", "func",
    "gather", "gaussian_nll_loss", "ge", "gelu", "Generator", "ger", "get_default_dtype", "get_num_threads",
    "get_rng_state", "glu", "grad", "greater", "greater_equal", "gt", "half", "HalfTensor", "hardsigmoid",
    "hardswish", "hardtanh", "hessian", "hinge_embedding_loss", "hsplit", "hstack", "huber_loss", "hypot",
    "iinfo", "index_add", "index_copy", "index_fill", "index_put", "index_select", "inference_mode",
    "initial_seed", "inner", "int", "int16", "int32", "int64", "int8", "IntTensor", "inverse",
    "is_floating_point", "is_grad_enabled", "is_inference_mode_enabled", "is_tensor", "isclose", "isfinite",
    "isinf", "isnan", "isneginf", "isposinf", "jacobian", "jvp", "kl_div", "kron", "kthvalue", "l1_loss",
    "layer_norm", "le", "leaky_relu", "lerp", "less", "less_equal", "lgamma", "linalg", "linear",
    "linspace", "log", "log10", "log1p", "log2", "log_softmax", "logaddexp", "logaddexp2", "logdet",
    "logical_and", "logical_not", "logical_or", "logical_xor", "logit", "logsigmoid", "logspace",
    "logsumexp", "long", "LongTensor", "lt", "manual_seed", "map", "masked_fill", "masked_scatter",
    "masked_select", "matmul", "matrix_norm", "matrix_power", "max", "max_pool1d", "max_pool2d", "maximum",
    "mean", "median", "meshgrid", "min", "minimum", "mish", "mm", "moveaxis", "movedim", "mse_loss", "mul",
    "multi_dot", "multiply", "mv", "nan_to_num", "nanmean", "nansum", "narrow", "ne", "neg", "negative",
    "nll_loss", "nn", "no_grad", "nonzero", "norm", "normal", "normalize", "not_equal", "one_hot", "ones",
    "ones_like", "outer", "pad", "permute", "poisson_nll_loss", "polygamma", "positive", "pow", "prelu",
    "printoptions", "prod", "promote_types", "quantile", "rad2deg", "rand", "rand_like", "randint",
    "randint_like", "randn", "randn_like", "random", "randperm", "ravel", "reciprocal", "relu", "relu6",
    "remainder", "repeat", "repeat_interleave", "reshape", "reshape_as", "result_type", "rms_norm", "roll",
    "rot90", "round", "row_stack", "rsqrt", "rsub", "scalar_tensor", "scan", "scatter", "scatter_add",
    "searchsorted", "seed", "select", "selu", "set_default_dtype", "set_grad_enabled", "set_num_threads",
    "set_printoptions", "set_rng_state", "sgn", "short", "ShortTensor", "sigmoid", "sign", "signbit",
    "silu", "sin", "sinc", "sinh", "Size", "slogdet", "smooth_l1_loss", "soft_margin_loss", "softmax",
    "softmin", "softplus", "softsign", "sort", "split", "sqrt", "square", "squeeze", "stack", "std",
    "std_mean", "sub", "subtract", "sum", "swapaxes", "swapdims", "switch", "t", "take", "take_along_dim",
    "tan", "tanh", "tanhshrink", "Tensor", "tensor", "tensor_split", "tensordot", "testing", "threshold",
    "tile", "topk", "trace", "transpose", "tril", "triu", "true_divide", "trunc", "uint16", "uint32",
    "uint64", "uint8", "unbind", "unflatten", "unique", "unsqueeze", "value_and_grad", "var", "var_mean",
    "vdot", "vector_norm", "view", "view_as", "vjp", "vsplit", "vstack", "where", "while_loop", "xlogy",
    "zeros", "zeros_like",
]  # fmt: skip
__all__ += [
    "adaptive_max_pool1d", "alpha_dropout", "celu_", "channel_shuffle", "conv3d", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss", "ctc_loss", "embedding",
    "embedding_bag", "feature_alpha_dropout", "feature_dropout", "group_norm", "hardshrink",
    "instance_norm", "margin_ranking_loss", "max_pool3d", "native_channel_shuffle", "pairwise_distance",
    "pdist", "pixel_shuffle", "pixel_unshuffle", "relu_", "rrelu", "rrelu_", "selu_", "softshrink",
    "threshold_", "triplet_margin_loss",
]  # fmt: skip
