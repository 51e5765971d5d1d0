"""Draws programs at the border of Python, NumPy and traced values, as text, and runs them in every way.

    python tests/border_programs.py --count 2000 --seed 0     programs with each of `border_checks`' checks
    python tests/border_programs.py --show 17                 the text of one program
    python tests/border_programs.py --each                    each idiom alone
    python tests/border_programs.py --cases                   a table of `border_cases`

A program grows by idioms (`border_idioms.txt`): each is kept if plain NumPy runs it. One with a finding is
made smaller as long as the finding stays, and printed with what differs.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from string import Formatter
from typing import Any

import border_checks
import numpy as np
from border_checks import Case, Outcome
from uncompiled import uncompiled

LARGEST = 1e4
"""Programs whose numbers grow beyond are left: differences of large numbers are noise."""
LEAST_DEVIATION = 1e-3
"""Of equal elements the deviation has no gradient."""
DTYPES = ("np.float64", "np.float32", "float", "'float32'", "np.float16", "np.double", "'f4'")
INT_DTYPES = ("int", "np.int32", "np.int64", "np.uint8", "bool")
UNARY = (
    "np.sin", "np.cos", "np.tanh", "np.exp", "np.abs", "np.square", "np.arctan", "np.sign", "np.floor",
    "np.round", "np.negative", "np.sinh", "np.cbrt", "np.expm1", "np.rint", "np.isfinite", "abs",
)  # fmt: skip
WEIGHTS = {
    "methods": 5, "operators": 4, "conversions": 4, "containers": 3, "copies": 2, "writes": 3, "masks": 3,
    "functions": 4, "helpers": 2, "classes": 1.5, "state": 0.8, "randomness": 0.5, "pullback": 3,
    "mixtures": 2, "complex": 1.5,
}  # fmt: skip
"""How often each subject is drawn; "tensors" only in programs that have them."""
STATEFUL = frozenset(("state", "randomness"))


ARGUMENTS = {
    "vector": 8, "matrix": 4, "single": 3, "float": 3, "numpy float": 1, "int": 1.5, "ints": 1.5, "mask": 0.7,
}  # fmt: skip
"""How often each kind of argument is drawn."""


@functools.cache
def idioms() -> dict[str, list[str]]:
    """The idioms of each subject."""
    text = Path(__file__).with_name("border_idioms.txt").read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for section in re.split(r"^# ", text, flags=re.MULTILINE)[1:]:
        subject, *paragraphs = section.strip().split("\n\n")
        found[subject] = []
        for paragraph in paragraphs:
            is_one = re.search(r"^( |---$)", paragraph, flags=re.MULTILINE)
            found[subject] += [paragraph] if is_one else paragraph.split("\n")
    return found


@dataclass(frozen=True)
class Piece:
    """An idiom with names in it: the module's lines, and the function's."""

    idiom: str
    module: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    parameters: tuple[str, ...]
    arguments: tuple[str, ...]
    others: tuple[str, ...]
    pieces: tuple[Piece, ...]
    result: tuple[str, ...]
    """Terms of a sum, or what is returned alone."""
    is_stateful: bool = False

    def text(self, result: str | None = None) -> str:
        body = [line for piece in self.pieces for line in piece.lines]
        # A declaration comes first: a name may occur above it otherwise.
        declared = sorted({line for line in body if line.startswith("global ")})
        body = declared + [line for line in body if not line.startswith("global ")]
        modules = [piece.module for piece in self.pieces if piece.module]
        lines = [
            f"def f({', '.join(self.parameters)}):",
            *body,
            f"return {result or ' + '.join(self.result)}",
        ]
        return "\n".join((*modules, "\n    ".join(lines)))

    def case(self) -> Case:
        return Case(self.text(), self.arguments, self.others, self.is_stateful)


class Drawing:
    """A program while it grows, with the values that its variables have."""

    def __init__(self, seed: int, kinds: Sequence[str] = ()) -> None:
        self.rng = Random(seed)
        self.with_tensors = self.rng.random() < 0.15
        self.count = 0
        kinds = kinds or self.some_kinds()
        names = ("x", "y", "z", "k", "j", "b")[: len(kinds)]
        size = self.rng.choice((2, 3, 3, 3, 4))
        draw = [tuple(self.argument(kind, size) for kind in kinds) for _ in range(2)]
        self.program = Program(names, draw[0], draw[1], (), ("0",))
        self.values = self.run(self.program)

    def some_kinds(self) -> list[str]:
        (count,) = self.rng.choices((1, 2, 3), (2, 2, 1))
        kinds = self.rng.choices(list(ARGUMENTS), list(ARGUMENTS.values()), k=count)
        return kinds if {"vector", "matrix", "single"} & set(kinds) else ["vector", *kinds[1:]]

    def argument(self, kind: str, size: int) -> str:
        def number() -> float:
            return round(self.rng.uniform(0.1, 2.5) * self.rng.choice((1, 1, -1)), 2)

        row = [number() for _ in range(size)]
        texts = {
            "vector": f"np.array({row})", "single": f"np.array({row}, dtype=np.float32)",
            "matrix": f"np.array({[[number() for _ in range(size)] for _ in range(2)]})",
            "float": f"{number()}", "numpy float": f"np.float64({number()})",
            "int": f"{self.rng.randint(1, 5)}",
            "ints": f"np.array({[self.rng.randint(-4, 9) for _ in range(size)]})",
            "mask": f"np.array({[self.rng.random() < 0.6 for _ in range(size)]})",
        }  # fmt: skip
        return texts[kind]

    def run(self, program: Program) -> dict[str, Any] | None:
        """The variables at the end of a plain run, if both calls run."""
        case = replace(program.case(), text=program.text("dict(locals())"))
        try:
            with border_checks.quiet():
                variables = case.loaded(by_reference=not case.has_tensors)
                found: dict[str, Any] = {}
                for arguments in border_checks.calls_of(variables, border_checks.copied):
                    found = variables["f"](*arguments)
        except Exception:
            return None
        return found if all(map(is_small, found.values())) else None

    # --- names ------------------------------------------------------------------------------------------

    def named(self, test: Any) -> list[str]:
        assert self.values is not None
        return [name for name, value in self.values.items() if test(value)]

    def slot(self, letter: str, filled: dict[str, str]) -> str | None:
        rng = self.rng
        if letter in "nop":
            self.count += 1
            return f"t{self.count}"
        if letter == "N":
            self.count += 1
            return f"G{self.count}"
        if letter == "c":
            return f"{rng.uniform(-2, 3):.2f}"
        if letter == "k":
            return str(rng.randint(1, 9))
        if letter == "d":
            return rng.choice(DTYPES if rng.random() < 0.7 else INT_DTYPES)
        if letter == "f":
            return rng.choice(UNARY)
        names = self.named(TESTS[letter])
        if letter in "ub":
            shape = np.shape(self.values[filled["v"]]) if "v" in filled and self.values else None
            names = [one for one in names if self.values and shape in (None, np.shape(self.values[one]))]
        if letter == "s" and names and rng.random() < 0.3:
            names = []
        if letter == "s" and not names:
            vectors = self.named(TESTS["v"])
            return (
                f"{rng.choice(vectors)}{rng.choice(('[0]', '[-1]', '.sum()', '.mean()'))}"
                if vectors
                else None
            )
        if letter == "z" and not names and self.named(TESTS["v"]):
            vector = rng.choice(self.named(TESTS["v"]))
            return f"({vector} + 0.3j * {vector}[::-1])"
        if letter == "b" and not names and "v" in filled:
            return f"({filled['v']} > 0.3)"
        recent = names[-2:] if len(names) > 2 and rng.random() < 0.5 else names
        return rng.choice(recent) if names else None

    def filled(self, idiom: str) -> Piece | None:
        names: dict[str, str] = {}
        letters = {field for _, field, _, _ in Formatter().parse(idiom) if field}
        for letter in sorted(letters, key="vuabmsijznopNckdf".index):
            name = self.slot(letter, names)
            if name is None:
                return None
            names[letter] = name
        text = idiom.format(**names)
        module, _, body = text.rpartition("\n---\n")
        lines = [one for line in body.split("\n") for one in (line.split("; ") if line[0] != " " else [line])]
        return Piece(idiom, module, tuple(lines))

    # --- growing ----------------------------------------------------------------------------------------

    def grow(self) -> None:
        weights: dict[str, float] = dict(WEIGHTS)
        if self.with_tensors:
            weights["tensors"] = 12
        (subject,) = self.rng.choices(list(weights), list(weights.values()))
        self.add(subject, self.rng.choice(idioms()[subject]))

    def add(self, subject: str, idiom: str) -> None:
        piece = self.filled(idiom)
        if piece is None:
            return
        is_stateful = self.program.is_stateful or subject in STATEFUL or "np.random" in idiom
        grown = replace(self.program, pieces=(*self.program.pieces, piece), is_stateful=is_stateful)
        values = self.run(grown)
        if values is not None:
            self.program, self.values = grown, values

    def finish(self) -> Program:
        assert self.values is not None
        numeric = self.named(
            lambda one: border_checks.is_number(one) and np.size(border_checks.array_of(one))
        )
        made = [one for one in numeric if one not in self.program.parameters] or numeric
        rng = self.rng
        real = [one for one in made if not is_complex(self.values[one])]
        if real and rng.random() < 0.3:
            names = rng.sample(real, min(len(real), 3))
            shapes = (names[0], names[-1], f"({', '.join(names)},)", f"[{', '.join(names)}]",
                      "{" + ", ".join(f"'{one}': {one}" for one in names) + "}")  # fmt: skip
            result: tuple[str, ...] = (rng.choice(shapes),)
        else:
            names = made[-4:] + [one for one in self.program.parameters if one in numeric][:1]
            result = tuple(map(self.term, dict.fromkeys(names)))
        texts = self.named(lambda one: isinstance(one, str))
        if texts and rng.random() < 0.5:
            result = (f"({' + '.join(result)}, {texts[-1]})",)
        program = replace(self.program, result=result)
        return program if self.run(program) is not None else replace(program, result=(self.term(numeric[0]),))

    def term(self, name: str) -> str:
        assert self.values is not None
        value = self.values[name]
        if is_complex(value):
            return self.rng.choice(("np.abs({0}).sum()", "np.sum({0}).real", "np.sum({0} * 1j).real")).format(
                name
            )
        if not np.ndim(border_checks.array_of(value)):
            return self.rng.choice((name, f"{self.rng.uniform(-2, 2):.2f} * {name}"))
        if border_checks.array_of(value).dtype.kind == "f" and not isinstance(value, border_checks.pb.Tensor):
            texts = ["{0}.sum()", "{0}.sum()", "np.sum({0})", "{0}.mean()", "np.sin({0}).sum()"]
            texts += ["({0} ** 2).sum()", "np.max({0})"]
            texts += ["{0}.std()"] * bool(np.std(value) > LEAST_DEVIATION)
            return self.rng.choice(texts).format(name)
        return f"{name}.sum()"


def is_small(value: Any) -> bool:
    if not border_checks.is_number(value):
        return True
    array = border_checks.array_of(value)
    return array.dtype.kind not in "fc" or bool(
        np.all(np.isfinite(array)) and np.all(np.abs(array) < LARGEST)
    )


def is_complex(value: Any) -> bool:
    return border_checks.array_of(value).dtype.kind == "c"


def is_floats(value: Any, *ranks: int) -> bool:
    return (
        isinstance(value, np.ndarray)
        and value.dtype.kind == "f"
        and value.ndim in ranks
        and value.size <= 20
        and min(value.shape) > 1
        and bool(np.ptp(value) > LEAST_DEVIATION)
    )


TESTS: dict[str, Any] = {
    "a": lambda one: is_floats(one, 1, 2),
    "v": lambda one: is_floats(one, 1),
    "u": lambda one: is_floats(one, 1),
    "m": lambda one: is_floats(one, 2),
    "s": lambda one: isinstance(one, (float, np.floating)),
    "i": lambda one: (
        isinstance(one, np.ndarray) and one.ndim == 1 and one.dtype.kind in "iu" and one.size > 1
    ),
    "j": lambda one: isinstance(one, (int, np.integer)) and not isinstance(one, bool),
    "b": lambda one: isinstance(one, np.ndarray) and one.ndim == 1 and one.dtype == bool,
    "z": lambda one: isinstance(one, np.ndarray) and one.ndim == 1 and is_complex(one) and one.size > 1,
}


def draw(seed: int) -> Program:
    """The program of a seed: two to seven idioms and a result."""
    drawing = Drawing(seed)
    size = drawing.rng.choice((2, 3, 3, 4, 5, 7))
    for _ in range(40):
        if len(drawing.program.pieces) >= size:
            break
        drawing.grow()
    return drawing.finish()


def draw_alone(subject: str, idiom: str) -> Program | None:
    """A program of one idiom, with the arguments that it needs; none if plain code doesn't run it."""
    for seed in range(20):
        drawing = Drawing(seed, ("vector", "matrix", "float", "ints", "int", "mask"))
        drawing.add(subject, idiom)
        if drawing.program.pieces:
            program = drawing.finish()
            unused = True
            while unused:
                unused = False
                for other in fewer_parameters(program):
                    if Drawing.run(drawing, other) is not None:
                        program, unused = other, True
                        break
            return program
    return None


# --- findings -------------------------------------------------------------------------------------------


def smaller(program: Program) -> Iterable[Program]:
    """Programs with a little less."""
    for place in range(len(program.pieces)):
        yield replace(program, pieces=program.pieces[:place] + program.pieces[place + 1 :])
    if len(program.result) > 1:
        for place in range(len(program.result)):
            yield replace(program, result=program.result[:place] + program.result[place + 1 :])
    for place, piece in enumerate(program.pieces):
        for line in range(len(piece.lines)):
            lines = piece.lines[:line] + piece.lines[line + 1 :]
            if lines:
                shorter = replace(piece, lines=lines)
                yield replace(
                    program, pieces=(*program.pieces[:place], shorter, *program.pieces[place + 1 :])
                )
    yield from fewer_parameters(program)


def fewer_parameters(program: Program) -> Iterable[Program]:
    for place, name in enumerate(program.parameters):
        if len(program.parameters) > 1 and not re.search(
            rf"\b{name}\b", program.text().split("def f(")[1].split("\n", 1)[1]
        ):
            kept = [
                one[:place] + one[place + 1 :]
                for one in (program.parameters, program.arguments, program.others)
            ]
            yield replace(program, parameters=kept[0], arguments=kept[1], others=kept[2])


def shrunk(program: Program, outcome: Outcome) -> tuple[Program, Outcome]:
    """The smallest program found with the same finding by the same check."""
    going = True
    while going:
        going = False
        for other in smaller(program):
            checks = border_checks.Checks(other.case())
            if checks.plain is None and outcome.status != "no error":
                continue
            found = border_checks.outcome_of(checks, outcome.check)
            if found.status == outcome.status and found.detail.split(":")[0] == outcome.detail.split(":")[0]:
                program, outcome, going = other, found, True
                break
    return program, outcome


def findings_of(seed: int, machine_code: bool) -> tuple[Program, list[Outcome]]:
    program = draw(seed)
    with contextlib.nullcontext() if machine_code else uncompiled():
        return program, border_checks.outcomes(program.case())


def report(seed: int, program: Program, outcome: Outcome) -> str:
    idioms = " | ".join(piece.idiom.replace("\n", "\\n") for piece in program.pieces)
    return (
        f"--- seed {seed}: {outcome.check}: {outcome.status}\n{program.case().source}"
        f"# {outcome.detail}\n# idioms: {idioms}\n"
    )


def general(message: str) -> str:
    """A refusal without the names and numbers of one program."""
    text = re.sub(
        r"<(border program [^>]*|[^>]* [a-z0-9]+\[[^>]*)>|\b(t|G)?\d+\b|'\w+'", "...", message.split("\n")[0]
    )
    return text.split(", at ...")[0][:150]


def run_many(seeds: Sequence[int], machine_every: int, shrinks: bool) -> int:
    """Runs programs, prints findings and a summary; the number of findings."""
    counts: Counter[str] = Counter()
    refusals: Counter[str] = Counter()
    kinds: Counter[tuple[str, str]] = Counter()
    began = time.perf_counter()
    for seed in seeds:
        machine_code = bool(machine_every) and seed % machine_every == 0
        program, found = findings_of(seed, machine_code)
        shown: set[str] = set()
        for outcome in found:
            counts[outcome.status if not outcome.is_finding else "finding"] += 1
            if outcome.status == "refused":
                refusals[general(outcome.detail)] += 1
            if outcome.is_finding:
                kinds[outcome.check, outcome.status] += 1
                if outcome.status not in shown:
                    shown.add(outcome.status)
                    with contextlib.nullcontext() if machine_code else uncompiled():
                        smallest = shrunk(program, outcome) if shrinks else (program, outcome)
                    print(report(seed, *smallest), flush=True)
    print(f"{len(seeds)} programs in {time.perf_counter() - began:.0f} s: {dict(counts)}")
    for (check, status), count in kinds.most_common():
        print(f"{count:6}  {check}: {status}")
    print("refusals:")
    for text, count in refusals.most_common(60):
        print(f"{count:6}  {text}")
    return counts["finding"]


def run_each() -> int:
    """Runs each idiom alone, and prints the findings of each; the number of idioms with findings."""
    wrong = 0
    for subject, texts in idioms().items():
        for idiom in texts:
            program = draw_alone(subject, idiom)
            if program is None:
                print(f"--- {subject}: plain code does not run {idiom!r}\n", flush=True)
                continue
            with uncompiled():
                found = border_checks.outcomes(program.case())
            findings = [f"# {one.check}: {one.status}: {one.detail}" for one in found if one.is_finding]
            wrong += bool(findings)
            if findings:
                print(f"--- {subject}\n{program.case().source}{chr(10).join(findings)}\n", flush=True)
    print(f"{wrong} idioms with findings")
    return wrong


def print_cases(name: str) -> int:
    import border_cases

    cases = [one for one in border_cases.CASES if name in one.name]
    wrong = 0
    for one in cases:
        found = border_cases.outcome_of(one)
        wrong += found.startswith("WRONG")
        print(f"{one.section}  {one.name:52} {found}", flush=True)
    print(f"{wrong} wrong of {len(cases)}")
    return wrong


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    options.add_argument("--count", type=int, default=100)
    options.add_argument("--seed", type=int, default=0, help="of the first program")
    options.add_argument(
        "--machine-every", type=int, default=10, help="how many programs run as machine code: 1 in N"
    )
    options.add_argument("--show", type=int, help="print the program of a seed")
    options.add_argument("--whole", action="store_true", help="print programs as they were drawn: faster")
    options.add_argument("--each", action="store_true", help="run each idiom alone")
    options.add_argument(
        "--cases", nargs="?", const="", help="print the table of known cases, those with this in the name"
    )
    given = options.parse_args()
    if given.show is not None:
        print(draw(given.show).case().source)
        return 0
    if given.cases is not None:
        return int(print_cases(given.cases) > 0)
    if given.each:
        return int(run_each() > 0)
    return int(
        run_many(range(given.seed, given.seed + given.count), given.machine_every, not given.whole) > 0
    )


if __name__ == "__main__":
    sys.exit(main())
