"""The printed form of tensors: fixed texts, and PyTorch's own text on random tensors."""

import doctest
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from extent import examples

import pullback as pb
from pullback.runtime.values import printing
from pullback.runtime.values.printing import format_scalar, format_tensor, printoptions, set_printoptions

FLOATS = ["float16", "float32", "float64"]
COMPLEXES = ["complex64", "complex128"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
THRESHOLDS = [0.0, -0.0, 1.0, 2.5, 0.1, np.nan, np.inf, -np.inf, 1e3, 1001.0, 1e8, 1.0001e8, 1e-4, 9.9999e-5]
CASES_PER_DTYPE = 120


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    """Every test starts and ends with the options that PyTorch starts with."""
    set_printoptions(profile="default")
    yield
    set_printoptions(profile="default")


def text_of(values: object, dtype: str = "float32", **options: Any) -> str:
    return format_tensor(np.array(values, dtype=dtype), dtype_name=dtype, **options)


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        (1.0, "float32", "tensor(1.)"),
        (1.5, "float64", "tensor(1.5000, dtype=torch.float64)"),
        (3, "int64", "tensor(3)"),
        (3, "int32", "tensor(3, dtype=torch.int32)"),
        (True, "bool", "tensor(True)"),
        ([True, False], "bool", "tensor([ True, False])"),
        ([1, -20], "int64", "tensor([  1, -20])"),
        ([1, 255], "uint8", "tensor([  1, 255], dtype=torch.uint8)"),
        ([2**63 - 1, -(2**63)], "int64", "tensor([ 9223372036854775807, -9223372036854775808])"),
        ([1.0, 2.0], "float16", "tensor([1., 2.], dtype=torch.float16)"),
        ([1.0, -2.5], "float32", "tensor([ 1.0000, -2.5000])"),
        ([0.0, -0.0], "float32", "tensor([0., -0.])"),
        ([1 + 2j, 3.5 - 4j], "complex64", "tensor([1.0000+2.j, 3.5000-4.j])"),
        (1 + 2j, "complex128", "tensor(1.+2.j, dtype=torch.complex128)"),
    ],
)
def test_values_and_dtype(values: object, dtype: str, expected: str) -> None:
    assert text_of(values, dtype) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([np.nan, np.inf, -1.0], "tensor([nan, inf, -1.])"),
        ([1.5, np.nan], "tensor([1.5000,    nan])"),
        ([np.nan, 1e9], "tensor([       nan, 1.0000e+09])"),
        ([np.nan, np.nan], "tensor([nan, nan])"),
        ([-np.inf, -0.0], "tensor([-inf, -0.])"),
    ],
)
def test_nan_and_infinity(values: list[float], expected: str) -> None:
    assert text_of(values) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (1e8, "tensor(100000000.)"),
        ([1e8, 2e8], "tensor([1.0000e+08, 2.0000e+08])"),
        ([1.0, 1000.0], "tensor([   1., 1000.])"),
        ([1.0, 1001.0], "tensor([1.0000e+00, 1.0010e+03])"),
        ([0.5, 500.0], "tensor([  0.5000, 500.0000])"),
        ([0.5, 501.0], "tensor([5.0000e-01, 5.0100e+02])"),
        ([0.0, 1e-5], "tensor([0.0000e+00, 1.0000e-05])"),
        # The float32 nearest to 1e-4 is less than 1e-4.
        ([1e-4], "tensor([1.0000e-04])"),
    ],
)
def test_scientific_notation_starts_where_plain_notation_loses_digits(values: object, expected: str) -> None:
    assert text_of(values) == expected


def test_float64_is_compared_exactly_with_the_smallest_plain_value() -> None:
    assert text_of([1e-4], "float64", default_float="float64") == "tensor([0.0001])"


@pytest.mark.parametrize(
    ("shape", "dtype", "expected"),
    [
        ((0,), "float32", "tensor([])"),
        ((0, 3), "float32", "tensor([], size=(0, 3))"),
        ((2, 0, 3), "float64", "tensor([], size=(2, 0, 3), dtype=torch.float64)"),
        # Without values, the dtypes of Python's integers and booleans do not show.
        ((0,), "int64", "tensor([], dtype=torch.int64)"),
        ((0,), "bool", "tensor([], dtype=torch.bool)"),
        ((0,), "complex64", "tensor([], dtype=torch.complex64)"),
    ],
)
def test_empty(shape: tuple[int, ...], dtype: str, expected: str) -> None:
    assert format_tensor(np.zeros(shape, dtype), dtype_name=dtype) == expected


def test_matrices_stand_apart_by_an_empty_line() -> None:
    assert format_tensor(np.arange(8).reshape(2, 2, 2), dtype_name="int64") == (
        "tensor([[[0, 1],\n"
        "         [2, 3]],\n"
        "\n"
        "        [[4, 5],\n"
        "         [6, 7]]])"
    )  # fmt: skip


def test_long_rows_are_wrapped_and_aligned() -> None:
    assert format_tensor(np.arange(30, dtype="float32"), dtype_name="float32") == (
        "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,\n"
        "        14., 15., 16., 17., 18., 19., 20., 21., 22., 23., 24., 25., 26., 27.,\n"
        "        28., 29.])"
    )


def test_large_tensors_are_summarised_along_every_long_dimension() -> None:
    assert format_tensor(np.arange(2000).reshape(2, 1000), dtype_name="int64") == (
        "tensor([[   0,    1,    2,  ...,  997,  998,  999],\n"
        "        [1000, 1001, 1002,  ..., 1997, 1998, 1999]])"
    )
    assert format_tensor(np.zeros((20, 60), "float32"), dtype_name="float32") == (
        "tensor([[0., 0., 0.,  ..., 0., 0., 0.],\n"
        "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "        ...,\n"
        "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "        [0., 0., 0.,  ..., 0., 0., 0.]])"
    )


def test_the_summary_starts_above_the_threshold() -> None:
    assert "..." not in format_tensor(np.zeros(1000), dtype_name="float64")
    assert "..." in format_tensor(np.zeros(1001), dtype_name="float64")


def test_the_format_is_chosen_from_what_a_summary_shows() -> None:
    values = np.zeros(2000, dtype="float32")
    values[1000] = 1e30
    assert format_tensor(values, dtype_name="float32") == "tensor([0., 0., 0.,  ..., 0., 0., 0.])"


def test_gradient_suffix() -> None:
    assert text_of([1.0], requires_grad=True) == "tensor([1.], requires_grad=True)"
    assert text_of([1.0], requires_grad=True, grad_fn_name="AddBackward0") == (
        "tensor([1.], grad_fn=<AddBackward0>)"
    )
    assert text_of([], requires_grad=True, dtype="float64") == (
        "tensor([], dtype=torch.float64, requires_grad=True)"
    )


def test_a_suffix_that_does_not_fit_takes_its_own_line() -> None:
    assert text_of([0.0] * 17, requires_grad=True) == (
        "tensor([0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0.],\n"
        "       requires_grad=True)"
    )
    assert format_tensor(np.zeros((2, 600)), dtype_name="float64", grad_fn_name="MulBackward0") == (
        "tensor([[0., 0., 0.,  ..., 0., 0., 0.],\n"
        "        [0., 0., 0.,  ..., 0., 0., 0.]], dtype=torch.float64,\n"
        "       grad_fn=<MulBackward0>)"
    )


def test_every_bracket_leaves_less_room_in_a_line() -> None:
    with printoptions(linewidth=15):
        assert text_of([1.0, 1.0]) == "tensor([1., 1.])"
        assert text_of([[1.0, 1.0]]) == "tensor([[1.,\n         1.]])"


def test_zeros_and_nans_alone_are_plain_even_in_scientific_mode() -> None:
    with printoptions(sci_mode=True):
        assert text_of([np.nan, 0.0]) == "tensor([nan, 0.])"


def test_a_dimension_that_its_edges_cover_is_shown_whole() -> None:
    with printoptions(threshold=5):
        assert text_of(range(6), "int64") == "tensor([0, 1, 2, 3, 4, 5])"
        assert text_of(range(7), "int64") == "tensor([0, 1, 2,  ..., 4, 5, 6])"


def test_suffixes_fill_the_line_that_a_suffix_began() -> None:
    with printoptions(linewidth=40, edgeitems=0):
        text = format_tensor(np.full((12, 2), 0.5, "float16"), dtype_name="float16", requires_grad=True)
    last_lines = text.splitlines()[-2:]
    assert last_lines == ["       size=(12, 2), dtype=torch.float16,", "       requires_grad=True)"]


def test_the_default_float_is_not_named() -> None:
    assert text_of([1.0], "float64", default_float="float64") == "tensor([1.])"
    assert text_of([1.0], "float32", default_float="float64") == "tensor([1.], dtype=torch.float32)"


def test_the_prefix_sets_the_indent() -> None:
    assert text_of([[1.0], [2.0]], prefix="Weights") == "Weights([[1.],\n         [2.]])"


def test_options_stay_until_they_are_set_again() -> None:
    set_printoptions(precision=2)
    set_printoptions(sci_mode=True)
    assert text_of([1.5]) == "tensor([1.50e+00])"
    set_printoptions(edgeitems=1, threshold=2)  # and sci_mode returns to None
    assert text_of([1.5, 2.5, 3.5]) == "tensor([1.50,  ..., 3.50])"
    set_printoptions(profile="full", linewidth=20)
    assert text_of([1.5, 2.5, 3.5]) == "tensor([1.5000,\n        2.5000,\n        3.5000])"
    set_printoptions(profile="short")
    assert text_of(np.full(1001, 0.5)) == "tensor([0.50, 0.50,  ..., 0.50, 0.50])"


def test_an_unknown_profile_is_refused_and_changes_nothing() -> None:
    with pytest.raises(ValueError, match="'default', 'short', 'full'"):
        set_printoptions(profile="long", precision=1)
    assert text_of([1.5]) == "tensor([1.5000])"


def test_printoptions_returns_to_the_former_options() -> None:
    set_printoptions(precision=3, sci_mode=False)
    with pytest.raises(KeyError), printoptions(precision=1, sci_mode=True):
        assert text_of([1.5]) == "tensor([1.5e+00])"
        raise KeyError
    assert text_of([1e-5, 1.0]) == "tensor([0.000, 1.000])"


def test_format_scalar() -> None:
    assert format_scalar(np.array(1.23456), ".3f") == "1.235"
    assert format_scalar(np.array(3)) == "3"
    assert format_scalar(np.array([3])) == "[3]"
    with pytest.raises(TypeError, match="unsupported format string"):
        format_scalar(np.array([3.0]), ".3f")


def test_examples_in_the_docstrings() -> None:
    results = doctest.testmod(printing, extraglobs={"tensor": pb.tensor})
    assert results.attempted > 0
    assert results.failed == 0


def random_floats(rng: np.random.Generator, size: int) -> np.ndarray:
    """Numbers of one of the kinds that choose between the notations, some with nans or infinities."""
    kinds = [
        lambda: rng.normal(size=size),
        lambda: rng.normal(size=size) * 10.0 ** rng.integers(-12, 13),
        lambda: rng.normal(size=size) * 10.0 ** rng.uniform(-6, 9, size=size),
        lambda: np.round(rng.normal(size=size) * 10.0 ** rng.integers(0, 10)),
        lambda: rng.choice(THRESHOLDS, size=size),
        lambda: np.full(size, rng.choice([*THRESHOLDS, 5e-324, 1e308])),
        lambda: rng.integers(0, 2, size=size) * rng.choice([1.0, 0.5, 1e9, 1e-9]),
        lambda: 10.0 ** rng.integers(-45, 38, size=size),
    ]
    values = kinds[rng.integers(len(kinds))]()
    if rng.random() < 0.2:
        values = np.where(rng.random(size) < 0.3, rng.choice([np.nan, np.inf, -np.inf]), values)
    return values


def random_array(rng: np.random.Generator, dtype: str) -> np.ndarray:
    """An array of up to 5 dimensions; about a fifth are large enough for a summary."""
    sizes = [0, 1, 2, 3, 4, 5, 7, 9, 20]
    probabilities = [0.03, 0.15, 0.2, 0.2, 0.12, 0.1, 0.1, 0.06, 0.04]
    shape = rng.choice(sizes, size=rng.integers(0, 6), p=probabilities).tolist()
    if rng.random() < 0.2:
        shape = [*shape[:2], int(rng.choice([999, 1000, 1001, 1500]))]
    size = int(np.prod(shape))
    if dtype == "bool":
        values = rng.random(size) < 0.5
    elif dtype in INTEGERS:
        limits = np.iinfo(dtype)
        low, high = [(limits.min, limits.max), (0, 9), (0, 100)][rng.integers(3)]
        values = rng.integers(low, high, size=size, dtype=dtype, endpoint=True)
    else:
        values = random_floats(rng, size)
        if dtype in COMPLEXES:
            values = values.astype("complex128")
            values.imag = random_floats(rng, size)
        with np.errstate(over="ignore", under="ignore"):
            values = values.astype(dtype)
    return values.reshape(shape)


def random_options(rng: np.random.Generator) -> dict[str, Any]:
    """Arguments of `set_printoptions`; none in half of the cases."""
    if rng.random() < 0.5:
        return {}
    choices: dict[str, list] = {
        "profile": ["default", "short", "full"],
        "precision": [0, 1, 2, 3, 6, 8],
        "threshold": [0, 1, 5, 20, 100],
        "edgeitems": [0, 1, 2, 4, 5],
        "linewidth": [1, 3, 10, 20, 40, 79, 81, 200],
        "sci_mode": [True, False],
    }
    return {
        name: values[rng.integers(len(values))] for name, values in choices.items() if rng.random() < 0.35
    }


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEXES, *INTEGERS, "bool"])
def test_random_tensors_print_as_in_pytorch(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    try:
        for seed in range(examples(CASES_PER_DTYPE)):
            rng = np.random.default_rng(seed)
            array, options = random_array(rng, dtype), random_options(rng)
            default_float = FLOATS[rng.integers(3)] if rng.random() < 0.3 else "float32"
            tensor = torch.from_numpy(array.copy())
            if dtype in FLOATS + COMPLEXES and rng.random() < 0.7:
                tensor.requires_grad_()
                if rng.random() < 0.6:
                    tensor = tensor.view_as(tensor)
            for module in (torch, printing):
                module.set_printoptions(profile="default")
                module.set_printoptions(**options)
            torch.set_default_dtype(getattr(torch, default_float))
            actual = format_tensor(
                array,
                dtype_name=dtype,
                requires_grad=tensor.requires_grad,
                grad_fn_name=tensor.grad_fn.name() if tensor.grad_fn is not None else None,
                default_float=default_float,
            )
            assert actual == repr(tensor), f"seed {seed}, shape {array.shape}, {options}, {default_float}"
    finally:
        torch.set_printoptions(profile="default")
        torch.set_default_dtype(torch.float32)
