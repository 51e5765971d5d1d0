"""Special functions under the names of torch.special."""

from pullback.runtime.functions.activation import log_softmax, softmax
from pullback.runtime.functions.arithmetic import xlogy
from pullback.runtime.functions.elementwise import (
    digamma,
    erf,
    erfc,
    exp2,
    expit,
    expm1,
    lgamma,
    log1p,
    logit,
    round,
    sinc,
)  # fmt: skip
from pullback.runtime.functions.special import (
    entr,
    erfcx,
    erfinv,
    i0,
    i0e,
    i1,
    i1e,
    igamma,
    igammac,
    log_ndtr,
    mvlgamma,
    ndtr,
    ndtri,
    polygamma,
    xlog1py,
    zeta,
)  # fmt: skip
from pullback.runtime.functions.statistics import logsumexp
from pullback.runtime.public import publish as _publish

gammainc, gammaincc, gammaln, multigammaln, psi = igamma, igammac, lgamma, mvlgamma, digamma

__all__ = [
    "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammainc", "gammaincc",
    "gammaln", "i0", "i0e", "i1", "i1e", "log1p", "log_ndtr", "log_softmax", "logit", "logsumexp",
    "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "round", "sinc", "softmax", "xlog1py", "xlogy",
    "zeta",
]  # fmt: skip

_publish(globals(), __name__)
