"""Handwritten digits: a two-layer network, trained with a compiled loss. Run `python -m pullback demo`.

The decorator is all that differs from eager code. `pb.value_and_grad` calls one generated function, which
computes the loss and its gradient together; the same loss, undecorated, runs on tensors step by step.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from importlib.resources import as_file, files

import numpy as np

import pullback as pb
from pullback.terminal import print_source

HIDDEN = 64
EPOCHS = 15
BATCH = 64
LEARNING_RATE = 0.1
MOMENTUM = 0.9

Parameters = dict[str, np.ndarray]
Batch = tuple[np.ndarray, np.ndarray]


def network(parameters, images):
    """Scores of the ten digits: images (n, 64) -> (n, 10)."""
    hidden = pb.tanh(images @ parameters["hidden_weight"] + parameters["hidden_bias"])
    return hidden @ parameters["output_weight"] + parameters["output_bias"]


@pb.compile
def loss(parameters, images, labels):
    """Mean softmax cross-entropy: images (n, 64), labels (n,) from 0 to 9 -> a scalar."""
    log_probability = pb.log_softmax(network(parameters, images), dim=-1)
    chosen = log_probability[pb.arange(labels.shape[0]), labels]
    return -chosen.mean()


def load_digits(rng: np.random.Generator) -> tuple[Batch, Batch]:
    """(images, labels) to train on and, a fifth of all 1,797, held out; standardised by the former."""
    with as_file(files(__package__) / "data" / "digits.csv.gz") as path:
        table = np.loadtxt(path, delimiter=",", dtype=np.int64)
    order = rng.permutation(len(table))
    held_out, training = np.split(order, [len(table) // 5])

    images, labels = table[:, :-1].astype(np.float32), table[:, -1]
    mean, spread = images[training].mean(axis=0), images[training].std(axis=0)
    images = (images - mean) / np.where(spread > 0, spread, 1)  # some pixels are always blank
    return (images[training], labels[training]), (images[held_out], labels[held_out])


def initial_parameters(rng: np.random.Generator) -> Parameters:
    """Random weights that keep the scale of what passes through them; float32."""

    def weight(inputs: int, outputs: int) -> np.ndarray:
        return (rng.standard_normal((inputs, outputs)) / np.sqrt(inputs)).astype(np.float32)

    return {
        "hidden_weight": weight(64, HIDDEN),
        "hidden_bias": np.zeros(HIDDEN, np.float32),
        "output_weight": weight(HIDDEN, 10),
        "output_bias": np.zeros(10, np.float32),
    }


def batches(data: Batch, rng: np.random.Generator) -> Iterator[Batch]:
    """The data once, shuffled, in minibatches; the last one is smaller and runs the same machine code."""
    images, labels = data
    order = rng.permutation(len(labels))
    for start in range(0, len(order), BATCH):
        chosen = order[start : start + BATCH]
        yield images[chosen], labels[chosen]


def accuracy(parameters: Parameters, data: Batch) -> float:
    """The share of the images whose digit gets the highest score."""
    images, labels = data
    tensors = {name: pb.from_numpy(value) for name, value in parameters.items()}
    scores = network(tensors, pb.from_numpy(images)).numpy()
    return float((scores.argmax(axis=1) == labels).mean())


def train(parameters: Parameters, training: Batch, held_out: Batch, rng: np.random.Generator) -> None:
    """Gradient descent with momentum, in place, one line of progress for every epoch."""
    step = pb.value_and_grad(loss)
    velocity = {name: np.zeros_like(value) for name, value in parameters.items()}
    for epoch in range(1, EPOCHS + 1):
        start = time.perf_counter()
        values = []
        for images, labels in batches(training, rng):
            value, gradient = step(parameters, images, labels)
            values.append(float(value))
            for name, slope in gradient.items():
                velocity[name] = MOMENTUM * velocity[name] - LEARNING_RATE * slope
                parameters[name] += velocity[name]
        print(
            f"epoch {epoch:2}   loss {np.mean(values):.4f}   "
            f"held-out accuracy {accuracy(parameters, held_out):6.2%}   {time.perf_counter() - start:.2f} s",
            flush=True,
        )


def eager_step(parameters: Parameters, images: np.ndarray, labels: np.ndarray) -> None:
    """What a compiled step does, with the undecorated loss: every operator on its own."""
    tensors = {name: pb.from_numpy(value).requires_grad_() for name, value in parameters.items()}
    loss.__wrapped__(tensors, pb.from_numpy(images), pb.from_numpy(labels)).backward()


def microseconds(call: Callable[[], object], repeats: int = 200) -> float:
    """The median time of a call."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e6 * statistics.median(times)


def main() -> None:
    """Train, then show the code that did it and what it saves."""
    rng = np.random.default_rng(0)
    training, held_out = load_digits(rng)
    parameters = initial_parameters(rng)
    print(f"{len(training[1])} digits to train on, {len(held_out[1])} held out; the first step compiles.")
    train(parameters, training, held_out, rng)

    images, labels = next(batches(training, rng))
    print("\nThe backward function that was generated for the loss:\n")
    print_source(loss.backward_source(parameters, images, labels))

    step = pb.value_and_grad(loss)
    compiled = microseconds(lambda: step(parameters, images, labels))
    eager = microseconds(lambda: eager_step(parameters, images, labels))
    print(f"\nLoss and gradient of {BATCH} images: compiled {compiled:.0f} us, eager {eager:.0f} us.")
    print(f"Held-out accuracy {accuracy(parameters, held_out):.2%}.")
