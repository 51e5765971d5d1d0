"""autograd-gamma's functions with pullback in the place of HIPS autograd."""

from typing import Any

import pytest

pytest.importorskip("autograd_gamma")

PROGRAM = """
import json
import autograd.numpy as np
import autograd_gamma as g
from autograd import grad, hessian

x = np.linspace(0.3, 0.9, 4)
found = []
for f in (g.gammainc, g.gammaincc, g.gammaincln, g.gammainccln):
    loss = lambda p: np.sum(f(p[0], p[1] * x))
    found += [grad(loss)(np.array([1.3, 0.8])).tolist(), hessian(loss)(np.array([1.3, 0.8])).ravel().tolist()]
for f in (g.betainc, g.betaincln):
    found.append(grad(lambda p: np.sum(f(p[0], p[1], x)))(np.array([1.3, 2.1])).tolist())
print(json.dumps(sum(found, [])))
"""


@pytest.mark.parametrize("options", [(), ("--compiled",)], ids=["eager", "compiled"])
def test_derivatives_are_those_with_hips_autograd(both_ways: Any, options: tuple[str, ...]) -> None:
    ours, theirs = both_ways(PROGRAM, *options)
    assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-7)
