"""What continues from place to place along a row: running extremes, logarithms of running sums."""

import numpy as np
import pytest

import pullback as pb


def summed(x):
    return np.logaddexp.accumulate(x).sum()


@pytest.mark.parametrize(
    "x, wanted",
    [
        ([-np.inf, -np.inf, 1.0, 1.0], [0.0, 0.0, 1.5, 0.5]),
        ([-900.0, -800.0, 700.0], [1.0, 1.0, 1.0]),
        ([1e308, -1e308, 0.0], [3.0, 0.0, 0.0]),
        ([0.0, 0.0, np.nan], [np.nan, np.nan, np.nan]),
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_of_running_sums_of_exponentials(x, wanted, compiled):
    function = pb.compile(summed) if compiled else summed
    np.testing.assert_allclose(pb.grad(function)(np.array(x)), wanted, rtol=1e-14, atol=1e-40)


def test_code_of_running_sums_of_exponentials_does_not_grow():
    both = pb.compile(pb.value_and_grad(summed))
    x = np.random.default_rng(0).standard_normal(5000)
    (program,) = both.programs(x)
    assert program.source.count("log(") < 5
    np.testing.assert_allclose(both(x)[0], summed(x), rtol=1e-13)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("extreme, sign", [(np.maximum, 1.0), (np.minimum, -1.0)])
def test_a_running_extreme_has_the_gradients_of_the_places_that_it_fills(extreme, sign, compiled):
    weights = np.array([1.0, 2.0, 4.0, 8.0, 16.0])

    def loss(x):
        return (extreme.accumulate(x) * weights).sum()

    x = sign * np.array([1.0, 3.0, 2.0, 3.0, 0.0])
    function = pb.compile(loss) if compiled else loss
    np.testing.assert_array_equal(pb.grad(function)(x), [1.0, 6.0, 0.0, 24.0, 0.0])
