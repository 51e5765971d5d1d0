"""Python's garbage collector, paused while code is made."""

import gc

import numpy as np
import pytest

import pullback as pb


def test_collection_is_paused_while_tracing_and_goes_on_afterwards() -> None:
    def program(x):
        assert not gc.isenabled()
        return pb.compile(lambda y: y * 2.0)(x) + 1.0

    assert gc.isenabled()
    pb.compile(program)(np.ones(3))
    assert gc.isenabled()


def test_collection_goes_on_after_an_error() -> None:
    def program(x):
        raise KeyError("no such thing")

    with pytest.raises(KeyError):
        pb.compile(program)(np.ones(3))
    assert gc.isenabled()


def test_what_was_off_stays_off() -> None:
    gc.disable()
    try:
        pb.compile(lambda x: x + 3.0)(np.ones(3))
        assert not gc.isenabled()
    finally:
        gc.enable()
