"""
What photographs are made of
============================

Patches of 10 by 10 pixels, from the photograph of the Summer Palace (`sklearn.datasets.load_sample_image`).
Which filters make of them numbers that depend on each other as little as possible? Independent component
analysis climbs the likelihood of an unmixing matrix: a product, a sum over a density with heavy tails, and
a log determinant. What comes out are edges of several places and directions (Bell and Sejnowski, 1997), and
the stripes of the tiled roofs.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import load_sample_image

import pullback as pb

gray = load_sample_image("china.jpg").mean(2) / 255.0
rng = np.random.default_rng(0)
tops, lefts = rng.integers(0, gray.shape[0] - 10, 8000), rng.integers(0, gray.shape[1] - 10, 8000)
patches = np.stack([gray[i : i + 10, j : j + 10].ravel() for i, j in zip(tops, lefts)])
patches -= patches.mean(1, keepdims=True)
patches /= patches.std()

# %%
# Forty main directions, made equally strong.

values, vectors = np.linalg.eigh(np.cov(patches.T))
whiten = vectors[:, -40:] / np.sqrt(values[-40:])
white = patches @ whiten


@pb.compile
def negative_log_likelihood(W, white):
    """Of sources with the density 1 / (pi cosh s)."""
    W = W.reshape(white.shape[1], white.shape[1])
    return np.logaddexp(white @ W, -(white @ W)).sum(1).mean() - np.linalg.slogdet(W)[1]


found = minimize(
    pb.value_and_grad(negative_log_likelihood), np.eye(40).ravel(), args=(white,), jac=True,
    method="L-BFGS-B", options={"maxiter": 200},
)
print(f"{found.nfev} evaluations of 1,600 derivatives")

# %%

filters = np.linalg.pinv(whiten @ found.x.reshape(40, 40))
figure, panels = plt.subplots(4, 10, figsize=(9, 3.8), layout="constrained")
for axes, one in zip(panels.ravel(), filters):
    axes.imshow(one.reshape(10, 10), cmap="gray", vmin=-np.abs(one).max(), vmax=np.abs(one).max())
    axes.axis("off")
plt.show()
