"""SurPyval's fits with pullback in the place of HIPS autograd."""

from typing import Any

import pytest

pytest.importorskip("surpyval")

PROGRAM = """
import json
import numpy as np
import surpyval as surv

x = np.array([3.0, 5.0, 8.0, 9.0, 12.0, 17.0, 21.0, 30.0])
c = np.array([0, 0, 0, 1, 0, 0, 1, 0])
found = {}
for name in ("Weibull", "Exponential", "LogNormal", "LogLogistic", "Gamma", "Gumbel"):
    found[name] = np.asarray(getattr(surv, name).fit(x, c).params).tolist()
print(json.dumps(found))
"""


@pytest.mark.slow
def test_fits_are_those_with_hips_autograd(both_ways: Any) -> None:
    ours, theirs = both_ways(PROGRAM)
    assert ours.keys() == theirs.keys()
    for name, values in theirs.items():
        assert ours[name] == pytest.approx(values, rel=1e-5), name
