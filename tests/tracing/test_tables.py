"""Tables of pandas's in a compiled function: what is asked of them is asked anew, and numbers are inputs."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import OutputError

pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.usefixtures("partly_compiled")

W = np.array([0.3, -0.7, 1.1])
Program = Callable[[Any, Any], Any]


def made(seed: int, rows: int = 6) -> Any:
    rng = np.random.default_rng(seed)
    columns = {name: rng.normal(size=rows) for name in "xyz"}
    return pd.DataFrame({**columns, "k": rng.integers(0, 9, rows), "g": ["a", "b", "c"] * (rows // 3)})


def regression(table: Any, w: Any) -> Any:
    design = np.column_stack([np.ones(len(table)), table[["x", "z"]]])
    return ((table["y"] - design @ w) ** 2).sum() / len(table)


def standardised(table: Any, w: Any) -> Any:
    known = table[["x", "y", "z"]]
    return ((((known - known.mean()) / known.std()).values @ w) ** 2).sum() + np.asarray(known).prod() * w[0]


def of_groups(table: Any, w: Any) -> Any:
    parts = [(part["y"] - w[place]) ** 2 for place, (_, part) in enumerate(table.groupby("g"))]
    return sum(part.sum() for part in parts) + (w[table["g"].astype("category").cat.codes] ** 2).sum()


def through_numpy(table: Any, w: Any) -> Any:
    table = table.assign(u=np.log(table["x"].values ** 2))  # which goes back into a table
    table.loc[table["u"] < 0, "y"] = np.nan
    known = table["u"] * table["y"].fillna(1.0) - 2.0 * np.exp(table["z"].mean())
    return (known.to_numpy() * w[0]).sum() + table.iloc[1, 2] * w[1] * w[2]


def row_by_row(table: Any, w: Any) -> Any:
    rows = [row.x * w[0] + row.k for row in table.itertuples()]
    return sum(rows) + sum(x * w[1] ** 2 for x in table["x"]) + w[2] * table["z"].to_list()[-1]


def by_its_library(table: Any, w: Any) -> Any:
    both = pd.concat([table["x"], table["y"].shift(1).dropna()]).to_numpy()
    return (both * w[0]).sum() + (pd.get_dummies(table["g"]).to_numpy(dtype=float) @ w).sum() * w[1]


def written_into(table: Any, w: Any) -> Any:
    design = np.array(table[["x", "y", "z"]])
    design -= design.mean(axis=0)
    design[0] = 1.0
    return (design @ w).sum()


PROGRAMS: list[Program] = [
    regression, standardised, of_groups, through_numpy, row_by_row, by_its_library, written_into,
]  # fmt: skip


@pytest.mark.part(3)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_a_program_holds_for_other_numbers(program: Program) -> None:
    held = [made(0)]
    of_argument = pb.compile(pb.value_and_grad(program, argnums=1))
    of_captured = pb.compile(lambda w: program(held[0], w))
    for seed in range(3):
        held[0] = made(seed)
        value, gradient = of_argument(held[0], W)
        assert value == pytest.approx(program(held[0], W)) == of_captured(W)
        np.testing.assert_allclose(gradient, pb.grad(program, argnums=1)(held[0], W), rtol=1e-9)
    held[0].iloc[0, 0] = 2.5
    assert of_argument(held[0], W)[0] == pytest.approx(program(held[0], W)) == of_captured(W)
    assert of_argument.cache_info().traces == of_captured.cache_info().traces == 1


def test_other_rows_columns_and_dtypes_are_traced_anew() -> None:
    def loss(table: Any, w: Any) -> Any:
        weights = table["weight"].to_numpy() if "weight" in table else 1.0
        return (table["x"].to_numpy() * weights * w).sum()

    compiled = pb.compile(loss)
    table = made(0)
    for count, other in enumerate(
        (table, made(1, 9), table.astype({"x": "float32"}), table.assign(weight=2.0)), 1
    ):
        for _ in range(2):
            assert compiled(other.copy(), 0.5) == pytest.approx(loss(other, 0.5))
        assert compiled.cache_info().traces == count
    assert compiled(table.assign(unused=1.0), 0.5) == pytest.approx(loss(table, 0.5))
    assert compiled.cache_info().traces == count


def test_what_decides_is_a_guard() -> None:
    def loss(table: Any, w: Any) -> Any:
        if type(table) is not pd.DataFrame or table.empty:
            return w
        largest = w * table["x"].max() if table["x"].max() > 1.0 else w + table["k"].sum()
        return largest * (3.0 if (table["g"] == "a").any() else 5.0) * table.attrs.get("scale", 1.0)

    held = made(0)
    compiled = pb.compile(lambda w: loss(held, w))
    for change in (
        lambda: None,
        lambda: held.__setitem__("x", 3.0),
        lambda: held.__setitem__("x", 0.5),
        lambda: held.__setitem__("g", "other"),
        lambda: held.attrs.__setitem__("scale", 7.0),
        lambda: held.__delitem__("y"),
    ):
        change()
        for _ in range(2):
            assert compiled(1.5) == pytest.approx(loss(held, 1.5))


def test_where_it_can_not_be_followed_the_content_is_a_guard() -> None:
    factor = 2.0

    def changing(table: Any, w: Any) -> Any:
        table["u"] = table["x"] * 2.0
        return table["u"].to_numpy().sum() * w

    def given_a_closure(table: Any, w: Any) -> Any:
        return table["x"].apply(lambda x: x * factor).sum() * w

    def drawing(table: Any, w: Any) -> Any:
        return table.sample(2)["x"].sum() * w

    for program, reason in ((changing, "table is changed"), (given_a_closure, "an object of function")):
        compiled = pb.compile(program)
        for seed in (0, 1):
            ours, theirs = made(seed), made(seed)
            assert compiled(ours, 1.5) == pytest.approx(program(theirs, 1.5))
            pd.testing.assert_frame_equal(ours, theirs)
        assert reason in compiled.explain(made(0), 1.5)
    compiled, table = pb.compile(drawing), made(0)
    np.random.seed(1)  # noqa: NPY002
    with pytest.warns(UserWarning, match="runs uncompiled"):
        found = [compiled(table, 1.0) for _ in range(2)]
    np.random.seed(1)  # noqa: NPY002
    assert found == [drawing(table, 1.0) for _ in range(2)]


def test_tables_are_no_results_and_are_not_kept() -> None:
    with pytest.raises(OutputError, match=r"\.to_numpy\(\)"):
        pb.compile(lambda table: table["x"] * 2.0)(made(0))
    compiled = pb.compile(lambda table, w: table["x"].to_numpy().sum() * w)
    tables = [weakref.ref(table) for table in map(made, range(40)) if compiled(table, 2.0) is not None]
    gc.collect()
    assert sum(one() is not None for one in tables) < 20 and compiled.cache_info().traces == 1
