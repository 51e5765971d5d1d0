"""Random numbers that are not pullback's: NumPy's, Python's, and what comes from a clock or the system.

In a trace a `TracedStream` stands for each stream in reach: what it draws there is an input, which each call
draws anew, so that the stream gives what it gives plain Python. What else has moved a stream, generated code
would repeat: a trace notes where the streams stand, and where one has moved unnoticed, all are put back, and
the function runs uncompiled. What leaves no trace in a stream, a clock or a generator seeded by the system,
is refused where it is called, by a stand-in.
"""

from __future__ import annotations

import copy
import os
import random
import secrets
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, wraps
from operator import is_
from typing import Any, NoReturn

import numpy as np

from ...tracer.draw_order import DrawOrder
from ...tracer.errors import EagerOnlyError, TraceError
from ...tracer.graph import Node
from ...tracer.origin import at_caller
from ...tracer.spec import SUPPORTED
from ...tracer.trace import Stream, current_trace, is_tracing
from ..values.call_text import drawing_of
from ..values.differentiated import are_any_differentiated, is_differentiated
from ..values.flatten import flatten, unflatten
from ..values.modes import is_recording
from ..values.refusals import number_refused
from ..values.saved import saved_values
from ..values.tensor import Tensor, make
from ..values.value_kinds import NumpyScalar, NumpyTensor, kind_of_value, number_reader, tensors_among
from .stream_states import are_equal, set_state, state_of
from .traced_draws import array_to_fill, fill, form_of

RANDOM = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)
"""Classes whose objects are streams of random numbers."""
_global = np.random.mtrand._rand  # what the functions of `np.random` draw from
REMEDY = (
    "Draw them outside and pass them as an argument, or use pullback.rand and its kin, which are compiled"
)


class Streams:
    """Streams of random numbers, NumPy's and Python's own among them, and where they stood.

    Args:
        found: streams with what to call them.
    """

    def __init__(self, found: Iterable[tuple[Any, str]] = ()) -> None:
        labels = {id(one): (one, label) for one, label in found}
        self._streams = [*labels.values(), (_global, "numpy.random"), (random._inst, "random")]
        self._states = [state_of(one) for one, _ in self._streams]

    def moved(self, noted: Iterable[Stream] = ()) -> str:
        """What to call the first stream that has been drawn from since; empty if there is none.

        Args:
            noted: streams of which draws are known, which stand behind the last of them.
        """
        behind = {id(one.stream): one.behind for one in noted if isinstance(one, _Noted)}
        for (one, label), before in zip(self._streams, self._states):
            if not are_equal(state_of(one), behind.get(id(one), before)):
                return label
        return ""

    def stood(self, stream: Any) -> Any:
        """Where a stream stood."""
        return next(state for (one, _), state in zip(self._streams, self._states) if one is stream)

    def put_back(self) -> None:
        """Let the streams stand where they stood."""
        for (one, _), state in zip(self._streams, self._states):
            set_state(one, state)

    @contextmanager
    def replayed(self) -> Any:
        """Let the streams give again what they gave after they were noted, and go on afterwards as if not."""
        now = Streams(self._streams)
        self.put_back()
        try:
            yield
        finally:
            now.put_back()


class UnnoticedDraw(EagerOnlyError):
    """A stream that has moved while a function was traced: drawn from by that, or by another thread."""


def refuse_moved(streams: Streams, label: str, function: str) -> NoReturn:
    """Put back what a trace has drawn unnoticed from the stream of that label.

    Raises:
        UnnoticedDraw: it has drawn. TraceError: it has spawned generators, which can't be put back.
    """
    streams.put_back()
    if streams.moved():
        raise TraceError(
            f"{function} spawns generators of {label} while it is traced, which can't be undone. Spawn "
            "them outside of the compiled function and pass what they give as an argument."
        )
    raise UnnoticedDraw(
        f"{function} draws random numbers from {label}, which compiled code would repeat in every call. "
        f"{REMEDY}."
    )


# --- what each call draws -----------------------------------------------------------------------------


class _Noted:
    """A stream from which a trace draws, and where it stands behind the last draw."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.behind: Any = None

    def get_state(self) -> Any:
        return state_of(self.stream)

    def set_state(self, state: Any) -> None:
        set_state(self.stream, state)


class TracedStream:
    """What stands for a stream in a trace, and where a function is differentiated; elsewhere it is that.

    `made_in`: the trace and its body that has made the stream, if one has: each call makes it anew.
    """

    def __init__(self, stream: Any, made_in: Any = None) -> None:
        object.__setattr__(self, "_stream", stream)
        object.__setattr__(self, "_made_in", made_in)

    @classmethod
    def of(cls, stream: Any, made_in: Any = None) -> Any:
        """What stands for a stream; None of a class whose draws are not known."""
        found = _STAND_INS.get(type(stream))
        return None if found is None else found(stream, made_in)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._stream)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._stream, name)
        is_method = getattr(found, "__self__", None) is self._stream
        return drawing(found, made_in=self._made_in) if is_method else found

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._stream, name, value)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if is_tracing():
            raise EagerOnlyError(f"A stream of random numbers is copied{at_caller()}. {REMEDY}.")
        return self._stream.__reduce_ex__(protocol)


def _of_numpy(kind: Any) -> type:
    """A class of stand-ins for streams of a class of NumPy's, whose functions take objects of that alone."""

    def __init__(self: Any, stream: Any, made_in: Any = None) -> None:
        TracedStream.__init__(self, stream, made_in)
        kind.__init__(self, stream._bit_generator)

    def method(name: str) -> Callable[..., Any]:
        return lambda self, *arguments, **options: self.__getattr__(name)(*arguments, **options)

    names = [name for name in dir(kind) if name[0] != "_" and callable(getattr(kind, name))]
    methods = {name: method(name) for name in names}
    return type(f"Traced{kind.__name__}", (TracedStream, kind), {"__init__": __init__, **methods})


def drawing(method: Callable[..., Any], of: Any = None, made_in: Any = None) -> Callable[..., Any]:
    """A method of a stream; what it gives in a trace is drawn anew in each call, if that is numbers.

    Args:
        of: the stream, if it is another object's method that draws from it.
        made_in: where in a trace the stream was made, which gives the same numbers in each call.
    """
    stream = getattr(method, "__self__", None) if of is None else of

    def draw(*arguments: Any, **options: Any) -> Any:
        out = array_to_fill(method, arguments, options)
        if isinstance(out, Tensor):
            return fill(out, draw, method.__name__, arguments, options)
        if not is_tracing():
            return _draw_plainly(method, stream, arguments, options)
        if out is not None:
            raise EagerOnlyError(
                "Random numbers are drawn into an array that is given by its place, where a trace does not "
                f"see it{at_caller()}. Write out=."
            )
        trace = current_trace()
        if made_in is not None:
            if made_in != place_in_trace():
                raise EagerOnlyError(
                    "Random numbers are drawn in the body of a loop or of a choice from a generator that is "
                    f"made outside of that, in the compiled function{at_caller()}: code would repeat those "
                    "of its trace. Make the generator before, and pass it or let the function reach it."
                )
            return _draw_plainly(method, stream, arguments, options)
        given = tensors_among((*arguments, *options.values()))
        is_traced = any(isinstance(one.payload, Node) for one in given)
        form = form_of(method) if is_traced else None
        if form is not None:
            return form(partial(_draw_from, stream), *arguments, **options)
        known = (one for one in trace.streams if isinstance(one, _Noted) and one.stream is stream)
        noted = next(known, None) or _Noted(stream)
        before = noted.get_state()
        is_known = are_equal(before, noted.behind if noted in trace.streams else trace.stood(stream))
        call = _Call(stream, method, arguments, options, is_traced)
        order = DrawOrder()
        in_order = is_traced or order.is_kept
        if in_order and not (is_known and call.is_plain):
            raise EagerOnlyError(
                f"Random numbers are drawn{at_caller()} by a call, or from a stream, that a trace does not "
                f"know. {REMEDY}."
            )
        if in_order:
            drawn, value = order.draw(call.quick, noted, call.operands(), method.__name__, call.key)
        else:
            value = call() if call.is_plain else method(*arguments, **options)
            if not (is_known and call.is_plain and _is_numbers(value)):
                return value  # the stream has moved unnoticed
            trace.streams.setdefault(noted, before)
            values = [value]
            drawn = trace.capture_drawn(
                lambda: np.asarray(values.pop() if values else call()), noted, call.several
            )
        noted.behind = noted.get_state()
        return None if call.seeds else make(drawn, kind_of_value(value))

    return draw


def place_in_trace() -> tuple[int, ...]:
    """What tells apart the trace under way, and the body in it."""
    trace = current_trace()
    return id(trace), *trace.bodies


def _draw_plainly(method: Callable[..., Any], stream: Any, arguments: Any, options: Any) -> Any:
    """What a stream gives outside of traces, or one that a trace has made: with derivatives of a form."""
    given = tensors_among((*arguments, *options.values()))
    if any(isinstance(one.payload, Node) or is_differentiated(one) for one in given):
        form = form_of(method)
        if form is not None:

            def draw(name: str, *values: Any, **named: Any) -> Any:
                return getattr(stream, name)(*values, **named)

            return form(draw, *arguments, **options)
    return method(*arguments, **options)


def drawing_from(stream: Any, method: Any) -> Callable[..., Any]:
    """A method that draws from a stream which is given to it as `random_state`."""
    real = stream._stream if issubclass(type(stream), TracedStream) else stream

    @wraps(method)
    def call(*arguments: Any, **options: Any) -> Any:
        return method(*arguments, random_state=real, **options)

    return drawing(call, real)


def _draw_from(stream: Any, name: str, *arguments: Any, **options: Any) -> Any:
    return drawing(getattr(stream, name))(*arguments, **options)


class _Call:
    """A draw with its arguments as they were, but for those that are traced, which each call gives."""

    def __init__(
        self, stream: Any, method: Callable[..., Any], arguments: Any, options: Any, is_traced: bool
    ) -> None:
        self._stream, self._method = stream, method
        self._leaves, self._structure = flatten((arguments, options))
        is_flat = len(arguments) == len(self._leaves) and all(map(is_, arguments, self._leaves))
        self._is_positional = is_flat and not options
        places = [place for place, leaf in enumerate(self._leaves) if is_traced and isinstance(leaf, Tensor)]
        self._given = {place: self._leaves[place] for place in places}
        self._readers = {place: _reader_of(one) for place, one in self._given.items()}
        self.seeds = method.__name__ == "seed"
        fixed = [leaf for place, leaf in enumerate(self._leaves) if place not in self._given]
        self.is_plain = all(map(_is_plain, fixed))
        """Whether all others are the same in all calls."""
        if self.is_plain:
            self._leaves = [None if place in self._given else copy.deepcopy(leaf)
                            for place, leaf in enumerate(self._leaves)]  # fmt: skip

    @property
    def key(self) -> Any:
        """What equal draws from one stream share."""
        method = getattr(self._method, "__wrapped__", self._method)
        owners = id(self._stream), id(getattr(method, "__self__", None))
        kinds = tuple((place, type(one)) for place, one in self._given.items())
        return owners, self._method.__name__, self._structure, kinds, tuple(map(_content_of, self._leaves))

    @property
    def several(self) -> Callable[[int], np.ndarray] | None:
        """What draws the numbers of so many such calls at once; None if that may give others."""
        name = _WITH_SIZE.get(self._method.__name__, self._method.__name__)
        if not isinstance(self._stream, _OF_NUMPY) or name not in ONE_BY_ONE:
            return None
        method = getattr(self._stream, name)
        arguments, options = unflatten(self._structure, self._leaves)
        are_numbers = all(isinstance(one, int | float) for one in arguments)
        if not are_numbers or len(arguments) > ONE_BY_ONE[name] or options:
            return None
        return lambda times: method(*arguments, size=times)

    def operands(self) -> list[Node]:
        """The values that the draw is given.

        Raises:
            GradientError: one has a gradient, which what is drawn has not. EagerOnlyError: it may have one.
        """
        trace, given = current_trace(), [*self._given.values()]
        name = f"numpy.random.{self._method.__name__}"
        if is_recording() and any(one.requires_grad for one in given):
            if not trace.bodies:
                raise number_refused(name)
            if trace.records or are_any_differentiated():
                raise EagerOnlyError(f"{name} takes a value in a loop that is differentiated{at_caller()}.")
        values = [one.payload for one in given]
        return [one if isinstance(one, Node) else trace.capture(one) for one in values]

    def __call__(self, *arrays: np.ndarray) -> Any:
        leaves = [*self._leaves]
        for (place, read), array in zip(self._readers.items(), arrays):
            leaves[place] = read(array)
        arguments, options = unflatten(self._structure, leaves)
        found = self._method(*arguments, **options)
        return np.zeros(()) if self.seeds else found

    @property
    def quick(self) -> Callable[..., Any]:
        """The same, found out once where there are no options."""
        if self.seeds or not self._is_positional:
            return self
        return drawing_of(self._method, self._leaves, self._readers)


ONE_BY_ONE = {
    name: count
    for count, names in enumerate((
        "random random_sample standard_cauchy standard_exponential standard_normal",
        "chisquare exponential geometric logseries pareto poisson power rayleigh standard_gamma standard_t "
        "weibull zipf",
        "beta binomial f gamma gumbel integers laplace logistic lognormal negative_binomial "
        "noncentral_chisquare normal randint uniform vonmises wald",
        "hypergeometric noncentral_f triangular",
    ))
    for name in names.split()
}  # fmt: skip
"""Methods of NumPy's streams that draw many numbers as so many calls do: how many numbers they take before
the size."""
_WITH_SIZE = {"rand": "random_sample", "randn": "standard_normal"}
_OF_NUMPY = (np.random.Generator, np.random.RandomState)
_STAND_INS: dict[type, Callable[..., Any]] = {
    np.random.Generator: _of_numpy(np.random.Generator),
    np.random.RandomState: _of_numpy(np.random.RandomState),
    random.Random: TracedStream,
}


def _reader_of(tensor: Tensor) -> Callable[[np.ndarray], Any]:
    """What makes of an array what such a tensor stands for."""
    if isinstance(tensor, NumpyScalar):
        return number_reader(type(tensor), tensor.payload.dtype)
    return tensor._as_plain if isinstance(tensor, NumpyTensor) else lambda array: array


def _is_plain(leaf: Any) -> bool:
    """Whether an argument is the same in all calls."""
    return isinstance(leaf, np.ndarray | np.generic | np.dtype | type | int | float | str | None)


def _content_of(leaf: Any) -> Any:
    """What equal arguments share."""
    if isinstance(leaf, np.ndarray):
        return leaf.dtype, leaf.shape, leaf.tobytes()
    return type(leaf), repr(leaf)


def _is_numbers(value: Any) -> bool:
    is_number = isinstance(value, np.ndarray | np.generic | int | float)
    return is_number and np.asarray(value).dtype in SUPPORTED


def note_draws(streams: Iterable[Any]) -> None:
    """Say that what a trace has drawn from these streams up to now is known."""
    for one in streams:
        if isinstance(one, _Noted):
            one.behind = one.get_state()


@contextmanager
def undrawn_if(error: type[Exception]) -> Iterator[None]:
    """If this is raised within, what has been drawn in the trace under way is put back."""
    trace = current_trace()
    count, states = len(trace.drawn), {one: one.get_state() for one in trace.streams}
    try:
        yield
    except error:
        del trace.drawn[count:]
        for one in [*trace.streams]:
            one.set_state(states[one] if one in states else trace.streams.pop(one))
        note_draws(trace.streams)
        raise


# --- what has no state to compare ---------------------------------------------------------------------


def _refuse(name: str) -> NoReturn:
    raise EagerOnlyError(
        f"{name}() gives another value in every call{at_caller()}, and compiled code "
        "would keep that of its trace. Call it outside of the compiled function and pass its result in, or "
        "leave that function uncompiled."
    )


def _refused(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        return _refuse(name) if is_tracing() else real(*arguments, **options)

    call.__name__ = name
    return call


def _refused_stream(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        if is_tracing():
            raise EagerOnlyError(
                f"{name}() draws random numbers from {name.rpartition('.')[0]}{at_caller()}, which compiled "
                f"code would repeat in every call. {REMEDY}."
            )
        return real(*arguments, **options)

    call.__name__ = name
    return call


def _made(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    """What makes a stream: refused in a trace if the system seeds it; what is drawn may have derivatives."""

    def call(*arguments: Any, **options: Any) -> Any:
        if is_tracing() and all(one is None for one in (*arguments, *options.values())):
            _refuse(name)
        made = real(*arguments, **options)
        if is_tracing():
            return TracedStream.of(made, place_in_trace()) or made
        return (TracedStream.of(made) or made) if saved_values() is not None else made

    call.__name__ = name
    return call


_OF_THE_SYSTEM = {
    time: "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns process_time process_time_ns "
    "thread_time thread_time_ns",
    os: "urandom getrandom",
    secrets: "randbits randbelow choice token_bytes token_hex token_urlsafe SystemRandom",
    uuid: "uuid1 uuid4",
    random: "SystemRandom",
}
_SEEDED = {
    np.random: "default_rng RandomState SeedSequence PCG64 PCG64DXSM MT19937 Philox SFC64",
    random: "Random",
}
MODULES = (np.random, time, os, secrets, uuid, random)


def _functions_of(table: Mapping[Any, str], refused: Callable[..., Any]) -> dict[Any, Callable[..., Any]]:
    return {
        getattr(module, name): refused(f"{module.__name__}.{name}", getattr(module, name))
        for module, names in table.items()
        for name in names.split()
        if hasattr(module, name)
    }


REFUSED = ("set_state", "setstate", "set_bit_generator")
_METHODS = {"seed": "seed", "ranf": "random_sample", "sample": "random_sample"}
"""Functions of `np.random` that are written in Python, and the methods that they call."""
_DRAWING = {
    value: _refused_stream(f"{module.__name__}.{name}", value) if name in REFUSED else drawing(value)
    for module, stream in ((np.random, _global), (random, random._inst))
    for name, value in vars(module).items()
    if getattr(value, "__self__", None) is stream or name in REFUSED
} | {getattr(np.random, name): drawing(getattr(_global, method)) for name, method in _METHODS.items()}
DRAWING = _DRAWING | _functions_of(_SEEDED, _made)
"""Functions that draw, and what makes streams -> what a function that is traced or differentiated finds."""
UNPREDICTABLE = DRAWING | _functions_of(_OF_THE_SYSTEM, _refused)
"""Functions and classes -> what a trace finds in their place."""
