"""What notebooks show of compiled functions, sources, graphs and Tensors."""

import importlib
import itertools
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.runtime.notebooks import page
from pullback.tracer import drawing

X, W = np.linspace(0, 1, 5), np.full(5, 0.3)


def scaled(x: Any) -> Any:
    return x * 2.0


@pb.compile
def energy(x: Any, w: Any) -> Any:
    hidden = pb.tanh(scaled(x) * w)
    gate = pb.exp(-hidden * hidden)
    return (hidden * gate).sum()


class Parsed(HTMLParser):
    """The tags of a page, which must close in order, and its text."""

    VOID = ("br", "hr", "meta")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, Any]]] = []
        self.text = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, Any]]) -> None:
        self.found.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, Any]]) -> None:
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data


def test_a_page_has_the_whole_source_and_the_users_lines() -> None:
    source = pb.value_and_grad(energy).source(X, W)
    page = Parsed(source._repr_html_())
    shown = page.text.split("\n")
    for line in source.splitlines():
        assert any(line in one for one in shown), line
    assert "def scaled(x: Any) -> Any:" in page.text  # which the function calls
    assert "@pb.compile" in page.text


def test_lines_are_linked_with_those_that_they_come_from() -> None:
    page = Parsed(pb.value_and_grad(energy).source(X, W)._repr_html_())
    targets = {one["id"] for _, one in page.found if "id" in one}
    links = [one for tag, one in page.found if tag == "a"]
    assert links
    assert {link["href"].removeprefix("#") for link in links} <= targets
    assert any(link.get("class") == "pb-backward" for link in links)
    assert any(link.get("class") is None for link in links)


def test_a_line_of_the_source_names_each_place_that_it_is_computed_for() -> None:
    (program,) = pb.value_and_grad(energy).programs(X, W)
    assert "".join(f"{line}\n" for line, _ in program.located_source) == program.source
    found = {line.strip().partition("  ")[0]: origins for line, origins in program.located_source}
    (tanh,) = [origins for line, origins in found.items() if line.startswith("hidden = tanh(")]
    assert tanh[0].text == "hidden = pb.tanh(scaled(x) * w)"
    assert not any(origins for line, origins in found.items() if line.startswith(("def ", "for ", "import")))


def test_two_pages_have_no_name_in_common() -> None:
    source = pb.value_and_grad(energy).source(X, W)
    one, other = ({a["id"] for _, a in Parsed(source._repr_html_()).found if "id" in a} for _ in range(2))
    assert not one & other


def test_pages_of_two_sessions_have_no_name_in_common(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook keeps the pages of former sessions, in which numbers began anew."""
    identities = []
    for function in (energy, lambda x, w: (x * w).sum()):
        monkeypatch.setattr(page, "_numbers", itertools.count(1))
        found = Parsed(pb.value_and_grad(pb.compile(function)).source(X, W)._repr_html_()).found
        identities.append({a["id"] for _, a in found if "id" in a})
    assert not identities[0] & identities[1]


def test_a_graph_is_shown_as_text() -> None:
    graph = energy.graph(X, W)
    assert repr(graph) == str(graph) and "tanh(" in repr(graph) and "filename=" not in repr(graph)


@pytest.mark.drawn(4)
def test_a_function_shows_what_its_latest_kind_of_call_has_made() -> None:
    fresh = pb.compile(lambda x: pb.tanh(x).sum())
    assert "has not been called yet" in Parsed(fresh._repr_html_()).text
    fresh(X)
    assert "total += tanh(x[i])" in Parsed(fresh._repr_html_()).text
    fresh(pb.tensor(X, requires_grad=True)).backward()
    text = Parsed(fresh._repr_html_()).text
    assert "_forward_" in text
    assert "_backward_" in text


def test_looking_at_a_function_traces_nothing() -> None:
    fresh = pb.compile(lambda: pb.ones(3))
    fresh._repr_html_()
    assert fresh.cache_info().traces == 0


def test_of_a_module_that_was_reloaded_the_new_lines_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "reloaded_model.py"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path.write_text("def scaled(x):\n    old = x * 2.0\n    return old.sum()\n")
    module = importlib.import_module("reloaded_model")
    assert "old = x * 2.0" in pb.compile(module.scaled).source(X)
    path.write_text("# moved\ndef scaled(x):\n    renewed = x * 5.0 + x\n    return renewed.sum()\n")
    importlib.reload(module)
    source = pb.compile(module.scaled).source(X)
    assert "reloaded_model.py:3  renewed = x * 5.0 + x" in source
    assert "old" not in source
    assert "renewed = " in Parsed(source._repr_html_()).text


def test_text_of_the_users_is_no_markup() -> None:
    @pb.compile
    def compared(x: Any) -> Any:
        return pb.where(x < 0.5, x, "<b>" and x * 2).sum()  # <i>

    compared(X)
    assert not {"b", "i"} & {tag for tag, _ in Parsed(compared._repr_html_()).found}


def test_a_method_shows_its_functions_page() -> None:
    class Model:
        @pb.compile
        def loss(self, x: Any) -> Any:
            return (x * x).sum()

    model = Model()
    model.loss(X)
    assert "compiled method loss" in Parsed(model.loss._repr_html_()).text


def test_sources_are_strings_that_pickle_as_such() -> None:
    import pickle

    source = energy.source(X, W)
    assert isinstance(source, str)
    assert type(pickle.loads(pickle.dumps(source))) is str


# --- pictures ---------------------------------------------------------------------------------------------


def test_the_picture_shows_each_loop_and_array() -> None:
    from pullback.runtime.notebooks.picture import picture

    w = pb.tensor(np.ones((30, 20)), requires_grad=True)
    network = pb.compile(lambda w, x: (pb.tanh(x @ w) ** 2).mean())
    network(w, np.ones((200, 30)))
    explained = network.explain(as_data=True)
    for account in (*explained.forward, *(one.account for one in explained.backward)):
        page = Parsed(picture(account))
        for array in account.arrays:
            assert f"{array.name}: " in page.text
        kinds = [one.get("class") for tag, one in page.found if tag == "rect"]
        assert "pb-nest" in kinds
        assert sum("pb-bar" in kind for kind in kinds) >= len(account.arrays)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("missing", [(), ("graphviz",)])
def test_a_graph_as_a_picture(missing: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("networkx")
    pytest.importorskip("matplotlib")
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    found = energy.graph(X, W).svg()
    assert found.startswith("<svg")
    assert found._repr_svg_() == found
    for word in ("hidden", "tanh", "gate", "float64[5]"):
        assert word in found


def test_the_layers_of_a_picture_put_inputs_beside_their_reader() -> None:
    def chained(x: Any, y: Any) -> Any:
        return pb.exp(pb.sin(pb.tanh(x))) * y

    graph = pb.compile(chained).graph(X, W)
    numbers = drawing._numbers(graph)
    layers = drawing._layers(numbers)
    named = {node.name or node.operator.name: layers[number] for node, number in numbers.items()}
    assert named == {"x": 0, "tanh": 1, "sin": 2, "exp": 3, "y": 3, "multiply": 4}


def test_a_picture_takes_something_that_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("graphviz", "networkx", "matplotlib"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(pb.errors.UnsupportedError, match=r"pullback\[graphviz\].*pullback\[plot\]"):
        energy.graph(X, W).svg()


# --- Tensors ------------------------------------------------------------------------------------------------


def cells(tensor: pb.Tensor) -> list[str]:
    page = tensor._repr_html_()
    Parsed(page)
    return re.findall("<td>(.*?)</td>", page)


@pytest.mark.parametrize(
    ("tensor", "shown"),
    [
        (pb.tensor([[1.0, 2.5], [3.0, 4.0]]), ["1.0000", "2.5000", "3.0000", "4.0000"]),
        (pb.tensor(7), ["7"]),
        (pb.tensor([True, False]), ["True", "False"]),
        (pb.arange(8).reshape(2, 2, 2), [str(n) for n in range(8)]),
        (pb.zeros(0), []),
        (pb.zeros(2, 0), []),
    ],
)
def test_a_tensor_is_a_table(tensor: pb.Tensor, shown: list[str]) -> None:
    assert cells(tensor) == shown


def test_of_a_large_tensor_the_edges_are_shown() -> None:
    assert len(cells(pb.zeros(2000))) == 7
    assert len(cells(pb.zeros(100, 100))) == 49


def test_a_tensor_says_what_it_is() -> None:
    x = pb.ones(3, requires_grad=True)
    assert "float32 · shape (3,) · 12 bytes · requires grad" in Parsed(x._repr_html_()).text
    assert "grad_fn SumBackward0" in Parsed(x.sum()._repr_html_()).text
