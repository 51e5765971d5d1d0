"""Each workload of `benchmarks/`, small: compiled as it is measured, it agrees with the eager tape."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2]))  # behind an installed pullback

from eager_library import Eager, results_of
from extent import is_drawn, machine_code

from benchmarks.agreement import differences
from benchmarks.peers.ours import Pullback
from benchmarks.workloads import WORKLOADS


def one_of_each():
    """A part of the workloads that have small inputs; where only sizes differ, fewer of them."""
    seen = set()
    for workload in WORKLOADS:
        if workload.make_small is None:
            continue
        kind = workload.loss, workload.program, workload.dtype(workload.small_inputs())
        if is_drawn(workload.name, one_in=8 if kind in seen else 2):
            yield pytest.param(workload, id=workload.name)
        seen.add(kind)


@pytest.mark.drawn(6)
@pytest.mark.parametrize("workload", list(one_of_each()))
def test_compiled_agrees_with_eager(workload):
    dtype = workload.dtype(workload.small_inputs())
    eager = results_of(Eager(), workload)
    with machine_code(workload.name):
        compiled = results_of(Pullback(), workload)
    assert all(np.all(np.isfinite(array)) for array in eager)
    assert not differences(workload, dtype, {"eager": eager, "compiled": compiled})
