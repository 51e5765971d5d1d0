"""Known programs at the border of Python, NumPy and traced values, each as text, with what is right.

A `Run` defines `f`, and is compared with plain code by `border_checks`. A `Script` sets `found` and `expected`; where
`expected` is a pattern, `found` is a text. Both may refuse, unless a refusal is what is wrong.
`python tests/border_programs.py --cases` prints them with their outcomes.
"""

# ruff: noqa: E501 (programs of one line)

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import border_checks
import numpy as np
from border_compare import Case, Differs, compare, is_number, shown

import pullback as pb

VALUES = ("plain", "compile", "compile_inside", "cond", "vmap", "compiled_map", "value_and_grad", "jvp")
GRADIENTS = ("value_and_grad", "compiled_value_and_grad", "gradient_of_compiled", "jvp")
STATES = ("compile", "compile_inside", "value_and_grad", "compiled_value_and_grad")
VECTOR, MATRIX = ("np.array([1.0, 2.0, 4.0])",), ("np.array([[1.0, 5.0], [7.0, 2.0]])",)
OTHER = ("np.array([0.5, 3.0, 1.0])",)


@dataclass(frozen=True)
class Run:
    section: int
    name: str
    text: str
    arguments: tuple[str, ...] = VECTOR
    others: tuple[str, ...] = ()
    checks: tuple[str, ...] = VALUES
    may_refuse: bool = True
    is_stateful: bool = False

    def outcomes(self) -> list[tuple[str, str]]:
        case = Case(self.text, self.arguments, self.others, self.is_stateful)
        checks = border_checks.Checks(case)
        found = [border_checks.outcome_of(checks, name) for name in self.checks]
        return [(one.status, f"{one.check}: {one.detail}") for one in found if one.status != "skipped"]


@dataclass(frozen=True)
class Script:
    section: int
    name: str
    text: str
    may_refuse: bool = True

    def outcomes(self) -> list[tuple[str, str]]:
        variables: dict[str, Any] = {
            "np": np,
            "pb": pb,
            "message_of": message_of,
            "__name__": "border_program",
        }
        try:
            with border_checks.quiet(), border_checks.limited():
                exec(_compiled(self.text, self.name), variables)
            compare_found(variables["expected"], variables["found"])
        except pb.errors.PullbackError as error:
            return [("refused", f"{type(error).__name__}: {error}")]
        except Differs as difference:
            return [(difference.status, difference.detail)]
        except (Exception, border_checks.Hangs) as error:
            return [("exception", f"{type(error).__name__}: {error}")]
        return [("ok", shown(variables["found"]))]


def _compiled(text: str, name: str) -> Any:
    file = f"<border case {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    return compile(text, file, "exec")


def compare_found(expected: Any, found: Any) -> None:
    if isinstance(expected, re.Pattern):
        if not expected.search(str(found)):
            raise Differs("message", f"expected {expected.pattern!r}, found {found!r}")
    elif is_number(found) and (is_number(expected) or isinstance(expected, list)):
        compare(np.asarray(expected, float), np.asarray(border_checks.array_of(found), float), 1e-5)
    else:
        compare(expected, found, 1e-5)


def message_of(function: Callable[[], Any]) -> str:
    """The error of a call as text, with its class."""
    try:
        result = function()
    except pb.errors.PullbackError as error:
        return f"pullback {type(error).__name__}: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"no error: {shown(result)}"


def outcome_of(case: Run | Script) -> str:
    """One line: "ok", "refused: why", or "WRONG: what"."""
    found = case.outcomes()
    wrong = [f"{status}: {text}" for status, text in found if status not in ("ok", "refused")]
    refused = [text for status, text in found if status == "refused"]
    if wrong:
        also = f"(and {len(wrong) - 1} more) " if len(wrong) > 1 else ""
        return f"WRONG    {also}{' '.join(wrong[0].split())[:330]}"
    if refused:
        start = "refused  " if case.may_refuse else "WRONG    refused: "
        return start + " ".join(refused[0].split())[:240]
    return "ok"


def script(section: int, name: str, text: str, may_refuse: bool = True) -> Script:
    return Script(section, name, text.strip("\n"), may_refuse)


def slope(section: int, name: str, text: str, point: str, expected: str, may_refuse: bool = True) -> Script:
    """A gradient by pb.grad of `f` at a point."""
    return Script(section, name, f"{text}\nfound, expected = pb.grad(f)({point}), {expected}", may_refuse)


KINDS = [
    Run(1, "std beside a mention", "def f(x):\n    if False:\n        pb.tanh(x)\n    return x.std()"),
    Run(1, "std beside a mention in a helper",
        "def helper(x):\n    return pb.relu(x)\ndef f(x):\n    return x.std() + 0 * helper(x).sum()"),
    Run(1, "std in vmap", "def f(x):\n    return pb.vmap(lambda r: r.std())(x)", MATRIX),
    Run(1, "max in vmap", "def f(x):\n    return pb.vmap(lambda r: r.max(axis=0))(x)", MATRIX),
    Run(1, "std in cond", "def f(x):\n    return pb.cond(x.sum() > 0, lambda y: y.std(), lambda y: y.sum(), x)"),
    Run(1, "std in map", "def f(x):\n    return pb.map(lambda r: r.std(), x)", MATRIX),
    Run(1, "std in scan", "def f(x):\n    return pb.scan(lambda c, r: (c + r.std(), r.var()), 0.0, x)", MATRIX),
    Run(1, "std in fori_loop", "def f(x):\n    return pb.fori_loop(0, 2, lambda i, c: c * 0.5 + c.std(), x)"),
    Run(1, "std in while_loop",
        "def f(x):\n    return pb.while_loop(lambda c: c.std() > 0.5, lambda c: c / 2, x)"),
    Run(1, "std in a compiled function inside",
        "inner = pb.compile(lambda y: y.std())\ndef f(x):\n    return inner(x) * x"),
    Run(1, "std of what a compiled function returns",
        "inner = pb.compile(lambda y: y * 2)\ndef f(x):\n    return inner(x).std()"),
    Run(1, "max(axis=0) beside a mention",
        "def f(x):\n    if False:\n        pb.tanh(x)\n    return np.sum(x.max(axis=0))", MATRIX),
    Run(1, "std with a global Tensor", "W = pb.tensor([1.0, 2.0, 5.0])\ndef f(x):\n    return (x * W).std()"),
    Run(1, "std with a Tensor in a closure",
        "def make():\n    w = pb.tensor([1.0, 2.0, 5.0], dtype=pb.float64)\n    return lambda x: (x * w).std()\n"
        "f = make()"),
    Run(1, "std of an array beside a global Tensor",
        "W = pb.tensor([1.0, 2.0, 5.0], dtype=pb.float64)\ndef f(x):\n    return x.std() * W"),
    Run(1, "a NumPy scalar times a float32 Tensor", "def f(x):\n    return x.sum() * pb.tensor([1.0, 2.0])"),
    Run(1, "pb.tanh of an array", "def f(x):\n    return pb.tanh(x)"),
    Run(1, "pb.std of an array", "def f(x):\n    return pb.std(x) + x.std()"),
    Run(1, "pb.sin of a Python float", "def f(x):\n    return pb.sin(0.5) * x", may_refuse=False),
    Run(1, "pb.sin of a NumPy scalar", "def f(x):\n    return pb.sin(x[0]) * x", may_refuse=False),
    Run(1, "pb.maximum of numbers", "def f(x):\n    return pb.maximum(x[0], x[1])", may_refuse=False),
    Run(1, "np.array of a Tensor", "T = pb.tensor([1.0, 2.0, 5.0])\ndef f(x):\n    return np.array(T) * x"),
    Run(1, "np.zeros filled, beside pb", "def f(x):\n    a = np.zeros(3)\n    a[0] = pb.sum(x)\n    return a.std()"),
    Run(1, "np.std of pb.exp", "def f(x):\n    return np.std(pb.exp(x))"),
    Run(1, "pb.zeros plus an array", "def f(x):\n    return (pb.zeros(3, dtype=pb.float64) + x).std()"),
    Run(1, "an element of an array", "def f(x):\n    return x[0].std() + x[0] * pb.tensor(2.0, dtype=pb.float64)"),
    Run(1, "isinstance of an array", "def f(x):\n    return x.std() if isinstance(x, np.ndarray) else x.sum() * 9"),
    Run(1, "isinstance of float", "def f(x, a):\n    return x * (1.0 if isinstance(a, float) else 2.0)",
        (*VECTOR, "1.5")),
    Run(1, "isinstance of np.float64", "def f(x):\n    return 1.0 if isinstance(x[0], np.float64) else x[0]"),
    Run(1, "np.isscalar of an element", "def f(x):\n    return x * (1.0 if np.isscalar(x[0]) else 2.0)"),
    Run(1, "out= of an array", "def f(x):\n    a = np.empty(3)\n    np.exp(x, out=a)\n    return a.std()"),
    Run(1, "integers divided", "def f(k):\n    return k / 2 + k // 2", ("np.array([1, 2, 5])",)),
    Run(1, "float32 times a NumPy scalar", "def f(x):\n    return x * np.float64(0.1)",
        ("np.array([1.0, 2.0], dtype=np.float32)",)),
    Run(1, "float32 times a Python float", "def f(x, a):\n    return x * a",
        ("np.array([1.0, 2.0], dtype=np.float32)", "0.1")),
    Run(1, "float32 sum times a float64 array", "def f(x):\n    return x.sum() * np.array([0.1, 0.2])",
        ("np.array([1.0, 2.0], dtype=np.float32)",)),
    Run(1, "repeat", "def f(x):\n    return x.repeat(2) * (1 if True else pb.tanh(x))"),
    Run(1, "argsort", "def f(x):\n    return x[x.argsort()] if True else pb.tanh(x)"),
    Run(1, "round beside a mention", "def f(x):\n    pb.relu(x)\n    return (x / 3).round(1)"),
    Run(1, "cumsum of a matrix beside a mention", "def f(x):\n    pb.relu(x)\n    return x.cumsum()", MATRIX),
    script(1, "a gradient has its argument's kind, beside a Tensor", """
W = pb.tensor([1.0, 2.0, 5.0], dtype=pb.float64)
g = pb.compile(pb.grad(lambda x: (x * W).sum()))(np.ones(3))
found, expected = type(g).__name__, "ndarray"
"""),
    script(1, "a Tensor argument has a Tensor's gradient", """
g = pb.compile(pb.grad(lambda x: (x * np.ones(3)).sum()))(pb.ones(3))
found, expected = type(g).__name__, "Tensor"
"""),
]  # fmt: skip

QUAD = "from scipy import integrate, optimize\n"
FILLED = """
def fill(t):
    out = np.zeros(3)
    for i in range(3):
        out[i] = t[i] ** 2
    return out
def f(t):
    return (fill(t) + t).sum()
"""
OBJECT = "import copy, pickle\nclass O:\n    pass\ndef f(x):\n    o = O()\n    o.q = x\n"
DROPPED = [
    slope(2, "math.sin itself", "import math\nf = math.sin", "1.0", "np.cos(1.0)"),
    slope(2, "math.sin in a dictionary", "import math\nS = {'sin': math.sin}\nf = lambda x: S['sin'](x)", "1.0",
          "np.cos(1.0)"),
    slope(2, "math.exp as a staticmethod",
          "import math\nclass A:\n    g = staticmethod(math.exp)\nf = lambda x: A.g(x)", "1.0", "np.exp(1.0)"),
    slope(2, "math.sin as a default", "import math\ndef f(x, g=math.sin):\n    return g(x)", "1.0", "np.cos(1.0)"),
    slope(2, "math.sin by map", "import math\nf = lambda x: sum(map(math.sin, x))", "np.ones(2)", "np.cos([1, 1])"),
    slope(2, "math.sin by getattr", "import math\nf = lambda x: getattr(math, 'sin')(x)", "1.0", "np.cos(1.0)"),
    slope(2, "math.sin in a partial", "import math, functools\ng = functools.partial(math.pow, 3.0)\nf = lambda x: g(x)",
          "2.0", "9 * np.log(3)"),
    slope(2, "quad: integrand", QUAD + "f = lambda a: integrate.quad(lambda t: a * t * t, 0, 1)[0]", "2.0", "1 / 3"),
    slope(2, "quad: args", QUAD + "f = lambda a: integrate.quad(lambda t, a: a * t, 0, 1, args=(a,))[0]", "2.0", "0.5"),
    slope(2, "quad: limits", QUAD + "f = lambda b: integrate.quad(lambda t: t, 0, b)[0]", "2.0", "2.0"),
    slope(2, "dblquad", QUAD + "f = lambda a: integrate.dblquad(lambda y, x: a * x * y, 0, 1, 0, 1)[0]", "2.0", "0.25"),
    slope(2, "brentq", QUAD + "f = lambda a: optimize.brentq(lambda t: t * t - a, 0, 5)", "4.0", "0.25"),
    slope(2, "brentq: args", QUAD + "f = lambda a: optimize.brentq(lambda t, a: t * t - a, 0, 5, args=(a,))", "4.0", "0.25"),
    slope(2, "bisect", QUAD + "f = lambda a: optimize.bisect(lambda t: t * t - a, 0, 5)", "4.0", "0.25"),
    slope(2, "root_scalar", QUAD + "f = lambda a: optimize.root_scalar(lambda t: t * t - a, bracket=[0, 5]).root", "4.0", "0.25"),
    slope(2, "float(x[0]) * x", "f = lambda x: (float(x[0]) * x).sum()", "np.array([1.0, 2.0, 3.0])", "[7.0, 1, 1]"),
    slope(2, "map(float, x)", "f = lambda x: sum(map(float, x)) + x.sum()", "np.ones(3)", "[2.0, 2, 2]"),
    slope(2, "complex(x)", "f = lambda x: complex(x).real + x", "1.0", "2.0"),
    slope(2, "item()", "f = lambda x: x[0].item() * x.sum()", "np.array([1.0, 2.0, 3.0])", "[7.0, 1, 1]"),
    slope(2, "tolist()", "f = lambda x: x.tolist()[0] * x.sum()", "np.array([1.0, 2.0, 3.0])", "[7.0, 1, 1]"),
    slope(2, "np.fromiter", "f = lambda x: np.fromiter((t * t for t in x), float).sum() + x.sum()", "np.ones(2)", "[3.0, 3]"),
    slope(2, "array.array", "import array\nf = lambda x: np.array(array.array('d', x)).sum() + x.sum()", "np.ones(2)", "[2.0, 2]"),
    slope(2, "tuple assignment to a slice", "def f(x):\n    a = x.copy()\n    a[0:2] = x[0] * 3, x[-1]\n    return a.sum()",
          "np.array([1.0, 2.0, 4.0])", "[3.0, 0, 2]"),
    slope(2, "np.zeros filled by a function, Tensor", FILLED, "pb.tensor([1.0, 2.0, 4.0])", "[3.0, 5, 9]"),
    slope(2, "np.zeros filled by a function, array", FILLED, "np.array([1.0, 2.0, 4.0])", "[3.0, 5, 9]"),
    script(2, "np.zeros filled by a function, backward()", FILLED + """
import warnings
t = pb.tensor([1.0, 2.0, 4.0], requires_grad=True)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("default")
    f(t).backward()
found, expected = len(seen), 1
"""),
    script(2, "mark_dirty on a view", """
class Double(pb.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x
    @staticmethod
    def backward(ctx, g):
        return g * 2
x = pb.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * 1
Double.apply(y[:2])
y.sum().backward()
found, expected = x.grad.numpy(), [2.0, 2, 1]
"""),
    script(2, "quantile's gradient of q", """
q = pb.tensor(0.3, requires_grad=True)
pb.quantile(pb.tensor([1.0, 2.0, 4.0]), q).backward()
found, expected = 0.0 if q.grad is None else q.grad.item(), 2.0
"""),
    script(2, "hook on an AccumulateGrad node", """
x = pb.tensor([1.0, 2.0], requires_grad=True)
seen = []
y = x * x
y.grad_fn.next_functions[0][0].register_hook(lambda *_: seen.append(1))
y.sum().backward()
found, expected = len(seen), 1
"""),
    script(2, "retain_grad before an in-place write", """
x = pb.tensor([1.0, 2.0], requires_grad=True)
y = x * 2
y.retain_grad()
y.mul_(3)
y.sum().backward()
found, expected = y.grad.numpy(), [1.0, 1.0]
"""),
    script(2, "prehook of an input's own node", """
x = pb.tensor([1.0, 2.0], requires_grad=True)
y = x * x
y.grad_fn.register_prehook(lambda g: (g[0] * 10,))
found, expected = pb.autograd.grad(y.sum(), y)[0].numpy(), [1.0, 1.0]
"""),
    script(2, "no_grad generator closed early", """
@pb.no_grad()
def generator():
    yield 1
    yield 2
g = generator()
next(g)
g.close()
found, expected = pb.is_grad_enabled(), True
"""),
    slope(2, "nextafter", "f = lambda x: np.nextafter(x, 9.0).sum()", "np.ones(2)", "[1.0, 1]"),
    Run(2, "deepcopy of an object", OBJECT + "    old = copy.deepcopy(o)\n    o.q = o.q * 2\n    return (o.q * old.q).sum()"),
    Run(2, "deepcopy of an object, written in place",
        OBJECT + "    old = copy.deepcopy(o)\n    o.q *= 2\n    return (o.q + 3 * old.q).sum()", checks=STATES),
    Run(2, "copy of an array, written in place",
        "import copy\ndef f(x):\n    a = x * 1\n    b = copy.copy(a)\n    a *= 2\n    return (a + 3 * b).sum()"),
    Run(2, "deepcopy of an array", "import copy\ndef f(x):\n    a = x * 1\n    b = copy.deepcopy(a)\n    a *= 2\n    return (a + 3 * b).sum()"),
    Run(2, "pickle of an array",
        "import pickle\ndef f(x):\n    a = x * 1\n    b = pickle.loads(pickle.dumps(a))\n    a *= 2\n    return (a + 3 * b).sum()"),
    Run(2, "a dictionary keyed by a function", "S = {np.sin: np.cos, abs: np.sign}\ndef f(x):\n    return S[np.sin](x)",
        may_refuse=False),
    Run(2, "a dictionary keyed by math.sin", "import math\nS = {math.sin: 2.0}\ndef f(x):\n    return S[math.sin] * x",
        may_refuse=False),
    Run(2, "identity of a function", "import math\ng = math.sin\ndef f(x):\n    return x * (1.0 if g is math.sin else 2.0)",
        may_refuse=False),
    Run(2, "self.nfev += 1",
        "class Counted:\n    def __init__(self):\n        self.nfev = 0\n    def __call__(self, x):\n        self.nfev += 1\n"
        "        return (x * x).sum()\ncounted = Counted()\ndef f(x):\n    return counted(x)",
        checks=STATES, may_refuse=False, is_stateful=True),
    Run(2, "self.nfev read", "class C:\n    nfev = 0\nc = C()\ndef f(x):\n    c.nfev += 1\n    return x.sum() * c.nfev",
        checks=STATES, may_refuse=False, is_stateful=True),
    Run(2, "counts[0] += 1", "counts = [0]\ndef f(x):\n    counts[0] += 1\n    return x.sum() * counts[0]",
        checks=STATES, may_refuse=False, is_stateful=True),
    Run(2, "a global count", "n = 0\ndef f(x):\n    global n\n    n += 1\n    return x.sum() * n", checks=STATES,
        may_refuse=False, is_stateful=True),
    Run(2, "collections.Counter", "import collections\nC = collections.Counter()\ndef f(x):\n    C['f'] += 1\n    return x.sum()",
        checks=STATES, is_stateful=True),
    Run(2, "a running mean", "class M:\n    mean = 0.0\nm = M()\ndef f(x):\n    m.mean = 0.9 * m.mean + 0.1 * x.mean()\n"
        "    return (x - m.mean).sum()", checks=STATES, is_stateful=True),
    Run(2, "a list appended to, then read", "seen = []\ndef f(x):\n    seen.append(1)\n    return x.sum() * len(seen)",
        checks=STATES, is_stateful=True),
    script(2, "a refused function leaves nothing of the trace", """
class Model:
    last = None
model = Model()
def f(x):
    model.last = x * 2
    raise_later = pb.erfinv(x)
    import scipy.integrate
    return scipy.integrate.quad(lambda t: t * x, 0, 1)[0]
message_of(lambda: pb.compile(f)(np.array([0.1, 0.2])))
found, expected = type(model.last).__name__ in ("NoneType", "ndarray"), True
"""),
    Run(2, "free: comparisons, bool, int, round, floor",
        "import math\ndef f(x):\n    s = x.sum()\n    n = int(s) + round(s) + math.floor(s) + bool(s > 1)\n    return s * n",
        checks=GRADIENTS, may_refuse=False),
    Run(2, "free: isnan, isfinite, isclose, allclose",
        "import math\ndef f(x):\n    ok = math.isfinite(x[0]) and not math.isnan(x[0]) and not math.isclose(x[0], x[1])\n"
        "    return x.sum() * (2.0 if ok and not np.allclose(x, 0) else 3.0)", checks=GRADIENTS, may_refuse=False),
    Run(2, "free: __index__", "def f(x):\n    return x[x.argmax()] * np.arange(9.0)[int(x[0])]", checks=GRADIENTS, may_refuse=False),
    Run(2, "free: printing", "text = []\ndef f(x):\n    s = x.sum()\n    text.append(f'{s:.3f}')\n    return s * s",
        checks=("value_and_grad", "jvp"), may_refuse=False),
    script(2, "printing shows this call's value", """
texts = []
def f(x):
    texts.append(f"{x.sum():.3f}")
    return (x * x).sum()
pb.value_and_grad(f)(np.array([1.0, 2.0]))
found, expected = texts, ["3.000"]
"""),
    script(2, "while abs(float(r)) > tol says the remedy", """
def f(x):
    r = x
    while abs(float(r)) > 0.5:
        r = r / 2
    return r
found, expected = message_of(lambda: pb.grad(f)(3.0)), __import__("re").compile("pullback .*without float")
"""),
    script(2, "float(t) on the tape warns once a line", """
import warnings
t = pb.tensor(2.0, requires_grad=True)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("default")
    for _ in range(3):
        y = t * float(t)
    z = t * t.item()
found, expected = len(seen), 1
"""),
    script(2, "pb.stop_gradient", """
found = pb.grad(lambda x: (x * float(pb.stop_gradient(x)[0])).sum())(np.array([3.0, 1.0]))
expected = [3.0, 3.0]
""", False),
]  # fmt: skip

COUNTED = """
import warnings
warnings.simplefilter("error")
"""
CAPTURED = [
    script(3, "a list of numbers is written", "L = [1.0, 2.0]\ng = pb.compile(lambda x: x * L[0])\ng(np.ones(2))\nL[0] = 5.0\n"
           "found, expected = g(np.ones(2)), [5.0, 5.0]"),
    script(3, "a dictionary is written", "D = {'w': 1.0}\ng = pb.compile(lambda x: x * D['w'])\ng(np.ones(2))\nD['w'] = 5.0\n"
           "found, expected = g(np.ones(2)), [5.0, 5.0]"),
    script(3, "a key is added", "D = {'w': 1.0}\ng = pb.compile(lambda x: x * sum(D.values()))\ng(np.ones(2))\nD['b'] = 5.0\n"
           "found, expected = g(np.ones(2)), [6.0, 6.0]"),
    script(3, "a set is written", "S = {1.0}\ng = pb.compile(lambda x: x * sum(S))\ng(np.ones(2))\nS.add(5.0)\n"
           "found, expected = g(np.ones(2)), [6.0, 6.0]"),
    script(3, "membership of a set", "S = {'a'}\ng = pb.compile(lambda x: x * (2 if 'b' in S else 1))\ng(np.ones(2))\nS.add('b')\n"
           "found, expected = g(np.ones(2)), [2.0, 2.0]"),
    script(3, "an array is written", "A = np.ones(2)\ng = pb.compile(lambda x: x * A)\ng(np.ones(2))\nA[:] = 5.0\n"
           "found, expected = g(np.ones(2)), [5.0, 5.0]"),
    script(3, "an array in a dictionary is replaced", "D = {'w': np.ones(2)}\ng = pb.compile(lambda x: x * D['w'])\ng(np.ones(2))\n"
           "D['w'] = np.full(2, 5.0)\nfound, expected = g(np.ones(2)), [5.0, 5.0]"),
    script(3, "an attribute is written", "class A:\n    w = 1.0\na = A()\ng = pb.compile(lambda x: x * a.w)\ng(np.ones(2))\na.w = 5.0\n"
           "found, expected = g(np.ones(2)), [5.0, 5.0]"),
    script(3, "scipy.sparse data is written", "import scipy.sparse\nM = scipy.sparse.csr_matrix(np.eye(2))\ng = pb.compile(lambda x: M @ x)\n"
           "g(np.ones(2))\nM.data[:] = 5.0\nfound, expected = g(np.ones(2)), [5.0, 5.0]"),
    script(3, "a pandas Series is written", "import pandas\nS = pandas.Series([1.0, 1.0])\ng = pb.compile(lambda x: x * S.to_numpy())\n"
           "g(np.ones(2))\nS.iloc[0] = 5.0\nfound, expected = g(np.ones(2)), [5.0, 1.0]"),
    script(3, "a pandas mean", "import pandas\nS = pandas.Series([1.0, 1.0])\ng = pb.compile(lambda x: x * S.mean())\n"
           "g(np.ones(2))\nS.iloc[0] = 5.0\nfound, expected = g(np.ones(2)), [3.0, 3.0]"),
    script(3, "an xarray object is written", "import xarray\nS = xarray.DataArray([1.0, 1.0])\ng = pb.compile(lambda x: x * float(S.sum()))\n"
           "g(np.ones(2))\nS[0] = 5.0\nfound, expected = g(np.ones(2)), [6.0, 6.0]"),
    script(3, "a masked array in reach", "M = np.ma.masked_array([1.0, 2.0], [True, False])\n"
           "found = message_of(lambda: pb.compile(lambda x: (x * M).sum())(np.ones(2)))\nexpected = __import__('re').compile('^pullback')"),
    script(3, "a masked array as argument", "M = np.ma.masked_array([1.0, 2.0], [True, False])\n"
           "found = message_of(lambda: pb.compile(lambda x: x.sum())(M))\nexpected = __import__('re').compile('^pullback')"),
    script(3, "a masked array that is made", "found = message_of(lambda: pb.compile(lambda x: np.ma.masked_less(x, 0.5).sum())(np.eye(2)))\n"
           "expected = __import__('re').compile('^pullback')"),
    script(3, "np.matrix in reach", "M = np.matrix(np.eye(2) * 2)\nfound = message_of(lambda: pb.compile(lambda x: M * x)(np.ones((2, 2))))\n"
           "expected = __import__('re').compile('^pullback')"),
    script(3, "np.matrix as argument", "M = np.matrix([[1.0, 2.0], [3.0, 4.0]])\nfound = message_of(lambda: pb.grad(lambda x: (x * x).sum())(M))\n"
           "expected = __import__('re').compile('^pullback')"),
    *(Run(3, f"random: {name}", f"import random\nG = np.random.default_rng(3)\nR = np.random.RandomState(3)\ndef f(x):\n    return {text}",
          checks=STATES, is_stateful=True)
      for name, text in {
          "np.random.rand": "x * np.random.rand()", "np.random.normal of a shape": "x + np.random.normal(size=3)",
          "a Generator": "x * G.normal()", "a Generator of a shape": "x + G.normal(size=3)", "a RandomState": "x * R.rand()",
          "random.random": "x * random.random()", "np.random.permutation": "np.random.permutation(x)",
          "a seed inside": "x * np.random.default_rng(0).normal()", "np.random.choice": "x[np.random.choice(3, 2)]",
      }.items()),
    script(3, "a Python float compiles once", "g = pb.compile(lambda x, a: x * a + a)\nx = np.ones(3)\n"
           "found = [float(g(x, 0.5 + k)[0]) for k in range(80)] and g.cache_info().traces\nexpected = 1", False),
    script(3, "float32 times a Python float argument", "g = pb.compile(lambda x, a: x * a)\n"
           "found = [str(g(np.ones(2, np.float32), a).dtype) for a in (0.5, 0.7)]\nexpected = ['float32'] * 2", False),
    Run(3, "if of a Python float", "def f(x, a):\n    return x * a if a > 0 else x - a", (*VECTOR, "1.5"), (*VECTOR, "-1.5")),
    Run(3, "hashing of a Python float", "D = {1.5: 2.0}\ndef f(x, a):\n    return x * D.get(a, 9.0)", (*VECTOR, "1.5"), (*VECTOR, "2.5"), checks=("plain", "compile")),
    Run(3, "a Python float's repr", "def f(x, a):\n    return x * len(str(a))", (*VECTOR, "1.5"), (*VECTOR, "2.25")),
    Run(3, "a Python float that divides by zero", "def f(x, a):\n    return x * (1.0 / a)", (*VECTOR, "0.0"), checks=("compile",)),
    script(3, "a Python float that divides by zero later", "g = pb.compile(lambda x, a: x * (1.0 / a))\ng(np.ones(2), 1.5)\n"
           "found, expected = message_of(lambda: g(np.ones(2), 0.0)), __import__('re').compile('^ZeroDivisionError')"),
    script(3, "a power that turns complex later", "g = pb.compile(lambda x, a: x * a ** 0.5)\ng(np.ones(2), 4.0)\n"
           "found, expected = g(np.ones(2), -4.0), np.ones(2) * (-4.0) ** 0.5"),
    script(3, "an overflow later", "import math\ng = pb.compile(lambda x, a: x * math.exp(a))\ng(np.ones(2), 1.0)\n"
           "found, expected = message_of(lambda: g(np.ones(2), 1e4)), __import__('re').compile('^OverflowError')"),
    Run(3, "a Python int as exponent", "def f(x, n):\n    return x ** n", (*VECTOR, "2"), (*VECTOR, "7")),
    Run(3, "a Python int as axis", "def f(x, n):\n    return x.sum(axis=n)", (*MATRIX, "0"), (*MATRIX, "1")),
    Run(3, "a Python int in arithmetic", "def f(x, n):\n    return x * n / (n + 1) + n // 2", (*VECTOR, "3"), (*VECTOR, "8")),
    Run(3, "a Python int that grows large", "def f(x, n):\n    return x * (n ** 40 % 7)", (*VECTOR, "3"), (*VECTOR, "11")),
    script(3, "200 values of a slice length", COUNTED + "g = pb.compile(lambda x, n: x[:n].sum())\nx = np.arange(300.0)\n"
           "values = [float(g(x, n)) for n in range(1, 201)]\n"
           "assert values == [n * (n - 1) / 2 for n in range(1, 201)]\ninfo = g.cache_info()\nfound, expected = info.compilations + info.disk_hits <= 3, True", False),
    script(3, "200 lengths of an array", COUNTED + "g = pb.compile(lambda x: x.sum())\n"
           "values = [float(g(np.ones(n))) for n in range(1, 201)]\nfound, expected = values, [float(n) for n in range(1, 201)]", False),
    script(3, "the same lambda made again", "made = [pb.compile(lambda x: (x * x).sum()) for _ in range(3)]\n"
           "[g(np.ones(3)) for g in made]\nfound, expected = sum(g.cache_info().traces for g in made), 1", False),
    script(3, "a second fit traces nothing", """
def fit(data):
    def objective(w):
        return ((data @ w) ** 2).sum()
    step = pb.compile(pb.value_and_grad(objective))
    return step(np.ones(2)), step.cache_info().traces
first, second = fit(np.eye(2)), fit(2 * np.eye(2))
assert float(second[0][0]) == 8.0, second
found, expected = second[1], 0
""", False),
    script(3, "del f frees its buffers", """
import gc, weakref
def make():
    data = np.ones(1000)
    g = pb.compile(lambda x: x * data)
    g(np.ones(1000))
    return g, weakref.ref(data)
g, data = make()
del g
gc.collect()
found, expected = data() is None, True
""", False),
]  # fmt: skip

FAULTS = [
    script(4, "int64 min // -1", "a = np.array([np.iinfo(np.int64).min, 7])\n"
           "found, expected = pb.compile(lambda a: a // -1)(a).tolist(), (a // -1).tolist()"),
    Run(4, "interleaved disjoint views written", "def f(x):\n    a = x.copy()\n    even, odd = a[::2], a[1::2]\n    even *= 2\n    odd += 1\n"
        "    even += 1\n    return a", ("np.arange(6.0)",), checks=("compile", "jvp"), may_refuse=False),
]  # fmt: skip

HINT = "expected = __import__('re').compile"
SEMANTICS = [
    script(5, "interpolate of integers", "found = message_of(lambda: pb.nn.functional.interpolate(pb.arange(4).reshape(1, 1, 4), scale_factor=2, mode='linear'))\n"
           f"{HINT}('^pullback')"),
    script(5, "norm(-1) at zero", "x = pb.tensor([0.0, 2.0], requires_grad=True)\ny = pb.norm(x, -1)\ny.backward()\nfound, expected = y.item(), 0.0"),
    script(5, "gradient of norm(-1) at zero", "x = pb.tensor([0.0, 2.0], requires_grad=True)\npb.norm(x, -1).backward()\n"
           "found, expected = x.grad.numpy(), [0.0, 0.0]"),
    script(5, "nanmax of nan alone", "found = pb.compile(lambda x: np.nanmax(x))(np.full(3, np.nan))\nexpected = np.nan"),
    script(5, "max of nan alone", "found = pb.compile(lambda x: (x.max(), x.argmax()))(np.full(3, np.nan))\nexpected = (np.float64('nan'), np.int64(0))"),
    script(5, "max_unpool of inf", "x = pb.tensor([[[float('inf'), 1.0, 2.0, 3.0]]])\np, i = pb.nn.functional.max_pool1d(x, 2, return_indices=True)\n"
           "found, expected = pb.nn.functional.max_unpool1d(p, i, 2).numpy(), [[[np.inf, 0.0, 0.0, 3.0]]]"),
    script(5, "diff(n=0, prepend=)", "x = pb.tensor([1.0, 2.0])\nfound, expected = pb.diff(x, n=0, prepend=pb.tensor([9.0])).numpy(), [1.0, 2.0]"),
    Run(5, "np.diff(n=0, prepend=)", "def f(x):\n    return np.diff(x, n=0, prepend=9.0)", checks=("compile", "jvp")),
    Run(5, "var with ddof > n", "def f(x):\n    return np.var(x, ddof=5)", checks=("compile", "value_and_grad", "jvp")),
    script(5, "pb.var with correction > n", "found, expected = pb.var(pb.tensor([1.0, 2.0]), correction=5).item(), np.inf"),
    script(5, "eigh's gradient is symmetric", """
a = pb.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
pb.linalg.eigh(a)[0][0].backward()
found, expected = a.grad.numpy(), a.grad.numpy().T
"""),
    script(5, "the gradient of eigh's vectors is symmetric", """
a = pb.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
pb.linalg.eigh(a)[1].abs().sum().backward()
found, expected = a.grad.numpy(), a.grad.numpy().T
"""),
    slope(5, "np.linalg.eigh's gradient is of the lower triangle", "f = lambda a: np.linalg.eigh(a)[0][0]", "np.array([[2.0, 1.0], [1.0, 3.0]])",
          "[[0.7236068, 0.0], [-0.8944272, 0.2763932]]"),
    script(5, "writes on unbind outputs", "x = pb.ones(2, 2, requires_grad=True) * 1\na, b = x.unbind()\n"
           f"found = message_of(lambda: a.mul_(2))\n{HINT}('^pullback')"),
    script(5, "a.data = int", f"a = pb.ones(2)\ndef f():\n    a.data = 3\nfound = message_of(f)\n{HINT}('^pullback|^TypeError')"),
    script(5, "negative weights of cov", f"found = message_of(lambda: pb.cov(pb.eye(2), aweights=pb.tensor([-1.0, 2.0])))\n{HINT}('^pullback')"),
    script(5, "a Jacobian of 110 irregular parts", """
import random
draw = random.Random(1)
unary = [np.sin, np.cos, np.exp, np.tanh, np.square, np.negative, np.arctan]
parts = [(draw.choice(unary), draw.randrange(110), draw.randrange(110)) for _ in range(110)]
def f(x):
    return np.stack([g(x[one]) * x[other] if other % 2 else g(x[one]) for g, one, other in parts])
x = np.linspace(0.1, 1.0, 110)
found, expected = pb.compile(pb.jacobian(f))(x), pb.jacobian(f)(x)
""", False),
    script(5, "error: float() of an inner trace", "def f(x):\n    return pb.vmap(lambda r: r * float(r.sum()))(x)\n"
           f"found = message_of(lambda: pb.compile(f)(np.eye(2)))\n{HINT}('^pullback')"),
    script(5, "error: inhomogeneous", f"found = message_of(lambda: pb.compile(lambda x: np.array([x, x[:1]]))(np.ones(3)))\n{HINT}('^pullback|inhomogeneous shape')"),
    script(5, "error: a pandas Series as argument", "import pandas\nfound = message_of(lambda: pb.grad(lambda s: (s * s).sum())(pandas.Series([1.0, 2.0])))\n"
           f"{HINT}('^pullback.*to_numpy')"),
    script(5, "error: an xarray object as argument", "import xarray\nfound = message_of(lambda: pb.grad(lambda s: (s * s).sum())(xarray.DataArray([1.0, 2.0])))\n"
           f"{HINT}('^pullback.*(to_numpy|values)')"),
    slope(5, "math.fsum", "import math\nf = lambda x: math.fsum(x)", "np.ones(2)", "[1.0, 1]"),
    script(5, "error: math.fsum is told its own name", "import math\nfound = message_of(lambda: pb.grad(lambda x: math.fsum(x))(np.ones(2)))\n"
           f"{HINT}('^no error|^(?!.*numpy.fsum)')"),
    script(5, "error: SciPy's functions are SciPy's", "import scipy.special\nfound = message_of(lambda: pb.grad(lambda x: scipy.special.hankel1(1, x).real.sum())(np.ones(2)))\n"
           f"{HINT}('^no error|^pullback(?!.*numpy.hankel)')"),
    script(5, "error: no gradient of an array names line and remedy", """
import scipy.ndimage
def f(x):
    return scipy.ndimage.gaussian_filter(x, 1.0).sum()
found, expected = message_of(lambda: pb.grad(f)(np.ones(4))), __import__("re").compile("(?s)^pullback .*border case.*detach|stop_grad")
"""),
    script(5, "a list of tensors", "x = pb.tensor([1.0, 2.0], requires_grad=True)\ny = pb.tensor([x[0], x[1]])\nfound, expected = y.numpy(), [1.0, 2.0]"),
    Run(5, "x[3, 2:, [1, 3]]", "def f(x):\n    return x[3, 2:, [1, 3]]", ("np.arange(64.0).reshape(4, 4, 4)",),
        checks=("compile", "jvp"), may_refuse=False),
    script(5, "x[3, 2:, [1, 3]] of a Tensor", "x = np.arange(64.0).reshape(4, 4, 4)\nfound = pb.tensor(x)[3, 2:, [1, 3]].numpy()\n"
           "expected = x[3][2:, [1, 3]]", False),
    script(5, "a pandas Series as operand", "import pandas\nS = pandas.Series([1.0, 2.0])\n"
           "found, expected = pb.grad(lambda x: (x * S.to_numpy()).sum() + (S * x).sum())(np.ones(2)), [2.0, 4.0]", False),
    script(5, "a pandas Series as index", "import pandas\nS = pandas.Series([1, 0])\n"
           "found, expected = pb.compile(lambda x: x[S] * 1.0)(np.array([1.0, 2.0])), [2.0, 1.0]", False),
    slope(5, "gradient of a result of shape (1,)", "f = lambda x: np.array([x.sum()])", "np.ones(2)", "[1.0, 1]", False),
    slope(5, "gradient of a result of shape (1, 1)", "f = lambda x: x[None] @ x[:, None]", "np.ones(2)", "[2.0, 2]", False),
    *(script(5, f"scipy.optimize with Tensor gradients: {method}", "import scipy.optimize\n"
             "def f(w):\n    t = pb.tensor(w)\n    return ((t - 1) ** 2).sum().item(), 2 * (t - 1)\n"
             f"found, expected = scipy.optimize.minimize(f, np.zeros(2), jac=True, method='{method}').x, [1.0, 1.0]", False)
      for method in ("SLSQP", "L-BFGS-B")),
    script(5, "compiled inv of a singular matrix", f"found = message_of(lambda: pb.compile(np.linalg.inv)(np.zeros((2, 2))))\n{HINT}('LinAlgError|LinearAlgebraError')"),
    script(5, "compiled inv inside of a function",
           f"found = message_of(lambda: pb.compile(lambda a: np.linalg.inv(a).sum())(np.ones((3, 3))))\n{HINT}('LinAlgError|LinearAlgebraError')"),
    script(5, "compiled cholesky of a singular matrix",
           f"found = message_of(lambda: pb.compile(lambda a: np.linalg.cholesky(a))(np.array([[1.0, 2.0], [2.0, 1.0]])))\n{HINT}('LinAlgError|LinearAlgebraError')"),
]  # fmt: skip

CASES = [*KINDS, *DROPPED, *CAPTURED, *FAULTS, *SEMANTICS]
