"""An autograd compiler that writes the backward code: trace, differentiate, generate, compile, cache.

`import pullback as pb` for NumPy models, `import pullback as torch` for programs in PyTorch's style.
"""

# ruff: noqa: E402, I001 (grouped by subject)
import math as _math
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING as _TYPE_CHECKING

from pullback.tracer.collection import count_as_old as _count_as_old, paused_collection as _paused_collection

_paused_collection.__enter__()  # a tenth of the import: all that is defined lives on

from pullback.runtime.methods import binding as _methods  # completes Tensor
from pullback.runtime.methods.binding import detach
from pullback.runtime.numpy_api import protocols as _protocols  # noqa: F401  (np.sin(tensor) and its kin)
from pullback.runtime.values.modes import (
    enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled,
)  # fmt: skip
from pullback.runtime.values.dtypes import (
    DType as dtype, bool, can_cast, cdouble, cfloat, complex128, complex64, double, finfo, float, float16,
    float32, float64, get_default_dtype, half, iinfo, int, int16, int32, int64, int8, is_floating_point, long,
    promote_types, result_type, set_default_dtype, short, uint16, uint32, uint64, uint8,
)  # fmt: skip
from pullback.runtime.values.tensor import Device as device, Size, TorchTensor as Tensor, is_tensor
from pullback.runtime.tensors.creation import (
    BoolTensor, ByteTensor, CharTensor, DoubleTensor, FloatTensor, HalfTensor, IntTensor, LongTensor,
    ShortTensor, arange, as_tensor, asarray, empty, empty_like, empty_permuted, empty_strided, eye,
    from_numpy, full, full_like, linspace, logspace, ones, ones_like, scalar_tensor, tensor, zeros,
    zeros_like,
)  # fmt: skip
from pullback.runtime.tensors.creation import range_ as range
from pullback.runtime.methods.memory_methods import from_dlpack, resize_as_
from pullback.runtime.tensors.settings import (
    are_deterministic_algorithms_enabled, get_default_device, get_float32_matmul_precision,
    get_num_interop_threads, load, save, set_default_device, set_default_tensor_type, set_flush_denormal,
    set_float32_matmul_precision, set_num_interop_threads, typename, use_deterministic_algorithms,
)  # fmt: skip
from pullback.runtime.tensors.signal_windows import (
    bartlett_window, blackman_window, hamming_window, hann_window, kaiser_window,
)  # fmt: skip
from pullback.runtime.tensors.sampling import (
    Generator, bernoulli, binomial, default_generator, get_rng_state, initial_seed, manual_seed,
    multinomial, normal, poisson, rand, rand_like, randint, randint_like, randn, randn_like, randperm,
    seed, set_rng_state,
)  # fmt: skip
from pullback.runtime.values.printing import printoptions, set_printoptions
from pullback.runtime.functions import declared as _declared
from pullback.runtime.functions.declared import *  # noqa: F403  sin, maximum, sum, ...
from pullback.runtime.functions.elements.elementwise import (
    bitwise_not, clone, deg2rad, frac, logit, nan_to_num, neg, negative, positive, rad2deg, round, sgn,
    sign, sinc, square,
)  # fmt: skip
from pullback.runtime.functions.elements.arithmetic import (
    add, addcdiv, addcmul, clamp, clamp_max, clamp_min, clip, div, divide, float_power, fmax, fmin, fmod,
    lerp, logaddexp2, pow, remainder, rsub, sub, subtract, true_divide, xlogy,
)  # fmt: skip
from pullback.runtime.functions.elements.comparison import (
    allclose, bitwise_and, bitwise_or, bitwise_xor, equal, isclose, isneginf, isposinf, signbit, where,
)  # fmt: skip
from pullback.runtime.functions.reductions.reduction import (
    aminmax, count_nonzero, diff, max, mean, min, nanmean, nansum,
)  # fmt: skip
from pullback.runtime.functions.reductions.statistics import (
    corrcoef, cosine_similarity, cov, dist, logsumexp, matrix_norm, norm, normalize, std, std_mean, var,
    var_mean, vector_norm,
)  # fmt: skip
from pullback.runtime.functions.shapes.movement import (
    atleast_1d, atleast_2d, atleast_3d, broadcast_tensors, broadcast_to, expand, expand_as, flatten, moveaxis,
    movedim, permute, ravel, repeat, reshape, reshape_as, squeeze, swapaxes,
    swapdims, t, tile, transpose, unflatten, unsqueeze, view, view_as,
)  # fmt: skip
from pullback.runtime.functions.shapes.parts import (
    diag, diag_embed, diagonal, flip, fliplr, flipud, narrow, roll, rot90, select, tril, triu,
)  # fmt: skip
from pullback.runtime.functions.shapes.joining import (
    cat, chunk, column_stack, concat, concatenate, dsplit, dstack, hsplit, hstack, meshgrid, row_stack,
    split, stack, tensor_split, unbind, vsplit, vstack,
)  # fmt: skip
from pullback.runtime.functions.selections.selection import (
    argwhere, gather, index_add, index_copy, index_fill, index_put, index_select, masked_fill,
    masked_scatter, masked_select, nonzero, nonzero_static, one_hot, repeat_interleave, scatter_add,
    take, take_along_dim,
)  # fmt: skip
from pullback.runtime.functions.reductions.ordering import (
    argsort, bincount, kthvalue, median, msort, nanmedian, nanquantile, quantile, sort, topk,
)  # fmt: skip
from pullback.runtime.functions.elements.special import (
    mvlgamma, polygamma,
)  # fmt: skip
from pullback.runtime.functions.elements.numbers import (
    bitwise_left_shift, bitwise_right_shift, copysign, frexp, gcd, heaviside, lcm, ldexp, nextafter,
)  # fmt: skip
from pullback.runtime.functions.reductions.calculus import (
    cumulative_trapezoid, gradient, trapezoid, trapz,
)  # fmt: skip
from pullback.runtime.functions.reductions.running import (
    cummax, cummin, logcumsumexp,
)  # fmt: skip
from pullback.runtime.functions.shapes.grids import (
    block_diag, broadcast_shapes, cartesian_prod, combinations, diagflat, tril_indices, triu_indices,
    unravel_index, vander,
)  # fmt: skip
from pullback.runtime.functions.reductions.counting import (
    bucketize, histc, histogram, histogramdd, isin, mode, searchsorted, unique, unique_consecutive,
)  # fmt: skip
from pullback.runtime.functions.selections.scattering import (
    as_strided, as_strided_scatter, diagonal_scatter, index_reduce, put, renorm, scatter,
    scatter_reduce, select_scatter, slice_scatter,
)  # fmt: skip
from pullback.runtime.functions.elements.complex_numbers import (
    adjoint, angle, complex, conj, conj_physical, imag, polar, real, resolve_conj, resolve_neg,
    view_as_complex, view_as_real,
)  # fmt: skip
from pullback.runtime.functions.matrices.lapack_factors import geqrf
from pullback.runtime.functions.matrices.low_rank import pca_lowrank, svd_lowrank
from pullback.runtime.functions.signals.spectrograms import istft, stft
from pullback.runtime.functions.kinds import (
    alias_copy, as_strided_copy, detach_copy, diagonal_copy, expand_copy, fill, is_complex, is_conj,
    is_inference, is_neg, is_nonzero, is_same_size, is_signed, isreal, narrow_copy, numel, permute_copy,
    select_copy, split_with_sizes, split_with_sizes_copy, squeeze_copy, sum_to_size, t_copy,
    transpose_copy, type_as, unbind_copy, unfold_copy, unsafe_chunk, unsafe_split, unsqueeze_copy,
    view_as_complex_copy, view_as_real_copy, view_copy,
)  # fmt: skip
from pullback.runtime.functions.shapes.padding import constant_pad_nd, pad
from pullback.runtime.functions.matrices.contraction import (
    addbmm, addmm, addmv, addr, baddbmm, bmm, cross, dot, ger, inner, kron, linear,
    matmul, mm, mv, outer, tensordot, trace, vdot,
)  # fmt: skip
from pullback.runtime.functions.matrices.einsum import bilinear, chain_matmul, einsum, multi_dot
from pullback.runtime.functions.matrices.linalg import (
    cholesky, cholesky_inverse, cholesky_solve, det, inverse, logdet, matrix_power, slogdet,
)  # fmt: skip
from pullback.runtime.functions.matrices.decompositions import orgqr, ormqr, qr, svd
from pullback.runtime.functions.matrices.least_squares import pinverse
from pullback.runtime.functions.matrices.elimination import lu, lu_solve, lu_unpack, triangular_solve
from pullback.runtime.functions.matrices.tensor_equations import matrix_exp
from pullback.runtime.functions.networks.activation import (
    celu, elu, gelu, glu, hardsigmoid, hardswish, hardtanh, leaky_relu, log_softmax, logsigmoid, mish, prelu,
    relu, relu6, selu, silu, softmax, softmin, softplus, softsign, tanhshrink, threshold,
)  # fmt: skip
from pullback.runtime.functions.networks.classification import (
    binary_cross_entropy, binary_cross_entropy_with_logits, cross_entropy, nll_loss,
)  # fmt: skip
from pullback.runtime.functions.networks.losses import (
    gaussian_nll_loss, hinge_embedding_loss, huber_loss, kl_div, l1_loss, mse_loss, poisson_nll_loss,
    smooth_l1_loss, soft_margin_loss,
)  # fmt: skip
from pullback.runtime.functions.networks.margins import (
    cosine_embedding_loss, margin_ranking_loss, triplet_margin_loss,
)  # fmt: skip
from pullback.runtime.functions.networks.ctc import ctc_loss
from pullback.runtime.functions.networks.normalisations import (
    batch_norm, group_norm, instance_norm, layer_norm, rms_norm,
)  # fmt: skip
from pullback.runtime.functions.networks.windows import (
    conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d,
)  # fmt: skip
from pullback.runtime.functions.networks.pooling import (
    adaptive_avg_pool1d, adaptive_max_pool1d, avg_pool1d, max_pool1d, max_pool2d, max_pool3d,
)  # fmt: skip
from pullback.runtime.functions.networks.resampling import (
    channel_shuffle, native_channel_shuffle, pixel_shuffle, pixel_unshuffle,
)  # fmt: skip
from pullback.runtime.functions.networks.embedding import embedding, embedding_bag
from pullback.runtime.functions.networks.recurrent import gru_cell, lstm_cell, rnn_relu_cell, rnn_tanh_cell
from pullback.runtime.functions.reductions.segments import segment_reduce
from pullback.runtime.functions.matrices.distances import cdist, pairwise_distance, pdist
from pullback.runtime.functions.networks.noise import (
    alpha_dropout, dropout, feature_alpha_dropout, feature_dropout, rrelu,
)  # fmt: skip
from pullback.runtime.functions.networks.activation import hardshrink, softshrink
from pullback.runtime.methods.in_place_activations import (
    celu_, relu_, rrelu_, selu_, threshold_,
)  # fmt: skip
from pullback.runtime.functions.loops.control_flow import fori_loop, map, scan, while_loop
from pullback.runtime.functions.loops.choices import cond, switch
from pullback.runtime.functions.loops.checkpointing import checkpoint
from pullback.runtime.functions.stopping import stop_gradient
from pullback.runtime.dispatch.ahead import ArraySpec, TensorSpec
from pullback.runtime.dispatch.compiled import compile
from pullback.tracer.recompilation import fail_on_recompile
from pullback.runtime.autograd.custom_rules import custom_jvp, custom_vjp, defjvp, defvjp, primitive
from pullback.runtime.tape.anomaly import detect_anomaly, is_anomaly_enabled
from pullback.runtime.transforms.batching import vmap
from pullback.runtime.methods.public import publish as _publish
from pullback.runtime.values.late_rules import import_rules_by as _import_rules_by
from pullback.runtime.transforms.transforms import grad, hessian, jacobian, jvp, value_and_grad, vjp
from pullback.codegen.machine.threads import get_num_threads, set_num_threads
from pullback.tracer.version import __version__

from . import (
    autograd, cache, errors, fft, func, linalg, masked, nn, random, signal, special, utils,
)  # fmt: skip

globals().update(_methods.IN_PLACE_FUNCTIONS)  # exp_, clamp_, ...
_publish(globals(), __name__)

inf = _math.inf
nan = _math.nan
pi = _math.pi
e = _math.e
newaxis = None
strided, contiguous_format, preserve_format, channels_last = (
    f"torch.{_name}" for _name in ("strided", "contiguous_format", "preserve_format", "channels_last")
)


def _rules_for_scipy() -> _ModuleType:
    from pullback.runtime.solvers import scipy_names

    return scipy_names


_import_rules_by("scipy", _rules_for_scipy)
_count_as_old()
_paused_collection.__exit__()


_LATE_MODULES = ("dask", "debug", "testing")
_NOT_THERE = {
    "cuda": "Tensors live in the memory of this computer, and are computed with on its CPU.",
    "optim": "Subtract gradients from parameters under no_grad, or give value_and_grad(f) to scipy.optimize.",
}
"""What to do without parts of torch that are left out."""

if _TYPE_CHECKING:
    from pullback.runtime.diagnosis.profiling import profile
    from pullback.runtime.solvers.own_names import (
        bisect, brentq, cumulative_simpson, dblquad, fixed_point, fixed_quad, implicit, least_squares,
        linear_solve, minimize, nquad, odeint, quad, romb, root, root_scalar, simpson, solve_ivp, splu,
        spsolve, tplquad,
    )  # fmt: skip

    from . import debug, testing
else:

    def __getattr__(name: str) -> object:
        """What most programs do without is imported when it is asked for: solvers, `pullback.debug`, ..."""
        import importlib

        if name in _LATE_MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        if name not in __all__:
            remedy = f". {_NOT_THERE[name]}" if name in _NOT_THERE else ""
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{remedy}")
        of_others = "diagnosis.profiling" if name == "profile" else "solvers.own_names"
        globals()[name] = value = getattr(importlib.import_module(f"{__name__}.runtime.{of_others}"), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


def load_ipython_extension(shell: object) -> None:
    """What IPython calls for `%load_ext pullback`: it gets the magic `%%backward`."""
    from pullback.runtime.notebooks import magic

    magic.load(shell)


__all__ = [
    "__version__", "adaptive_avg_pool1d", "add", "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addr",
    "adjoint", "alias_copy", "allclose", "aminmax", "angle", "arange",
    "are_deterministic_algorithms_enabled", "ArraySpec", "argsort", "argwhere", "as_strided",
    "as_strided_copy",
    "as_strided_scatter", "as_tensor", "asarray", "atleast_1d", "atleast_2d", "atleast_3d", "autograd",
    "avg_pool1d", "baddbmm", "bartlett_window", "batch_norm", "bernoulli", "bilinear",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "bincount", "binomial", "bitwise_and",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "blackman_window", "block_diag", "bmm", "bool", "BoolTensor", "broadcast_shapes", "broadcast_tensors",
    "broadcast_to", "bucketize", "ByteTensor", "cache", "can_cast", "cartesian_prod", "cat", "cdist",
    "cdouble",
    "celu", "cfloat", "chain_matmul", "CharTensor", "checkpoint", "cholesky", "cholesky_inverse",
    "cholesky_solve", "chunk", "clamp", "clamp_max", "clamp_min", "clip", "clone", "column_stack",
    "combinations", "compile", "complex", "complex128", "complex64", "concat", "concatenate", "cond",
    "conj", "conj_physical", "constant_pad_nd", "conv1d", "conv2d", "copysign", "corrcoef",
    "cosine_similarity", "count_nonzero", "cov", "cross", "cross_entropy", "cummax", "cummin",
    "cumulative_trapezoid", "custom_jvp", "custom_vjp", "debug", "default_generator", "defjvp", "defvjp",
    "deg2rad", "det", "detach", "detach_copy", "detect_anomaly",
    "device", "diag", "diag_embed", "diagflat", "diagonal",
    "diagonal_copy", "diagonal_scatter", "diff", "dist", "div", "divide", "dot", "double", "DoubleTensor",
    "dropout", "dsplit", "dstack", "dtype", "einsum", "elu", "empty", "empty_like", "empty_permuted",
    "empty_strided", "enable_grad", "equal", "errors", "expand", "expand_as", "expand_copy", "eye",
    "fail_on_recompile", "fft", "fill", "finfo",
    "flatten", "flip", "fliplr", "flipud", "float", "float16", "float32", "float64", "float_power",
    "FloatTensor", "fmax", "fmin", "fmod", "fori_loop", "frac", "frexp", "from_dlpack", "from_numpy",
    "full", "full_like", "func", "gather", "gaussian_nll_loss", "gcd", "gelu", "Generator", "geqrf", "ger",
    "get_default_device", "get_default_dtype", "get_float32_matmul_precision", "get_num_interop_threads",
    "get_num_threads", "get_rng_state", "glu", "grad", "gradient",
    "half", "HalfTensor", "hamming_window", "hann_window", "hardsigmoid", "hardswish",
    "hardtanh", "heaviside", "hessian", "hinge_embedding_loss", "histc", "histogram", "histogramdd", "hsplit",
    "hstack",
    "huber_loss", "iinfo", "imag", "index_add", "index_copy", "index_fill", "index_put", "index_reduce",
    "index_select", "inference_mode", "initial_seed", "inner", "int", "int16", "int32", "int64", "int8",
    "IntTensor", "inverse", "is_anomaly_enabled", "is_complex", "is_conj", "is_floating_point",
    "is_grad_enabled", "is_inference", "is_inference_mode_enabled", "is_neg", "is_nonzero",
    "is_same_size", "is_signed", "is_tensor", "isclose", "isin", "isneginf", "isposinf", "isreal", "istft",
    "jacobian", "jvp", "kaiser_window", "kl_div", "kron", "kthvalue", "l1_loss", "layer_norm", "lcm",
    "ldexp", "leaky_relu", "lerp", "linalg", "linear", "linspace", "load", "log_softmax", "logaddexp2",
    "logcumsumexp", "logdet", "logit", "logsigmoid", "logspace", "logsumexp", "long", "LongTensor", "lu",
    "lu_solve", "lu_unpack", "manual_seed", "map", "masked", "masked_fill", "masked_scatter", "masked_select",
    "matmul", "matrix_exp", "matrix_norm", "matrix_power", "max", "max_pool1d", "max_pool2d", "mean",
    "median", "meshgrid", "min", "mish", "mm", "mode", "moveaxis", "movedim", "mse_loss", "msort",
    "multi_dot", "multinomial", "mv", "mvlgamma", "nan_to_num", "nanmean", "nanmedian", "nanquantile",
    "nansum", "narrow", "narrow_copy", "neg", "negative", "nextafter", "nll_loss", "nn", "no_grad",
    "nonzero", "nonzero_static", "norm", "normal", "normalize", "numel", "one_hot", "ones", "ones_like",
    "orgqr", "ormqr", "outer", "pad", "pca_lowrank", "permute", "permute_copy", "pinverse", "poisson",
    "poisson_nll_loss",
    "polar", "polygamma", "positive", "pow", "prelu", "primitive", "printoptions", "profile",
    "promote_types", "put",
    "qr", "quantile", "rad2deg", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like",
    "random", "randperm", "range", "ravel", "real", "relu", "relu6", "remainder", "renorm", "repeat",
    "repeat_interleave", "reshape", "reshape_as", "resize_as_", "resolve_conj", "resolve_neg", "result_type",
    "rms_norm", "roll", "rot90", "round", "row_stack", "rsub", "save", "scalar_tensor", "scan", "scatter",
    "scatter_add", "scatter_reduce", "searchsorted", "seed", "select", "select_copy", "select_scatter",
    "selu", "set_default_device", "set_default_dtype", "set_default_tensor_type",
    "set_float32_matmul_precision", "set_flush_denormal", "set_grad_enabled", "set_num_interop_threads",
    "set_num_threads", "set_printoptions", "set_rng_state", "sgn", "short", "ShortTensor", "sign",
    "signal", "signbit", "silu", "sinc", "Size", "slice_scatter", "slogdet", "smooth_l1_loss",
    "soft_margin_loss",
    "softmax", "softmin", "softplus", "softsign", "sort", "special", "split", "split_with_sizes",
    "split_with_sizes_copy", "square", "squeeze", "squeeze_copy", "stack", "std", "std_mean",
    "stft", "stop_gradient", "sub", "subtract", "sum_to_size", "svd", "svd_lowrank", "swapaxes",
    "swapdims", "switch",
    "t", "t_copy", "take", "take_along_dim", "tanhshrink", "Tensor", "tensor", "tensor_split", "tensordot",
    "TensorSpec",
    "testing", "threshold", "tile", "topk", "trace", "transpose", "transpose_copy", "trapezoid", "trapz",
    "triangular_solve", "tril", "tril_indices", "triu", "triu_indices", "true_divide", "type_as",
    "typename", "uint16", "uint32", "uint64", "uint8", "unbind", "unbind_copy", "unflatten",
    "unfold_copy", "unique", "unique_consecutive", "unravel_index", "unsafe_chunk", "unsafe_split",
    "unsqueeze", "unsqueeze_copy", "use_deterministic_algorithms", "utils", "value_and_grad", "vander", "var",
    "var_mean", "vdot", "vector_norm", "view", "view_as", "view_as_complex", "view_as_complex_copy",
    "view_as_real", "view_as_real_copy", "view_copy", "vjp", "vmap", "vsplit", "vstack", "where",
    "while_loop", "xlogy", "zeros", "zeros_like",
]  # fmt: skip
__all__ += _declared.__all__
__all__ += [
    "bisect", "brentq", "cumulative_simpson", "dblquad", "fixed_point", "fixed_quad", "implicit",
    "least_squares", "linear_solve", "minimize", "nquad", "odeint", "quad", "romb", "root", "root_scalar",
    "simpson", "solve_ivp", "splu", "spsolve", "tplquad",
]  # fmt: skip
__all__ += [
    "adaptive_max_pool1d", "alpha_dropout", "celu_", "channel_shuffle", "conv3d", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss", "ctc_loss", "embedding",
    "embedding_bag", "feature_alpha_dropout", "feature_dropout", "group_norm", "gru_cell",
    "hardshrink", "instance_norm", "lstm_cell", "margin_ranking_loss", "max_pool3d", "native_channel_shuffle",
    "pairwise_distance",
    "pdist", "pixel_shuffle", "pixel_unshuffle", "relu_", "rnn_relu_cell", "rnn_tanh_cell", "rrelu",
    "rrelu_", "segment_reduce", "selu_", "softshrink",
    "threshold_", "triplet_margin_loss",
]  # fmt: skip
