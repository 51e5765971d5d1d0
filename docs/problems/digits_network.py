"""
A small network that reads digits
=================================

1,797 handwritten digits of 8 by 8 pixels (UCI, 1998; `sklearn.datasets.load_digits`). The loss of a network
of two layers is written in NumPy. Its parameters are a dictionary, its gradient is a dictionary like it,
and Adam updates an array in one pass over memory, by a function that is compiled, too.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import logsumexp
from sklearn.datasets import load_digits

import pullback as pb

data = load_digits()
rng = np.random.default_rng(0)
order = rng.permutation(len(data.data))
images, labels = (data.data[order] / 16.0).astype(np.float32), data.target[order]
train, test = slice(0, 1400), slice(1400, None)


def scores(p, images):
    hidden = np.maximum(images @ p["W1"] + p["b1"], 0.0)
    return hidden @ p["W2"] + p["b2"]


@pb.compile
def loss(p, images, labels):
    """The cross entropy, and a little decay of the weights."""
    found = scores(p, images)
    right = found[np.arange(len(labels)), labels]
    return (logsumexp(found, axis=1) - right).mean() + 1e-4 * ((p["W1"] ** 2).sum() + (p["W2"] ** 2).sum())


# %%
# Adam, of which a compiled function updates every parameter in one pass over memory.


@pb.compile
def adam(p, g, m, v, t):
    m = m + 0.1 * (g - m)
    v = v + 0.001 * (g * g - v)
    step = 0.003 * (m / (1.0 - 0.9**t)) / (np.sqrt(v / (1.0 - 0.999**t)) + 1e-8)
    return p - step, m, v


def initial(rows, columns):
    return (rng.normal(size=(rows, columns)) * np.sqrt(2.0 / rows)).astype(np.float32)


p = {"W1": initial(64, 48), "b1": np.zeros(48, np.float32)}
p |= {"W2": initial(48, 10), "b2": np.zeros(10, np.float32)}
moments = {name: (np.zeros_like(array), np.zeros_like(array)) for name, array in p.items()}
both = pb.value_and_grad(loss)
losses, t = [], 0
for _ in range(30):
    for batch in rng.permutation(1400).reshape(-1, 100):
        value, gradients = both(p, images[batch], labels[batch])
        t += 1
        for name in p:
            p[name], *moments[name] = adam(p[name], gradients[name], *moments[name], float(t))
        losses.append(value)
guesses = scores(p, images[test]).argmax(1)
print(f"{(guesses == labels[test]).mean():.1%} of {len(guesses)} unseen digits are read right")

# %%

figure = plt.figure(figsize=(9, 3.8), layout="constrained")
left, right = figure.subfigures(1, 2)
axes = left.subplots()
axes.semilogy(losses, linewidth=0.7)
axes.set(title="training", xlabel="batch", ylabel="loss")
wrong = np.flatnonzero(guesses != labels[test])[:8]
for axes, one in zip(right.subplots(2, 4).ravel(), wrong):
    axes.imshow(images[test][one].reshape(8, 8), cmap="gray_r")
    axes.set_title(f"{labels[test][one]} read as {guesses[one]}", fontsize=9)
for axes in right.axes:
    axes.axis("off")
plt.show()
