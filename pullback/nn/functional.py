"""Functions of networks under the names of torch.nn.functional: `import pullback.functional as F`."""

from pullback.runtime.functions.activation import (
    celu,
    elu,
    gelu,
    glu,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_softmax,
    logsigmoid,
    mish,
    prelu,
    relu,
    relu6,
    selu,
    silu,
    softmax,
    softmin,
    softplus,
    softsign,
    tanhshrink,
    threshold,
)  # fmt: skip
from pullback.runtime.functions.contraction import bilinear, linear
from pullback.runtime.functions.elementwise import sigmoid, tanh
from pullback.runtime.functions.losses import (
    batch_norm,
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    gaussian_nll_loss,
    hinge_embedding_loss,
    huber_loss,
    kl_div,
    l1_loss,
    layer_norm,
    mse_loss,
    nll_loss,
    poisson_nll_loss,
    rms_norm,
    smooth_l1_loss,
    soft_margin_loss,
)  # fmt: skip
from pullback.runtime.functions.padding import pad
from pullback.runtime.functions.selection import one_hot
from pullback.runtime.functions.statistics import cosine_similarity, normalize
from pullback.runtime.functions.windows import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    avg_pool1d,
    avg_pool2d,
    conv1d,
    conv2d,
    dropout,
    embedding,
    max_pool1d,
    max_pool2d,
)  # fmt: skip

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "avg_pool1d", "avg_pool2d", "batch_norm", "bilinear",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "conv1d", "conv2d",
    "cosine_similarity", "cross_entropy", "dropout", "elu", "embedding", "gaussian_nll_loss", "gelu",
    "glu", "hardsigmoid", "hardswish", "hardtanh", "hinge_embedding_loss", "huber_loss", "kl_div",
    "l1_loss", "layer_norm", "leaky_relu", "linear", "log_softmax", "logsigmoid", "max_pool1d",
    "max_pool2d", "mish", "mse_loss", "nll_loss", "normalize", "one_hot", "pad", "poisson_nll_loss",
    "prelu", "relu", "relu6", "rms_norm", "selu", "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss",
    "softmax", "softmin", "softplus", "softsign", "tanh", "tanhshrink", "threshold",
]  # fmt: skip
