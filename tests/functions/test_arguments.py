"""Every public function with whatever may be given where it takes a Tensor.

Each function is called as the example of its docstring does, with something else in the place of one Tensor.
Arrays and numbers count as the Tensors they stand for; what can't be one is refused by an error of pullback's
that names the function and the argument; nothing else than such an error ever comes out.
"""

import contextlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from public_names import Call, example_call, of_tensors

import pullback as pb
from pullback.errors import ArgumentError, PullbackError
from pullback.runtime.functions.tensor_arguments import TensorArguments

FUNCTIONS = of_tensors()
WITHOUT_EXAMPLE = {name for name in FUNCTIONS if name.endswith("_")} | {
    f"pullback.{name}" for name in ("detach", "rand_like", "randint_like", "randn_like")
}  # fmt: skip
"""What writes in place, and what takes a tensor's shape and dtype alone."""
RANDOM = {
    "alpha_dropout", "bernoulli", "dropout", "dropout1d", "dropout2d", "dropout3d", "empty_like",
    "feature_alpha_dropout", "feature_dropout", "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices", "fractional_max_pool3d", "fractional_max_pool3d_with_indices",
    "gumbel_softmax", "multinomial", "pca_lowrank", "poisson", "rrelu", "svd_lowrank",
}  # fmt: skip
ASKS_FOR_KIND = {"is_tensor"}
Place = tuple[int | str, ...]

all_functions = pytest.mark.parametrize("full", sorted(FUNCTIONS.keys() - WITHOUT_EXAMPLE))
in_part = pytest.mark.part(8)


def tensors_in(call: Call) -> Iterator[tuple[Place, pb.Tensor]]:
    """Where the tensors are, also in lists."""
    arguments, options = call
    for key, value in (*enumerate(arguments), *options.items()):
        if isinstance(value, pb.Tensor):
            yield (key,), value
        elif type(value) in (list, tuple):
            yield from (((key, place), one) for place, one in enumerate(value) if isinstance(one, pb.Tensor))


def with_value(call: Call, place: Place, value: Any) -> Call:
    """The call with another value in one place, and copies of all other tensors."""
    arguments, options = list(map(copied, call[0])), {key: copied(one) for key, one in call[1].items()}
    held: Any = options if isinstance(place[0], str) else arguments
    if len(place) == 1:
        held[place[0]] = value
    else:
        kind = type(held[place[0]])
        held[place[0]] = kind(value if at == place[1] else one for at, one in enumerate(held[place[0]]))
    return arguments, options


def copied(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(map(copied, value))
    return value.clone() if isinstance(value, pb.Tensor) else value


def call_of(full: str) -> Call:
    call = example_call(full)
    assert call is not None, "the example of the docstring calls it"
    return call


def name_of(full: str, place: Place) -> str:
    """The parameter that a place is of."""
    if isinstance(place[0], str):
        return place[0]
    parameters = list(inspect.signature(FUNCTIONS[full]).parameters.values())
    last = parameters[-1] if parameters[-1].kind.name == "VAR_POSITIONAL" else None
    one = parameters[place[0]] if place[0] < len(parameters) else last
    assert one is not None
    return one.name


def elements(result: Any) -> list[np.ndarray]:
    """The results as arrays, one after the other."""
    if isinstance(result, list | tuple) and not isinstance(result, pb.Size):
        return [array for one in result for array in elements(one)]
    return [np.asarray(result.detach() if isinstance(result, pb.Tensor) else result)]


class Thing:
    """What nobody can compute with."""


NO_TENSORS: list[Any] = [None, "text", Thing(), {}, {1.0}, np.array(["text"]), np.array([None])]


@in_part
@all_functions
def test_what_is_no_tensor_is_refused_by_name(full: str) -> None:
    call, function = call_of(full), FUNCTIONS[full]
    names = (full.rpartition(".")[2], inspect.unwrap(function).__name__)
    for place, _ in tensors_in(call):
        name = name_of(full, place)
        for value in NO_TENSORS:
            if value is None and "None" in str(inspect.signature(function).parameters[name].annotation):
                continue
            arguments, options = with_value(call, place, value)
            try:
                function(*arguments, **options)
            except PullbackError as error:
                text = str(error)
                assert any(one.removeprefix("linalg_") in text for one in names), text
                assert re.search(rf"\b({name}|tensors|operands|other)\b", text) or place[0] == 0, text
            else:
                pytest.fail(f"{full} takes {value!r} for {name}")


@in_part
@all_functions
def test_arrays_count_as_the_tensors_they_stand_for(full: str) -> None:
    if full.rpartition(".")[2] in RANDOM:
        return
    call, function = call_of(full), FUNCTIONS[full]
    options = {key: copied(one) for key, one in call[1].items()}
    expected = elements(function(*map(copied, call[0]), **options))
    for place, tensor in tensors_in(call):
        arguments, options = with_value(call, place, tensor.detach().numpy().copy())
        found = elements(function(*arguments, **options))
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            np.testing.assert_array_equal(one, other)


def others(tensor: pb.Tensor) -> Iterator[Any]:
    """Values of other dtypes, and with other numbers of dimensions."""
    shape = tuple(tensor.shape)
    for dtype in ("bool", "int64", "complex64"):
        yield np.ones(shape, dtype)
        yield pb.ones(*shape, dtype=getattr(pb, dtype))
    for other in ((), (3,), (0,), (1, *shape), (1, 1, 1, 1, *shape)):
        yield np.ones(other)
        yield pb.ones(*other)
    yield from (1.5, 1, True, 1j, np.float64(1.0), np.int32(1), tensor.tolist(), [], [1.5, "text"])


@in_part
@all_functions
def test_nothing_but_errors_of_pullback(full: str) -> None:
    """An answer, or an error of pullback's: no AttributeError, IndexError or TypeError of others."""
    call, function = call_of(full), FUNCTIONS[full]
    for place, tensor in tensors_in(call):
        for value in others(tensor):
            arguments, options = with_value(call, place, value)
            with contextlib.suppress(PullbackError):
                function(*arguments, **options)


def test_methods_take_arrays_as_functions_do() -> None:
    x = pb.tensor([1.0, 2.0, 3.0])
    assert x.cross(np.array([0.0, 1.0, 0.0], np.float32)).tolist() == [-3.0, 0.0, 1.0]
    assert x.masked_scatter(np.array([True, False, True]), np.float32([7, 8])).tolist() == [7.0, 2.0, 8.0]
    with pytest.raises(ArgumentError, match=r"cross\(\): argument 'other' must be Tensor, not list"):
        x.cross([0.0, 1.0, 0.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pb.cross(pb.tensor(1.0), pb.tensor(1.0)), "cross(): no dimension of size 3 in input"),
        (lambda: pb.linalg.cross(pb.tensor(1.0), pb.ones(3)), "linalg.cross: inputs must have the same"),
        (lambda: pb.cross_entropy(pb.tensor(1.0), pb.tensor(1)), "Expected target of shape"),
        (lambda: pb.nn.functional.linear_cross_entropy(pb.ones(1, 1), pb.tensor(1.0), pb.tensor([0])), "()"),
        (lambda: pb.trapezoid(pb.tensor(1.0)), "trapezoid(): Dimension specified as -1 but tensor has no"),
        (lambda: pb.cdist(pb.tensor(1.0), pb.tensor(1.0)), "cdist(): rows of one size expected"),
        (lambda: pb.poisson(pb.tensor([-1.0])), "poisson(): invalid Poisson rate"),
        (lambda: pb.poisson(pb.tensor([1])), "poisson only supports floating-point dtypes for input"),
        (lambda: pb.binomial(pb.ones(2), pb.ones(3)), "binomial: shapes (2,), (3,) do not broadcast"),
        (lambda: pb.binomial(pb.ones(2), 1.5), "binomial(): probabilities must be between 0 and 1"),
        (lambda: pb.bernoulli(pb.tensor([2.0])), "bernoulli(): probabilities must be between 0 and 1"),
        (lambda: pb.orgqr(pb.ones(2, 1), pb.tensor(0.0)), "tau must have the batch dimensions of input"),
        (lambda: pb.lu_solve(pb.ones(1, 1), pb.ones(1, 1), pb.ones(1)), "'pivots' must be integers"),
    ],
)  # fmt: skip
def test_messages(call: Any, message: str) -> None:
    with pytest.raises(PullbackError, match=re.escape(message)):
        call()


def test_numbers_and_arrays_are_drawn_from() -> None:
    assert pb.binomial(3.0, 1.0) == 3.0
    drawn = pb.poisson(np.zeros(2))
    assert type(drawn) is np.ndarray and drawn.tolist() == [0.0, 0.0]
    assert type(pb.zeros_like(np.ones(2))) is np.ndarray
    assert type(pb.zeros_like(pb.ones(2))) is pb.Tensor


def test_reading_leaves_what_is_right_as_it_is() -> None:
    def function(input: "Tensor", *more: "Tensor", index: "Tensor | None" = None) -> None: ...  # noqa: F821

    read = TensorArguments(function)
    x = pb.ones(2)
    given = (x,)
    assert read(given, {})[0] is given
    (first, second), named = read((x, np.ones(2)), {"index": None})
    assert first is x and isinstance(second, np.ndarray) and second is not None and named == {"index": None}
    with pytest.raises(ArgumentError, match=r"function\(\): argument 'more\[1\]' must be Tensor, not list"):
        read((x, x, []), {})


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda m: m.addr(m.ones(1, 1, dtype=m.int64), m.ones(1), m.ones(1)), "float32"),
        (lambda m: m.matrix_power(m.ones(2, 2, dtype=m.int64), 2), "int64"),
        (lambda m: m.nn.functional.mse_loss(m.tensor(1.0, dtype=m.float64), m.ones(2)), "float64"),
        (lambda m: m.nn.functional.huber_loss(m.ones(2), m.tensor(1.0, dtype=m.float64)), "float32"),
        (lambda m: m.inner(m.ones(2), m.tensor(2)), "float32"),
        (lambda m: m.chunk(m.ones(0, 2), 3)[2], "float32"),
        (lambda m: m.nn.functional.nll_loss(m.ones(3), m.tensor([1])), "float32"),
        (lambda m: m.nn.functional.multilabel_soft_margin_loss(m.ones(2, 1), m.ones(3)), "float32"),
        (lambda m: m.cosine_similarity(m.tensor([[1, 2]]), m.tensor([[1.0, 2.0]])), "float32"),
        (lambda m: m.adjoint(m.tensor(1j)), "complex64"),
        (lambda m: m.triangular_solve(m.ones(3, 2, 1), m.ones(2, 2))[1], "float32"),
    ],
)  # fmt: skip
def test_as_pytorch_does(call: Any, expected: str) -> None:
    torch = pytest.importorskip("torch")
    found, wanted = call(pb), call(torch)
    assert str(found.dtype) == str(wanted.dtype) == f"torch.{expected}"
    np.testing.assert_allclose(np.asarray(found), wanted.resolve_conj().numpy(), rtol=1e-6)


def test_a_number_beside_a_tensor_leaves_its_dtype() -> None:
    assert pb.igamma(1.0, pb.tensor([1.0])).dtype == pb.float32


@pytest.mark.parametrize("name", ["sigmoid", "erf", "erfc", "erfinv", "lgamma", "digamma", "i0"])
def test_functions_of_scipy_keep_half_precision(name: str) -> None:
    torch = pytest.importorskip("torch")
    x = np.float16([0.25, 0.5])
    found, expected = getattr(pb, name)(pb.tensor(x)), getattr(torch, name)(torch.tensor(x))
    assert found.dtype == pb.float16
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=2e-3)


@pytest.mark.parametrize(
    "dtypes", [("float16", "int64"), ("float64", "int32"), ("float32", "float64"), ("int64", "int64")]
)
@pytest.mark.parametrize("shape", [(), (2,)])
def test_ldexp_keeps_the_dtype(dtypes: tuple[str, str], shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    x, exponents = np.full(shape, 3.0).astype(dtypes[0]), np.array([1, 3]).astype(dtypes[1])
    found = pb.ldexp(pb.tensor(x), pb.tensor(exponents))
    expected = torch.ldexp(torch.tensor(x), torch.tensor(exponents))
    assert str(found.dtype) == str(expected.dtype) and found.tolist() == expected.tolist()
