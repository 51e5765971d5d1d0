"""pullback as a library of `benchmarks/`, without its compiler: the tape, operator by operator."""

import numpy as np

import pullback as pb
from benchmarks.peers.ours import Pullback
from benchmarks.worker import flat


class Eager(Pullback):
    @classmethod
    def name(cls):
        return Pullback.name()

    def asarray(self, array):
        return pb.from_numpy(array)

    def to_numpy(self, array):
        return array.detach().numpy() if isinstance(array, pb.Tensor) else np.asarray(array)

    def compile(self, function):
        return function

    def value_and_grad(self, function, argnums=0):
        return pb.value_and_grad(function, argnums=argnums)

    def grad(self, function, argnums=0):
        return pb.grad(function, argnums=argnums)


def results_of(library, workload):
    inputs = workload.small_inputs()
    library.configure(workload, inputs)
    call = library.prepare(workload, library.arguments(workload, inputs))
    return [library.to_numpy(one) for one in flat(call())]
