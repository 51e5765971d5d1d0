"""Where SciPy's special functions and distributions are tested, and by what derivatives are known.

Tests of solvers, integrals, signals and matrices, which take programs, have tables of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np

Range = tuple[float, float]
"""Where an argument is drawn from."""


@dataclass(frozen=True)
class Special:
    """A function of `scipy.special`, or one of its results: "airy[0]"; of complex results the real part.

    Attributes:
        ranges: of the arguments.
        kinds: for each argument whether it has a derivative (d), is an order (o), or refuses (r).
        exact: the same by mpmath; None where SciPy's values and differences serve.
        tails: arguments far out, near singularities and at ends, where mpmath is asked as well.
        tolerance: of values and derivatives there, relative.
    """

    ranges: tuple[Range, ...]
    kinds: str
    exact: Callable[..., Any] | None = None
    tails: tuple[tuple[float, ...], ...] = ()
    tolerance: float = 1e-10


def _student(df: Any, t: Any) -> Any:
    tail = mp.betainc(df / 2, mp.mpf(1) / 2, 0, df / (df + t * t), regularized=True) / 2
    return tail if t < 0 else 1 - tail


def _of_beta(low: int, high: int) -> Callable[..., Any]:
    """The share of a beta variable from 0 up to x, or from x up to 1."""
    return lambda a, b, x: mp.betainc(a, b, x if low else 0, 1 if high else x, regularized=True)


def _voigt(x: Any, sigma: Any, gamma: Any) -> Any:
    z = (x + 1j * gamma) / (sigma * mp.sqrt(2))
    return mp.re(mp.exp(-z * z) * mp.erfc(-1j * z)) / (sigma * mp.sqrt(2 * mp.pi))


SPECIAL: dict[str, Special] = {
    "jv": Special(((0.3, 4.0), (0.3, 6.0)), "rd", mp.besselj, ((0.5, 60.0), (20.0, 3.0), (1.0, 1e-6))),
    "yv": Special(((0.3, 4.0), (0.3, 6.0)), "rd", mp.bessely, ((0.5, 60.0), (3.0, 0.01))),
    "iv": Special(((0.3, 4.0), (0.3, 6.0)), "rd", mp.besseli, ((2.0, 60.0), (0.5, 1e-4))),
    "ive": Special(
        ((0.3, 4.0), (0.3, 6.0)), "rd", lambda v, x: mp.exp(-x) * mp.besseli(v, x),
        ((2.0, 300.0), (0.5, 1e-4)),
    ),
    "kv": Special(((0.3, 4.0), (0.3, 6.0)), "rd", mp.besselk, ((0.5, 40.0), (10.0, 0.1))),
    "kve": Special(
        ((0.3, 4.0), (0.3, 6.0)), "rd", lambda v, x: mp.exp(x) * mp.besselk(v, x),
        ((0.5, 300.0), (3.0, 0.01)),
    ),
    "yn": Special(((0, 4), (0.3, 6.0)), "od", mp.bessely, ((2, 50.0), (3, 0.01))),
    "kn": Special(((0, 4), (0.3, 6.0)), "od", mp.besselk, ((2, 40.0), (3, 0.01))),
    "j0": Special(((-6.0, 6.0),), "d", lambda x: mp.besselj(0, x), ((1e-8,), (-70.0,))),
    "j1": Special(((-6.0, 6.0),), "d", lambda x: mp.besselj(1, x), ((1e-8,), (-70.0,))),
    "y0": Special(((0.3, 6.0),), "d", lambda x: mp.bessely(0, x), ((1e-8,), (70.0,))),
    "y1": Special(((0.3, 6.0),), "d", lambda x: mp.bessely(1, x), ((1e-8,), (70.0,))),
    "k0": Special(((0.3, 6.0),), "d", lambda x: mp.besselk(0, x), ((1e-8,), (70.0,))),
    "k0e": Special(((0.3, 6.0),), "d", lambda x: mp.exp(x) * mp.besselk(0, x), ((1e-8,), (700.0,))),
    "k1": Special(((0.3, 6.0),), "d", lambda x: mp.besselk(1, x), ((1e-8,), (70.0,))),
    "k1e": Special(((0.3, 6.0),), "d", lambda x: mp.exp(x) * mp.besselk(1, x), ((1e-8,), (700.0,))),
    "erfcinv": Special(((0.1, 1.9),), "d", lambda x: mp.erfinv(1 - x), ((1e-9,), (1.999,))),
    "erfi": Special(((-1.5, 1.5),), "d", mp.erfi, ((5.0,), (1e-9,))),
    "dawsn": Special(
        ((-3.0, 3.0),), "d", lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x),
        ((30.0,), (1e-9,), (-19.5,), (20.5,), (1e3,)),
    ),
    "erfcx": Special(
        ((-3.0, 3.0),), "d", lambda x: mp.exp(x * x) * mp.erfc(x), ((-5.0,), (19.5,), (20.5,), (60.0,))
    ),
    "expi": Special(((0.2, 3.0),), "d", mp.ei, ((-20.0,), (30.0,), (1e-6,))),
    "exp1": Special(((0.2, 3.0),), "d", mp.e1, ((30.0,), (1e-6,))),
    "spence": Special(
        ((0.2, 3.0),), "d", lambda x: mp.re(mp.polylog(2, 1 - x)),
        ((1e-4,), (50.0,), (1.0001,), (1e-12,), (1e30,)),
    ),
    "exprel": Special(((-2.0, 2.0),), "d", lambda x: mp.expm1(x) / x, ((1e-9,), (30.0,), (-40.0,))),
    "rgamma": Special(((0.3, 4.0),), "d", mp.rgamma, ((-2.5,), (30.0,))),
    "gammasgn": Special(((-3.5, -0.5),), "o"),
    "ellipk": Special(((-1.0, 0.9),), "d", mp.ellipk, ((-50.0,), (0.999999,), (1e-9,))),
    "ellipkm1": Special(((0.05, 0.95),), "d", lambda x: mp.ellipk(1 - x), ((1e-6,), (0.999999,))),
    "ellipe": Special(((-1.0, 0.9),), "d", mp.ellipe, ((-50.0,), (0.999999,), (1e-9,))),
    "hyp0f1": Special(((0.5, 3.0), (-2.0, 2.0)), "rd", mp.hyp0f1, ((1.5, -30.0), (1.5, 30.0))),
    "hyp1f1": Special(
        ((0.5, 3.0), (0.5, 3.0), (-2.0, 2.0)), "rrd", mp.hyp1f1,
        ((1.5, 2.5, -30.0), (1.5, 2.5, 20.0)),
    ),
    "hyperu": Special(
        ((0.5, 3.0), (0.5, 3.0), (0.5, 3.0)), "rrd", mp.hyperu,
        ((1.5, 2.5, 0.05), (1.5, 2.5, 20.0)),
    ),
    "hyp2f1": Special(
        ((0.5, 2.0), (0.5, 2.0), (2.5, 4.0), (-0.7, 0.7)), "rrrd", mp.hyp2f1,
        ((0.5, 1.5, 3.0, 0.95), (0.5, 1.5, 3.0, -8.0)),
    ),
    "expn": Special(((1, 4), (0.3, 3.0)), "od", mp.expint, ((2, 30.0), (3, 1e-3), (2, 1e-12))),
    "gammainc": Special(
        ((0.3, 6.0), (0.2, 6.0)), "dd", lambda a, x: mp.gammainc(a, 0, x, regularized=True),
        ((0.01, 1e-3), (50.0, 20.0), (50.0, 90.0), (200.0, 210.0), (30.0, 1e-8), (1e4, 1.01e4)),
    ),
    "gammaincc": Special(
        ((0.3, 6.0), (0.2, 6.0)), "dd", lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True),
        ((0.5, 30.0), (3.0, 1e-4), (100.0, 150.0)),
    ),
    "gammaincinv": Special(((0.5, 6.0), (0.1, 0.9)), "dd"),
    "gammainccinv": Special(((0.5, 6.0), (0.1, 0.9)), "dd"),
    "betainc": Special(
        ((0.5, 4.0), (0.5, 4.0), (0.1, 0.9)), "ddd", _of_beta(0, 0),
        ((0.02, 3.0, 1e-4), (80.0, 40.0, 0.6), (5.0, 0.05, 0.99), (2.0, 3.0, 1 - 1e-9)),
    ),
    "betaincc": Special(
        ((0.5, 4.0), (0.5, 4.0), (0.1, 0.9)), "ddd", _of_beta(1, 1),
        ((0.02, 3.0, 1e-4), (80.0, 40.0, 0.8), (5.0, 0.05, 0.99), (0.05, 0.1, 1e-17)),
    ),
    "betaincinv": Special(((0.5, 4.0), (0.5, 4.0), (0.1, 0.9)), "ddd"),
    "betainccinv": Special(((0.5, 4.0), (0.5, 4.0), (0.1, 0.9)), "ddd"),
    "owens_t": Special(((-2.0, 2.0), (-2.0, 2.0)), "dd"),
    "stdtr": Special(
        ((1.0, 8.0), (-3.0, 3.0)), "dd", _student,
        ((1.0, -50.0), (200.0, -4.0), (0.3, 2.0), (3.0, 1e-9)),
    ),
    "stdtrit": Special(((1.0, 8.0), (0.1, 0.9)), "dd"),
    "gamma": Special(((-0.8, -0.2),), "d", mp.gamma, ((20.0,), (-4.5,), (1e-6,))),
    "beta": Special(((0.3, 3.0), (0.3, 3.0)), "dd", mp.beta, ((1e-3, 50.0), (20.0, 30.0), (1e9, 3.7))),
    "betaln": Special(
        ((0.3, 3.0), (0.3, 3.0)), "dd", lambda a, b: mp.log(mp.beta(a, b)),
        ((1e-3, 50.0), (200.0, 300.0), (1e9, 3.7), (1e9, 2e9)),
    ),
    "poch": Special(((0.3, 3.0), (0.3, 3.0)), "dd", mp.rf, ((20.0, 0.5), (0.01, 3.0), (1e9, 3.7))),
    "binom": Special(((3.0, 6.0), (0.3, 2.5)), "dd", mp.binomial, ((40.0, 7.5), (5.0, 1e-3), (1e9, 3.7))),
    "boxcox": Special(
        ((0.3, 3.0), (-1.0, 1.0)), "dd", lambda x, p: (x**p - 1) / p,
        ((1e-3, 1e-6), (50.0, 2.0), (3.0, -1e-9), (1e-8, 3.7)),
    ),
    "boxcox1p": Special(
        ((-0.5, 3.0), (-1.0, 1.0)), "dd", lambda x, p: ((1 + x) ** p - 1) / p,
        ((1e-9, 1e-6), (50.0, 2.0)),
    ),
    "inv_boxcox": Special(
        ((0.1, 0.8), (-1.0, 1.0)), "dd", lambda y, p: (1 + p * y) ** (1 / p), ((-20.0, -1e-3), (3.0, 2.0)),
    ),
    "inv_boxcox1p": Special(((0.1, 0.8), (-1.0, 1.0)), "dd"),
    "entr": Special(((0.2, 3.0),), "d", lambda x: -x * mp.log(x), ((1e-9,), (50.0,))),
    "rel_entr": Special(
        ((0.2, 3.0), (0.2, 3.0)), "dd", lambda x, y: x * mp.log(x / y),
        ((1e-9, 3.0), (50.0, 1e-6)),
    ),
    "kl_div": Special(((0.2, 3.0), (0.2, 3.0)), "dd"),
    "xlog1py": Special(
        ((0.2, 3.0), (-0.5, 3.0)), "dd", lambda x, y: x * mp.log1p(y),
        ((3.0, 1e-12), (3.0, -0.999999), (0.0, 0.5)),
    ),
    "pseudo_huber": Special(
        ((0.5, 2.0), (-3.0, 3.0)), "dd", lambda d, x: d * d * (mp.sqrt(1 + (x / d) ** 2) - 1),
        ((1e-8, 3.0), (3.0, 1e8)),
    ),
    "ndtr": Special(((-3.0, 3.0),), "d", mp.ncdf, ((-20.0,), (6.0,))),
    "log_ndtr": Special(
        ((-9.0, 3.0),), "d", lambda x: mp.log(mp.ncdf(x)), ((-40.0,), (8.0,), (-1e4,)),
    ),
    "chdtr": Special(
        ((0.5, 4.0), (0.3, 6.0)), "dd", lambda v, x: mp.gammainc(v / 2, 0, x / 2, regularized=True),
        ((50.0, 20.0), (0.1, 3.0)),
    ),
    "chdtrc": Special(
        ((0.5, 4.0), (0.3, 6.0)), "dd", lambda v, x: mp.gammainc(v / 2, x / 2, mp.inf, regularized=True),
        ((50.0, 90.0), (3.0, 80.0)),
    ),
    "gdtr": Special(((0.5, 2.0), (0.5, 3.0), (0.3, 3.0)), "ddd"),
    "gdtrc": Special(((0.5, 2.0), (0.5, 3.0), (0.3, 3.0)), "ddd"),
    "fdtr": Special(
        ((1.0, 4.0), (1.0, 4.0), (0.3, 3.0)), "ddd",
        lambda n, m, x: _of_beta(0, 0)(n / 2, m / 2, n * x / (m + n * x)),
        ((0.5, 0.3, 1e-20), (3.0, 5.0, 1e9)),
    ),
    "fdtrc": Special(
        ((1.0, 4.0), (1.0, 4.0), (0.3, 3.0)), "ddd",
        lambda n, m, x: _of_beta(1, 1)(n / 2, m / 2, n * x / (m + n * x)),
        ((0.5, 0.3, 1e-5), (3.0, 5.0, 1e6)),
    ),
    "pdtr": Special(
        ((0, 5), (0.5, 4.0)), "od", lambda k, m: mp.gammainc(k + 1, m, mp.inf, regularized=True),
        ((3, 40.0), (50, 40.0)),
    ),
    "pdtrc": Special(
        ((0, 5), (0.5, 4.0)), "od", lambda k, m: mp.gammainc(k + 1, 0, m, regularized=True),
        ((3, 1e-3), (80, 40.0)),
    ),
    "bdtr": Special(((0, 4), (5, 8), (0.2, 0.8)), "ood"),
    "bdtrc": Special(((0, 4), (5, 8), (0.2, 0.8)), "ood"),
    "nbdtr": Special(((0, 4), (2, 5), (0.2, 0.8)), "ood"),
    "nbdtrc": Special(((0, 4), (2, 5), (0.2, 0.8)), "ood"),
    "chndtr": Special(((0.3, 6.0), (0.8, 4.0), (0.3, 3.0)), "drd"),
    "ncfdtr": Special(((1.0, 4.0), (1.0, 4.0), (0.3, 3.0), (0.3, 3.0)), "rrdd"),
    "nctdtr": Special(((1.0, 4.0), (-1.0, 2.0), (-2.0, 3.0)), "rdd"),
    "pdtri": Special(((0, 5), (0.2, 0.8)), "od"),
    "nbdtri": Special(((0, 4), (2, 5), (0.2, 0.8)), "ood"),
    "gdtria": Special(((0.2, 0.8), (0.5, 3.0), (0.3, 3.0)), "ddd"),
    "nrdtrimn": Special(((0.1, 0.9), (0.3, 3.0), (-2.0, 2.0)), "ddd"),
    "nrdtrisd": Special(((-2.0, 2.0), (0.6, 0.9), (-2.0, 2.0)), "ddd"),
    "agm": Special(((0.3, 3.0), (0.3, 3.0)), "dd", mp.agm, ((1e-9, 2.0), (1.0, 1e12), (2.0, 2.0))),
    "chdtri": Special(((0.8, 4.0), (0.2, 0.8)), "dd"),
    "gdtrix": Special(((0.5, 2.0), (0.5, 3.0), (0.2, 0.8)), "ddd"),
    "fdtri": Special(((1.0, 4.0), (1.0, 4.0), (0.2, 0.8)), "ddd"),
    "jve": Special(((0, 4), (0.3, 6.0)), "od"),
    "yve": Special(((0, 4), (0.3, 6.0)), "od"),
    "exp10": Special(((-1.0, 1.0),), "d", lambda x: mp.mpf(10) ** x, ((-200.0,), (100.0,))),
    "cosm1": Special(((-1.0, 1.0),), "d", lambda x: mp.cos(x) - 1, ((1e-7,), (30.0,))),
    **{
        name: Special(
            ((low, high),), "d", lambda x, function=function: function(x * mp.pi / 180),
            ((far,), (far + 135.0,), (-0.5,), (1e10,)),
        )
        for name, low, high, function, far in (
            ("sindg", -90.0, 90.0, mp.sin, 269.0), ("cosdg", -90.0, 90.0, mp.cos, 269.0),
            ("tandg", -60.0, 60.0, mp.tan, 269.0), ("cotdg", 20.0, 60.0, mp.cot, 269.0),
        )
    },
    "airy[0]": Special(((-3.0, 3.0),), "d", mp.airyai, ((-30.0,), (20.0,), (0.0,))),
    "airy[1]": Special(((-3.0, 3.0),), "d", lambda x: mp.airyai(x, derivative=1), ((-30.0,), (20.0,))),
    "airy[2]": Special(((-3.0, 3.0),), "d", mp.airybi, ((-30.0,), (20.0,), (0.0,))),
    "airy[3]": Special(((-3.0, 3.0),), "d", lambda x: mp.airybi(x, derivative=1), ((-30.0,), (20.0,))),
    "sici[0]": Special(((-3.0, 3.0),), "d", mp.si, ((0.0,), (1e-9,), (50.0,), (-200.0,))),
    "sici[1]": Special(((0.3, 3.0),), "d", mp.ci, ((1e-9,), (50.0,))),
    "shichi[0]": Special(((-3.0, 3.0),), "d", mp.shi, ((0.0,), (1e-9,), (50.0,), (-200.0,))),
    "shichi[1]": Special(((0.3, 3.0),), "d", mp.chi, ((1e-9,), (50.0,))),
    "lambertw": Special(((0.3, 3.0),), "d", mp.lambertw, ((-0.36,), (0.0,), (1e-9,), (1e5,))),
    "loggamma": Special(((0.3, 6.0),), "d", mp.loggamma, ((1e-9,), (1e9,))),
    "fresnel[0]": Special(((-2.0, 2.0),), "d", mp.fresnels, ((1e-9,), (30.3,), (-5.5,))),
    "fresnel[1]": Special(((-2.0, 2.0),), "d", mp.fresnelc, ((1e-9,), (30.3,), (-5.5,))),
    "struve": Special(
        ((-0.4, 4.0), (0.3, 6.0)), "rd", mp.struveh, ((0.5, 40.0), (2.0, 1e-3), (0.0, 0.0), (10.0, 3.0))
    ),
    "modstruve": Special(
        ((-0.4, 4.0), (0.3, 6.0)), "rd", mp.struvel, ((0.5, 20.0), (2.0, 1e-3), (0.0, 0.0), (10.0, 3.0))
    ),
    "ellipkinc": Special(
        ((-4.0, 4.0), (-1.0, 0.9)), "dd", mp.ellipf,
        ((1.5, 0.999999), (1.57, 0.5), (0.3, -1e6), (10.0, 0.5), (1e-6, 0.9), (0.7, 0.0), (0.7, 1.0)),
    ),
    "ellipeinc": Special(
        ((-4.0, 4.0), (-1.0, 0.9)), "dd", mp.ellipe,
        ((1.5, 0.999999), (1.57, 0.5), (0.3, -1e6), (10.0, 0.5), (1e-6, 0.9), (0.7, 0.0), (0.7, 1.0)),
    ),
    **{
        f"ellipj[{place}]": Special(
            ((-2.0, 2.0), (0.1, 0.9)), "dd", lambda u, m, name=name: mp.ellipfun(name, u, m=m),
            ((0.3, 1e-5), (2.0, 0.99999), (6.0, 0.5)),
        )
        for place, name in enumerate(("sn", "cn", "dn"))
    },
    "ellipj[3]": Special(((-2.0, 2.0), (0.1, 0.9)), "dd"),
    "zeta": Special(
        ((1.3, 4.0), (0.3, 3.0)), "dd", mp.zeta, ((1.01, 2.0), (30.0, 0.5), (2.0, 1e3), (2.0, 1e-3))
    ),
    "zetac": Special(
        ((1.3, 4.0),), "d", lambda x: mp.zeta(x) - 1,
        ((1.01,), (40.0,), (0.3,), (-0.4,), (-0.6,), (-5.5,), (-30.3,)),
    ),
    "lpmv": Special(((0, 2), (2, 5), (-0.8, 0.8)), "ood"),
    **{
        name: Special(
            ((0.3, 6.0),), "d", lambda x, function=function: function(0, x), ((1e-6,), (12.0,))
        )
        for name, function in (("ber", mp.ber), ("bei", mp.bei), ("ker", mp.ker), ("kei", mp.kei))
    },
    **{name: Special(((0.3, 6.0),), "d") for name in ("berp", "beip", "kerp", "keip")},
    "wrightomega": Special(
        ((-3.0, 3.0),), "d", lambda x: mp.lambertw(mp.exp(x)), ((-40.0,), (1e9,), (50.0,))
    ),
    "ndtri_exp": Special(
        ((-6.0, -0.1),), "d", lambda y: mp.sqrt(2) * mp.erfinv(2 * mp.exp(y) - 1), ((-30.0,), (-1e-9,))
    ),
    "powm1": Special(
        ((0.3, 3.0), (-2.0, 2.0)), "dd", lambda x, y: x**y - 1,
        ((1.0 + 1e-9, 0.3), (3.0, 1e-12), (50.0, 2.0)),
    ),
    "voigt_profile": Special(
        ((-3.0, 3.0), (0.3, 2.0), (0.3, 2.0)), "ddd", _voigt,
        ((50.0, 0.7, 0.1), (1e3, 1.0, 2.0), (0.3, 1.0, 1e-9)),
    ),
    "hankel1": Special(
        ((0.3, 4.0), (0.3, 6.0)), "rd", lambda v, x: mp.re(mp.hankel1(v, x)), ((0.5, 60.0),)
    ),
    "expit": Special(((-3.0, 3.0),), "d", lambda x: 1 / (1 + mp.exp(-x)), ((-40.0,), (30.0,), (1e-9,))),
    "log_expit": Special(((-3.0, 3.0),), "d", lambda x: -mp.log1p(mp.exp(-x)), ((-1e3,), (30.0,))),
    "logit": Special(((0.1, 0.9),), "d", lambda p: mp.log(p / (1 - p)), ((1e-20,), (0.999,))),
    "gammaln": Special(((0.3, 6.0),), "d", lambda x: mp.log(abs(mp.gamma(x))), ((1e-9,), (1e9,), (-2.5,))),
    "i0e": Special(((-6.0, 6.0),), "d", lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), ((1e-8,), (700.0,))),
    "i1e": Special(((-6.0, 6.0),), "d", lambda x: mp.exp(-abs(x)) * mp.besseli(1, x), ((1e-8,), (70.0,))),
    "radian": Special(((0.0, 60.0), (0.0, 60.0), (0.0, 60.0)), "ddd"),
}  # fmt: skip
POLYNOMIALS: dict[str, tuple[float, ...]] = {
    "eval_legendre": (),
    "eval_chebyt": (),
    "eval_chebyu": (),
    "eval_hermite": (),
    "eval_hermitenorm": (),
    "eval_laguerre": (),
    "eval_genlaguerre": (0.7,),
    "eval_gegenbauer": (0.7,),
    "eval_jacobi": (0.7, -0.3),
    "eval_sh_legendre": (),
    "eval_sh_chebyt": (),
    "eval_sh_chebyu": (),
    "eval_chebyc": (),
    "eval_chebys": (),
}
"""Of a degree, the parameters given, and x."""

# --- distributions ----------------------------------------------------------------------------------------

SHAPES: dict[str, tuple[float, ...]] = {
    "gamma": (1.7,), "erlang": (2.0,), "beta": (1.4, 2.3), "t": (3.5,), "lognorm": (0.8,), "chi2": (2.7,),
    "chi": (2.2,), "f": (3.2, 5.1), "weibull_min": (1.6,), "weibull_max": (1.6,), "exponweib": (1.3, 1.7),
    "pareto": (2.1,), "lomax": (1.9,), "genpareto": (0.3,), "genextreme": (-0.2,), "invgamma": (2.4,),
    "invweibull": (2.1,), "invgauss": (0.9,), "fisk": (2.3,), "burr": (2.2, 1.4), "burr12": (2.2, 1.4),
    "loggamma": (1.6,), "gengamma": (1.3, 1.8), "gompertz": (0.9,), "powerlaw": (1.7,), "triang": (0.4,),
    "loguniform": (0.2, 3.0), "truncnorm": (-1.2, 1.9), "skewnorm": (1.5,), "exponnorm": (1.2,),
    "nakagami": (1.4,), "rice": (0.8,), "vonmises": (1.3,), "gennorm": (1.5,), "johnsonsu": (0.4, 1.3),
    "johnsonsb": (0.4, 1.3), "loglaplace": (2.2,), "genlogistic": (1.4,), "betaprime": (1.7, 3.1),
    "foldnorm": (0.7,), "alpha": (1.3,), "argus": (1.4,), "bradford": (1.2,), "crystalball": (1.3, 2.4),
    "dgamma": (1.4,), "dweibull": (1.6,), "exponpow": (1.7,), "fatiguelife": (0.8,), "foldcauchy": (0.9,),
    "genexpon": (0.7, 1.2, 1.6), "genhalflogistic": (0.4,), "geninvgauss": (1.3, 0.9), "halfgennorm": (1.7,),
    "jf_skew_t": (1.6, 2.3), "kappa3": (1.4,), "laplace_asymmetric": (1.7,), "mielke": (1.9, 2.6),
    "ncf": (3.2, 5.1, 0.8), "nct": (3.4, 0.6), "ncx2": (2.7, 1.4), "norminvgauss": (1.6, 0.5),
    "pearson3": (0.8,), "powerlognorm": (1.4, 0.6), "powernorm": (1.8,), "rdist": (2.6,),
    "recipinvgauss": (0.9,), "rel_breitwigner": (1.7,), "skewcauchy": (0.4,), "trapezoid": (0.3, 0.7),
    "truncexpon": (2.3,), "truncpareto": (1.4, 3.2), "truncweibull_min": (1.7, 0.3, 2.4),
    "wrapcauchy": (0.4,), "reciprocal": (0.2, 3.0), "zipf": (2.6,), "yulesimon": (2.3,), "dlaplace": (0.3,),
    "betanbinom": (4, 2.4, 1.7), "skellam": (20.0, 3.0), "poisson": (2.3,), "binom": (7, 0.35),
    "bernoulli": (0.35,), "geom": (0.4,),
    "nbinom": (3.4, 0.45), "betabinom": (6, 1.4, 2.2), "hypergeom": (20, 7, 9), "logser": (0.6,),
    "planck": (0.7,),
}  # fmt: skip
"""Parameters of shape; a distribution without is not here."""
FURTHER = {"genpareto": [(-0.4,), (0.0,)], "genextreme": [(0.3,), (0.0,)], "truncnorm": [(9.0, 11.0)],
           "pearson3": [(-0.6,)], "skewcauchy": [(-0.3,)], "nct": [(2.3, -0.9)],
           "gengamma": [(1.3, -1.8)], "triang": [(0.9,)], "skewnorm": [(-2.0,)]}  # fmt: skip
"""Shapes in other branches of a distribution."""
EXTREME: dict[str, list[tuple[float, ...]]] = {
    "gamma": [(0.05,), (200.0,), (1e4,)], "beta": [(0.05, 0.1), (300.0, 200.0), (1.0, 1.0)],
    "t": [(0.5,), (200.0,)], "lognorm": [(0.05,), (8.0,)], "chi2": [(0.1,), (1000.0,)], "f": [(0.5, 0.3)],
    "weibull_min": [(0.1,), (30.0,)], "weibull_max": [(0.1,), (30.0,)],
    "exponweib": [(0.1, 5.0), (20.0, 0.3)],
    "pareto": [(0.05,), (50.0,)], "lomax": [(0.05,), (50.0,)], "genpareto": [(1e-9,), (3.0,)],
    "genextreme": [(1e-9,), (2.0,), (-3.0,)], "invweibull": [(0.1,), (30.0,)],
    "invgauss": [(0.01,), (100.0,)],
    "truncnorm": [(-np.inf, -8.0), (3.0, np.inf), (-40.0, 5.0)], "betaprime": [(0.1, 0.3)],
    "gompertz": [(1e-8,), (1e4,), (1e-30,)], "powerlaw": [(0.05,), (200.0,)],
    "exponnorm": [(0.01,), (100.0,)], "gennorm": [(20.0,)], "loglaplace": [(0.3,), (30.0,)],
}  # fmt: skip
"""Shapes for which tails are heavy or light, or parts of formulas too large or too small for a number."""
PLACES: dict[str, tuple[float, ...]] = {
    "gompertz": (1e-20, 30.0, 500.0), "gamma": (1e-40, 800.0, 1e5), "chi2": (1e-30, 1e5), "chi": (60.0,),
    "maxwell": (1e-20, 60.0), "invgamma": (1e-4, 1e30), "loggamma": (-60.0, 9.0), "nakagami": (60.0,),
    "gengamma": (1e-20, 70.0),
    "norm": (-1e8, 0.0, 1e8), "laplace": (-1e5, 0.0, 1e5), "gumbel_r": (1e3, 1e8), "gumbel_l": (-1e3, -1e8),
    "halflogistic": (1e3,), "levy": (1e-20,), "wald": (1e-20, 50.0, 1e8), "invgauss": (1e-8, 1e6),
    "exponnorm": (-50.0, 1e3), "gennorm": (0.0, -120.0, 120.0), "logistic": (-1e5, 0.0, 1e5),
    "t": (1e-20, -1e10),
    "beta": (1e-20, 1e-60), "f": (1e-20, 1e-60), "betaprime": (1e-20, 1e-60), "weibull_min": (1e-20,),
}
"""Places farther out, and where a formula changes."""
SCALED = (0.3, 1.7)
INTEGER_SHAPES = {"binom": 1, "betabinom": 1, "betanbinom": 1, "hypergeom": 3}
"""How many of the first parameters are integers."""
REFUSED = {"vonmises": {1}, "betabinom": {2, 3}, "ncx2": {1}, "nct": {1}, "ncf": {1, 2}}
"""The parameters by which distribution functions have no derivative."""
OF_NO_DENSITY = {"ncx2": {1}, "nct": {1}, "ncf": {1, 2}, "geninvgauss": {1}}
"""Those by which densities have none either."""
