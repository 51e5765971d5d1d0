"""
A mixture of Gaussians: EM beside gradients
===========================================

178 Italian wines of three growers, thirteen chemical measurements each (`sklearn.datasets.load_wine`).
Without being told the growers, a mixture of three Gaussians of the two main directions finds them. The
textbook's way is expectation and maximisation; but the likelihood is a function like others, so L-BFGS can
climb it as well. Both see the same function, and end in the same place.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.datasets import load_wine

import pullback as pb

data = load_wine()
X = (data.data - data.data.mean(0)) / data.data.std(0)
X = X @ np.linalg.svd(X, full_matrices=False)[2][:2].T


def log_joint(weights, means, factors, X):
    """log(weight * density) of each wine in each part; `factors` are Cholesky's, of inverse covariances."""
    parts = []
    for k in range(3):
        scaled = (X - means[k]) @ factors[k]
        volume = np.log(np.diagonal(factors[k])).sum() - np.log(2 * np.pi)
        parts.append(weights[k] + volume - 0.5 * (scaled**2).sum(1))
    return np.stack(parts, 1)


def unpack(p):
    """Weights that add up to one and factors with positive diagonals, of fifteen numbers that are free."""
    weights = np.concatenate([p[:2], np.zeros(1)])
    lower = p[8:14].reshape(3, 2)
    corners = p[14:17]
    factors = [np.array([[np.exp(lower[k, 0]), 0.0], [corners[k], np.exp(lower[k, 1])]]) for k in range(3)]
    return weights - logsumexp(weights), p[2:8].reshape(3, 2), factors


@pb.compile
def negative_log_likelihood(p, X):
    return -logsumexp(log_joint(*unpack(p), X), axis=1).sum()


# %%
# Expectation and maximisation, by hand, and quasi-Newton steps with a gradient that nobody derived. Both
# begin with the same three wines.

first = np.concatenate([np.zeros(2), X[[0, 80, 150]].ravel(), np.zeros(9)])
weights, means, factors = unpack(first)
climbed = []
for _ in range(60):
    joint = log_joint(weights, means, factors, X)
    climbed.append(logsumexp(joint, axis=1).sum())
    shares = np.exp(joint - logsumexp(joint, axis=1)[:, None])
    weights, means = np.log(shares.mean(0)), (shares.T @ X) / shares.sum(0)[:, None]
    covariances = [((X - m).T * r) @ (X - m) / r.sum() for m, r in zip(means, shares.T)]
    factors = [np.linalg.cholesky(np.linalg.inv(c)) for c in covariances]

trace = []
found = minimize(
    pb.value_and_grad(negative_log_likelihood), first, args=(X,), jac=True, method="L-BFGS-B",
    callback=lambda p: trace.append(-negative_log_likelihood(p, X)),
)
print(f"EM: {climbed[-1]:.6f} after 60 steps; L-BFGS: {-found.fun:.6f} after {found.nit}")

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
left.scatter(*X.T, c=data.target, cmap="viridis", s=14)
circle = np.stack([np.cos(np.linspace(0, 2 * np.pi, 100)), np.sin(np.linspace(0, 2 * np.pi, 100))])
_, centres, found_factors = unpack(found.x)
for centre, factor in zip(centres, found_factors):
    left.plot(*(centre[:, None] + 2.0 * np.linalg.solve(factor.T, circle)), color="crimson")
left.set(title="wines by grower, and the parts found", xlabel="first direction", ylabel="second direction")
right.plot(climbed, label="EM")
right.plot(range(1, len(trace) + 1), trace, label="L-BFGS, gradients by pullback")
right.set(xlabel="step", ylabel="log likelihood", ylim=(climbed[-1] - 40, climbed[-1] + 4))
right.legend()
plt.show()
