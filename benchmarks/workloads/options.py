"""European call options: prices and their greeks.

F. Black, M. Scholes, The pricing of options and corporate liabilities, Journal of Political Economy 81
(1973), equation 13. The gradient of the sum of prices has each option's sensitivity to each of its data:
delta, vega, rho, theta, and that to the strike.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ..workload import Inputs, Workload

OPTIONS = 1_000_000


def sum_of_prices(xp, spot, strike, rate, volatility, years):
    deviation = volatility * xp.sqrt(years)
    d1 = (xp.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / deviation
    d2 = d1 - deviation
    prices = spot * normal_cdf(xp, d1) - strike * xp.exp(-rate * years) * normal_cdf(xp, d2)
    return xp.sum(prices)


def normal_cdf(xp, x):
    return 0.5 + 0.5 * xp.erf(x * math.sqrt(0.5))


def _make(rng: np.random.Generator, n: int = OPTIONS) -> Inputs:
    spot = rng.uniform(50.0, 150.0, n)
    strike = spot * rng.uniform(0.7, 1.3, n)
    return spot, strike, rng.uniform(0.0, 0.08, n), rng.uniform(0.1, 0.6, n), rng.uniform(0.1, 3.0, n)


WORKLOADS = (
    Workload(
        f"black-scholes-{OPTIONS}", _make, sum_of_prices, (0, 1, 2, 3, 4), make_small=partial(_make, n=50)
    ),
)
