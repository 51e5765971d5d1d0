"""The harness of `benchmarks/`: what it makes of measurements, and how it talks to its processes."""

import sys
from datetime import date
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2]))  # behind an installed pullback

from benchmarks import measure, overhead, report, results, summary
from benchmarks.__main__ import parse_arguments, wanted_workloads
from benchmarks.agreement import difference, differences
from benchmarks.measure import Comparison, Effort, Timing
from benchmarks.page import write_page
from benchmarks.worker import FirstCall, PeerError, TooSlow, Worker, flat
from benchmarks.workload import NotOffered, Workload
from benchmarks.workloads import ON_REQUEST, WORKLOADS, workload_named


def make(rng):
    return rng.standard_normal(3), rng.standard_normal(3).astype("float32")


def loss(xp, x, y):
    return xp.sum(x * y)


WORKLOAD = Workload("dot", make, loss, (0,))


def comparison(ours, jax, *, c=None, **options):
    """Of medians in seconds."""
    timings = {"pullback": ours, "jax": jax, "torch": 2.0 * jax, "numpy-forward": 0.01 * ours}
    if c is not None:
        timings["c"] = c
    found = Comparison(Workload("dot", make, loss, (0,), **options), bytes=1e6)
    found.timings = {
        peer: Timing(1.0, None, 1000, [0.9 * median, median, 1.5 * median])
        for peer, median in timings.items()
    }
    return found


# --- ratios and means ---------------------------------------------------------------------------------------


def test_the_best_peer_computes_gradients_and_is_a_library():
    found = comparison(1.0, 3.0, c=0.5)
    assert found.best_peer == "jax"
    assert found.ratio == 3.0
    assert found.native_ratio == 0.5


def test_without_peers_there_is_no_ratio():
    found = Comparison(WORKLOAD, bytes=1.0, timings={"pullback": Timing(1.0, None, None, [1.0])})
    assert (found.best_peer, found.ratio, found.native_ratio) == (None, None, None)
    assert summary.summarise([found]).all is None


def test_summary_has_geometric_means_and_names_who_is_faster():
    found = summary.summarise(
        [
            comparison(1.0, 8.0, small_calls=True),
            comparison(1.0, 2.0, c=1.5),
            comparison(1.0, 0.5, c=0.25, blas_bound=True),
        ]
    )
    assert found.all == pytest.approx(2.0)
    assert found.small_calls == pytest.approx(8.0)
    assert found.slower == [("dot", 0.5, "jax", True)]
    assert (found.native_workloads, found.native_reached) == (2, 1)
    assert found.native == pytest.approx(0.375**0.5)
    assert "dot 0.50 (jax, BLAS-bound)" in report.summary_text(found)


def test_summary_tells_where_ours_has_no_figure():
    found = comparison(1.0, 8.0)
    found.note("pullback", TooSlow("no answer in 1 s"))
    assert found.ratio is None
    assert summary.summarise([found]).without_ours == ["dot"]
    assert "no mean counts: dot" in report.summary_text(summary.summarise([found]))


def test_geometric_mean_of_nothing():
    assert summary.geometric_mean([]) is None


# --- agreement ----------------------------------------------------------------------------------------------


def test_what_differs_is_named():
    value, gradient = np.array(2.0), np.array([1.0, -2.0])
    found = differences(
        WORKLOAD,
        "float64",
        {
            "pullback": [value, gradient],
            "jax": [value, gradient + 1e-12],
            "torch": [value, gradient + 1e-6],
            "autograd": [value],
            "numpy-forward": [value],
        },
        value_alone=["numpy-forward"],
    )
    assert set(found) == {"torch", "autograd"}
    assert "the gradient of input 0 by 5.0e-07" in found["torch"]
    assert "1 arrays in place of 2" in found["autograd"]


@pytest.mark.parametrize(
    "other", [np.ones(3), np.ones(2, "float32"), np.array([1.0, np.nan])], ids=["shape", "dtype", "nan"]
)
def test_shape_dtype_and_nan_differ(other):
    error = difference(other, np.ones(2))
    assert not error <= 1e10


def test_a_workload_may_have_its_own_tolerance():
    generous = Workload("dot", make, loss, (0,), tolerance=1e-2, tolerance_reason="an example")
    arrays = {"pullback": [np.ones(2)], "jax": [np.ones(2) + 1e-3]}
    assert differences(WORKLOAD, "float32", arrays)
    assert not differences(generous, "float32", arrays)
    with pytest.raises(ValueError, match="reason"):
        Workload("dot", make, loss, (0,), tolerance=1e-2)


# --- workloads ----------------------------------------------------------------------------------------------


def test_names_are_unique():
    names = [workload.name for workload in (*WORKLOADS, *ON_REQUEST)]
    assert len(set(names)) == len(names)
    assert all(workload_named(name).name == name for name in names)


def test_inputs_are_the_same_each_time_and_results_as_exact_as_the_coarsest():
    inputs = WORKLOAD.inputs()
    for one, other in zip(inputs, WORKLOAD.inputs()):
        np.testing.assert_array_equal(one, other)
    assert WORKLOAD.dtype(inputs) == "float32"
    assert WORKLOAD.bytes_moved(inputs) == 24 + 12 + 24


def test_a_variant_stands_for_the_loss_or_leaves_a_peer_out():
    class Numbers:
        xp = np

        @staticmethod
        def value_and_grad(function, argnums):
            return lambda *inputs: (function(*inputs), argnums)

    varied = Workload("dot", make, loss, (0,), variants={"jax": lambda xp, x, y: -1.0, "torch": None})
    x = np.array([1.0, 2.0])
    assert varied.program_for("pullback")(Numbers)(x, x) == (5.0, (0,))
    assert varied.program_for("jax")(Numbers)(x, x) == (-1.0, (0,))
    with pytest.raises(NotOffered, match="leaves torch out"):
        varied.program_for("torch")


def test_only_chooses_by_prefix_and_on_request_by_name():
    first = WORKLOADS[0].name
    assert [one.name for one in wanted_workloads([first[:-1]])] == [first]
    assert wanted_workloads(None) == list(WORKLOADS)
    for workload in ON_REQUEST:
        assert workload in wanted_workloads([workload.name])
        assert workload not in wanted_workloads([workload.name[:-1]])


@pytest.mark.parametrize("option", ["--only=no-such", "--peers=no-such"])
def test_unknown_names_are_refused(option, capsys):
    with pytest.raises(SystemExit):
        parse_arguments([option])
    assert "no-such" in capsys.readouterr().err


# --- effort -------------------------------------------------------------------------------------------------


def test_slow_calls_have_fewer_turns():
    effort = Effort(rounds=15, turn=0.1, slow_turns=10.0, compile_limit=1.0)
    assert [effort.turns(seconds, limit=60.0) for seconds in (0.1, 1.0, 5.0, 30.0, 90.0)] == [15, 10, 3, 2, 1]


class StubWorker:
    """A process that answers from a script: how long a call takes, what it gives, where it fails."""

    def __init__(self, peer, result, seconds=0.01, fails=None):
        self.peer, self.result, self.call_seconds, self.fails = peer, result, seconds, fails or {}
        self.closed = False

    def _answer(self, request, answer):
        if request in self.fails:
            raise self.fails[request]
        return answer

    def wait(self, limit):
        return self._answer("wait", None)

    def first_call(self, limit):
        return self._answer("first_call", FirstCall(0.5, 100))

    def results(self, limit):
        return self._answer("results", self.result)

    def seconds(self, calls, limit, warm_up=1):
        return self._answer("seconds", self.call_seconds)

    def memory(self, calls, limit):
        return self._answer("memory", 7)

    def close(self):
        self.closed = True


def test_one_library_that_fails_does_not_stop_the_others(monkeypatch):
    agreed, other = [np.array(1.0), np.zeros(3)], [np.array(1.5), np.zeros(3)]
    stubs = [
        StubWorker("pullback", agreed),
        StubWorker("jax", agreed, seconds=0.02),
        StubWorker("torch", agreed, fails={"seconds": PeerError("broken")}),
        StubWorker("torch-compile", agreed, fails={"first_call": TooSlow("no answer in 1 s")}),
        StubWorker("pytensor", other),
        StubWorker("c", agreed, fails={"wait": NotOffered("not written")}),
    ]
    monkeypatch.setattr(measure, "Worker", lambda peer, name: {one.peer: one for one in stubs}[peer])
    effort = Effort(rounds=4, turn=0.01, slow_turns=1.0, compile_limit=1.0, pause=0.0)
    found = measure.compare(WORKLOAD, [one.peer for one in stubs], effort)

    assert list(found.timings) == ["pullback", "jax"]
    assert found.ratio == 2.0
    assert found.timings["jax"].samples == [0.02] * 4
    assert found.timings["jax"].memory == 7
    assert found.failures == {"torch": "broken"}
    assert found.too_slow == {"torch-compile": "no answer in 1 s"}
    assert found.not_offered == {"c": "not written"}
    assert list(found.differences) == ["pytensor"]
    assert all(one.closed for one in stubs)
    assert len(report.notes(found)) == 3


@pytest.mark.drawn(4)
def test_a_process_answers_and_is_ended_when_it_takes_too_long():
    worker = Worker("numpy-forward", "chain-10-float64")
    try:
        worker.wait(limit=60.0)
        first = worker.first_call(limit=60.0)
        (value,) = worker.results(limit=60.0)
        assert first.seconds > 0.0 and value.shape == ()
        assert worker.seconds(3, limit=60.0) > 0.0
        held = worker.memory(1, limit=60.0)
        assert held is None or held >= 0
        with pytest.raises(TooSlow):
            worker.seconds(10**9, limit=0.1)
        with pytest.raises(PeerError, match="ended"):
            worker.results(limit=60.0)
    finally:
        worker.close()


@pytest.mark.drawn(4)
def test_a_process_sends_what_its_library_raises():
    worker = Worker("c", "attention-8x256x64")
    try:
        with pytest.raises(NotOffered, match="in C"):
            worker.wait(limit=60.0)
    finally:
        worker.close()


def test_nested_results_are_flattened():
    assert flat((1, [2, (3,)], ())) == [1, 2, 3]


# --- tables and the picture ---------------------------------------------------------------------------------

MACHINE = {
    "threads": 2.0,
    "load": 0.1,
    "triad": 10.0,
    "triad_one_thread": 9.0,
    "gemm_float32": 100.0,
    "gemm_float64": 50.0,
}


def test_tables_have_a_row_for_each_workload():
    console = report.new_console()
    found = [comparison(1e-3, 2e-3, c=1e-3), comparison(1e-3, 0.5e-3, c=1e-3, flops=1e6)]
    found[0].first_calls = {"import": 0.1, "cold": 1.0, "disk": 0.25}
    found[1].timings.pop("torch")
    found[1].failures["torch"] = "broken"
    peers = ["pullback", "jax", "torch", "c"]
    with console.capture() as captured:
        console.print(report.times_table(found, peers, MACHINE))
        console.print(report.memory_table(found, peers))
        console.print(report.first_calls_table(found, peers))
    text = captured.get()
    for part in ("1,000", "2.00", "1 GB/s", "1 GFLOP/s", "failed", "0.25"):
        assert part in text


def test_the_picture_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    from benchmarks.picture import draw

    found = [comparison(1.0, 8.0, c=2.0), comparison(1.0, 0.5, blas_bound=True)]
    figures = results.as_json(found, None, MACHINE, measure.QUICK)
    for name, beginning in (("ratios.png", b"\x89PNG"), ("ratios.svg", b"<?xml")):
        draw(figures, tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(beginning)
    with pytest.raises(ValueError, match="nothing to draw"):
        draw({**figures, "workloads": []}, tmp_path / "none.png")


def test_the_page_says_when_on_what_and_whether_it_was_busy(tmp_path):
    found = [comparison(1e-6, 8e-6, c=2e-6), Comparison(WORKLOAD, bytes=1.0, timings={})]
    figures = results.as_json(found, None, MACHINE, measure.QUICK)
    write_page(figures, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    assert f"Measured on {date.today().isoformat()}: " in text and "5 turns of 0.02 s" in text
    assert "| dot | 1 | 0.95-1.25 | jax | 8 | 8.00 | 2 |" in text.splitlines()
    assert "| dot | no figure |  | none |  |  |  |" in text.splitlines() and "was busy" not in text
    figures["machine"]["load"] = 100.0
    write_page(figures, tmp_path / "page.md")
    assert "was busy with other work" in (tmp_path / "page.md").read_text()


def test_what_the_layers_of_a_call_cost_can_be_measured():
    calls = overhead.timed_calls()
    assert next(iter(calls)) == "machine code"
    for call in calls.values():
        call()
