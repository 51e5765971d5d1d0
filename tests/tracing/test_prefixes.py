"""What paths begin with is one program: a call runs up to the decision, and goes on from there."""

import threading
from functools import partial
from typing import Any

import numpy as np
import pytest
from asking_programs import Function, gradient
from uncompiled import run_uncompiled

import pullback as pb
from pullback.codegen.program import Program

pytestmark = pytest.mark.usefixtures("partly_compiled")

X = np.linspace(0.2, 1.4, 7)


def agree(function: Function, compiled: Any, *arrays: np.ndarray) -> None:
    wanted = gradient(function, *arrays)
    np.testing.assert_allclose(compiled(*arrays), wanted[0], rtol=1e-12)
    for found, one in zip(gradient(compiled, *arrays), wanted, strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-12)


def deciding(x, w):
    hidden = pb.tanh(pb.outer(x, w))
    total = (hidden * hidden).sum()
    if total > 4:
        hidden = hidden / total
    if hidden[0, 0] > 0:
        return (hidden * w).sum()
    return pb.exp(hidden).sum()


CALLS = [(X, X), (X * 0.1, X), (-X, X), (-X * 0.1, X), (X, X * 2)]


@pytest.mark.drawn(6)
def test_values_and_gradients_through_prefixes() -> None:
    compiled, fused = pb.compile(deciding), pb.value_and_grad(deciding, (0, 1))
    for _ in range(3):
        for arrays in CALLS:
            agree(deciding, compiled, *arrays)
            value, slopes = fused(*arrays)
            for found, wanted in zip((value, *slopes), gradient(deciding, *arrays), strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_paths_share_what_they_begin_with() -> None:
    compiled = pb.compile(deciding)
    for arrays in CALLS:
        compiled(*arrays)
    chains = [compiled.programs(*arrays) for arrays in CALLS[:4]]
    assert [len(chain) for chain in chains] == [3, 3, 3, 3]
    assert len({chain[0] for chain in chains}) == 1
    assert chains[0][1] is chains[2][1] is not chains[1][1]
    source = compiled.source(*CALLS[0])
    assert source.count("tanh(x") == 2, "in the forward and in the backward function of one prefix"


@pytest.mark.drawn(4)
def test_a_deviation_runs_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def counting(program: Program, arrays: Any) -> Any:
        ran.append(program.name)
        return run_uncompiled(program, arrays)

    monkeypatch.setattr(Program, "runner", property(lambda program: partial(counting, program)))
    compiled = pb.compile(deciding)
    for arrays in CALLS * 2:
        compiled(*arrays)
    for arrays in (CALLS[0], CALLS[3], CALLS[0]):
        ran.clear()
        compiled(*arrays)
        assert len(ran) == 3 and len(set(ran)) == 3


def test_source_and_explain_name_the_lines() -> None:
    compiled = pb.compile(deciding)
    for arrays in CALLS:
        compiled(*arrays)
    line = deciding.__code__.co_firstlineno + 3
    source, text = compiled.forward_source(*CALLS[0]), compiled.explain(*CALLS[0])
    for part in (
        f"deciding_to_line_{line}",
        f"deciding_to_line_{line + 2}",
        f"deciding_from_line_{line + 2}",
    ):
        assert part in source and part in text
    assert "path of 2 calls" in text and "4 of at most 64 paths" in text


@pytest.mark.drawn(4)
def test_a_loop_of_the_program_is_handed_on() -> None:
    def summed(x):
        def step(carry, row):
            return carry * 0.5 + row, pb.sin(carry)

        last, rows = pb.scan(step, x[0] * 0, x)
        if last > 1:
            return rows.sum() * last
        return (rows * rows).sum()

    compiled = pb.compile(summed)
    for scale in (1.0, 0.3, 1.2, 0.2, -1.0):
        agree(summed, compiled, X * scale)
    assert len(compiled.programs(X)) == 2


@pytest.mark.drawn(4)
def test_what_only_one_path_needs_is_its_own() -> None:
    def chosen(x):
        costly = pb.exp(pb.sin(x)).sum()
        other = pb.tanh(x).sum()
        if x.sum() > 0:
            return costly
        return other

    compiled = pb.compile(chosen)
    for scale in (1.0, -1.0, 2.0, -2.0):
        agree(chosen, compiled, X * scale)
    first, rest = compiled.programs(X)
    assert "exp" not in first.source and "exp" in rest.source
    assert "tanh" not in first.source + rest.source


@pytest.mark.drawn(4)
def test_globals_constants_and_closures_reach_all_prefixes() -> None:
    table, weight = np.arange(7.0), pb.tensor(X.copy(), requires_grad=True)

    def reaching(x):
        scaled = x * table + np.ones(7)
        total = (scaled * weight).sum()
        if total > 3:
            return (scaled * weight * table).sum()
        return (scaled + weight).sum() + np.full(7, 2.0) @ scaled

    compiled = pb.compile(reaching)
    for scale in (1.0, -1.0, 2.0, 0.1):
        for function in (compiled, reaching):
            weight.grad = None
            function(pb.tensor(X * scale)).backward()
            if function is compiled:
                found = weight.grad.numpy().copy()
        np.testing.assert_allclose(found, weight.grad.numpy())
    table[:] = 3.0
    np.testing.assert_allclose(compiled(X).detach().numpy(), reaching(pb.tensor(X)).detach().numpy())


@pytest.mark.drawn(4)
def test_a_question_about_one_of_several_equal_constants() -> None:
    def counted(x, y):
        first = np.array([y[0], 1.0, 2.0])
        rows = np.argwhere(x > 0).shape[0]
        second = np.array([y[0], 1.0])
        return rows * first if np.array_equal(second, second) else second

    compiled = pb.compile(counted)
    for x in (X, -X, X - 1, -X):
        np.testing.assert_array_equal(compiled(x, X), counted(x, X))


@pytest.mark.drawn(6)
def test_second_derivatives() -> None:
    def f(x):
        y = pb.sin(x) * x
        total = y.sum()
        return (y**3).sum() * total if total > 1 else (y * total).sum()

    for scale in (1.0, 0.2, -1.0):
        twice, wanted = pb.compile(pb.grad(lambda x: (pb.grad(f)(x) ** 2).sum())), pb.hessian(f)(X * scale)
        np.testing.assert_allclose(twice(X * scale), 2 * wanted @ pb.grad(f)(X * scale), rtol=1e-10)
    compiled = pb.compile(f)
    for scale in (1.0, 0.2, 1.0, 0.2):
        x = pb.tensor(X * scale, requires_grad=True)
        (first,) = pb.autograd.grad(compiled(x), x, create_graph=True)
        (second,) = pb.autograd.grad((first * first).sum(), x)
        wanted = 2 * pb.hessian(f)(X * scale) @ pb.grad(f)(X * scale)
        np.testing.assert_allclose(second.numpy(), wanted, rtol=1e-10)


def test_a_line_that_is_asked_again_keeps_paths_whole() -> None:
    def doubled(x):
        while (x * x).sum() < 100:
            x = x * 2
        return x.sum()

    compiled = pb.compile(doubled)
    for scale in (1.0, 0.1, 0.01, 1.0):
        agree(doubled, compiled, X * scale)
    assert len(compiled.programs(X)) == 1


@pytest.mark.drawn(4)
@pytest.mark.parametrize("answer", ["int(x[0])", "int(x[0]) % 2", "len(x[x > 0.5])", "bool(x[1] > 0.5)"])
def test_any_exact_answer_divides(answer: str) -> None:
    namespace: dict[str, Any] = {"pb": pb}
    text = f"y = pb.exp(x) * x\n    chosen = {answer}\n    return (y * y).sum() * chosen"
    exec(f"def f(x):\n    {text}", namespace)
    compiled = pb.compile(namespace["f"])
    for scale in (1.0, 9.0, 20.0, 0.1, 1.0, 9.0):
        agree(namespace["f"], compiled, X * scale)
    assert len(compiled.programs(X)) == 2
    assert len({compiled.programs(X * scale)[0] for scale in (1.0, 9.0, 20.0)}) == 1


def test_paths_with_other_structures_of_results() -> None:
    def parts(x):
        y = np.sin(x)
        if np.sum(y) > 2:
            return {"a": y, "b": (np.sum(y), 3)}
        return [y * 2]

    compiled = pb.compile(parts)
    for _ in range(2):
        first, second = compiled(X), compiled(X * 0.1)
        assert type(first["b"][0]) is np.float64 and first["b"][1] == 3
        np.testing.assert_allclose(first["a"], np.sin(X))
        np.testing.assert_allclose(second[0], 2 * np.sin(X * 0.1))


@pytest.mark.drawn(6)
def test_a_value_that_is_asked_for_on_two_lines() -> None:
    """In the merged graph it is one node, and the first line decides."""

    def asked_twice(x):
        if x.sum() > 3:
            return x.sum()
        y = pb.sin(x) if (x * 2)[1] > 0 else x * 3
        if x[2] > 0.5:
            y = y * x
        return (y * 4 if (x * 2)[1] > 0 else y).sum()

    compiled = pb.compile(asked_twice)
    flipped = X * np.array([1, -1, 1, 1, 1, 1, -1]) * 0.5
    for x in (X, X * 0.4, flipped, X, -X, flipped, X * 0.4):
        agree(asked_twice, compiled, x)


def test_threads_go_through_prefixes() -> None:
    compiled = pb.compile(deciding)
    wanted = [deciding(*map(pb.tensor, arrays)).item() for arrays in CALLS]
    failed: list[Any] = []

    def work(offset: int) -> None:
        for number in range(60):
            place = (number + offset) % len(CALLS)
            if abs(compiled(*CALLS[place]) - wanted[place]) > 1e-12:
                failed.append(place)

    threads = [threading.Thread(target=work, args=(offset,)) for offset in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failed and compiled.cache_info().traces == 4
