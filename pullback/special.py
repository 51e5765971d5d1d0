"""Special functions under the names of torch.special."""

from pullback.runtime.functions import declared_special as _declared
from pullback.runtime.functions.declared_special import *  # noqa: F403  erf, i0e, ...
from pullback.runtime.functions.elements.arithmetic import xlogy
from pullback.runtime.functions.elements.elementwise import logit, round, sinc
from pullback.runtime.functions.elements.special import (
    chebyshev_polynomial_v,
    chebyshev_polynomial_w,
    entr,
    mvlgamma,
    ndtr,
    polygamma,
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
    spherical_bessel_j0,
    xlog1py,
)  # fmt: skip
from pullback.runtime.functions.networks.activation import log_softmax, softmax
from pullback.runtime.functions.reductions.statistics import logsumexp
from pullback.runtime.methods.public import publish as _publish

multigammaln = mvlgamma

__all__ = [
    "chebyshev_polynomial_v", "chebyshev_polynomial_w", "entr", "log_softmax", "logit", "logsumexp",
    "multigammaln", "ndtr", "polygamma", "round", "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w",
    "sinc", "softmax", "spherical_bessel_j0", "xlog1py", "xlogy",
]  # fmt: skip
__all__ += _declared.__all__

_publish(globals(), __name__)
