"""
A Gaussian process, its scales learned
======================================

How does diabetes progress with the body mass index? 442 patients (Efron et al., 2004;
`sklearn.datasets.load_diabetes`). A Gaussian process fits a curve without a formula for it; how smooth it
is, and how noisy the data are, the marginal likelihood decides: a Cholesky factor, a solve and a log
determinant of a 442 by 442 matrix, whose gradient SciPy's optimiser is given.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import load_diabetes

import pullback as pb

data = load_diabetes(scaled=False)
bmi, progression = data.data[:, 2], data.target
x = (bmi - bmi.mean()) / bmi.std()
y = (progression - progression.mean()) / progression.std()


def covariance(a, b, scale, height):
    distances = (a[:, None] - b[None, :]) / scale
    return height**2 * np.exp(-0.5 * distances**2)


@pb.compile
def negative_log_evidence(logs, x, y):
    """Of the logarithms of the length scale, the height of the curve and the noise."""
    scale, height, noise = np.exp(logs)
    K = covariance(x, x, scale, height) + noise**2 * np.eye(len(x))
    L = np.linalg.cholesky(K)
    whitened = pb.linalg.solve_triangular(L, y[:, None], upper=False)[:, 0]
    return 0.5 * (whitened @ whitened) + np.log(np.diagonal(L)).sum() + 0.5 * len(x) * np.log(2 * np.pi)


# %%
# The optimiser gets value and gradient from one call of machine code.

evidence = pb.value_and_grad(negative_log_evidence)
found = minimize(evidence, np.zeros(3), args=(x, y), jac=True, method="L-BFGS-B")
scale, height, noise = np.exp(found.x)
print(f"{found.nfev} evaluations; the length scale is {scale * bmi.std():.1f} kg/m²")

# %%
# The curve, and where 95 of 100 new patients are expected.

at = np.linspace(x.min(), x.max(), 200)
K = covariance(x, x, scale, height) + noise**2 * np.eye(len(x))
across = covariance(at, x, scale, height)
mean = across @ np.linalg.solve(K, y)
variance = height**2 - np.einsum("ij,ji->i", across, np.linalg.solve(K, across.T))


def in_units(values):
    return values * progression.std() + progression.mean()


figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
bmis = at * bmi.std() + bmi.mean()
for spread, label in ((variance + noise**2, "95% of new patients"), (variance, "95% of curves")):
    low, high = mean - 1.96 * np.sqrt(spread), mean + 1.96 * np.sqrt(spread)
    axes.fill_between(bmis, in_units(low), in_units(high), alpha=0.25, label=label)
axes.plot(bmi, progression, ".", color="grey", markersize=4)
axes.plot(bmis, in_units(mean), linewidth=2, label="expected")
axes.set(title="What the index alone tells", xlabel="body mass index (kg/m²)", ylabel="progression in a year")
axes.legend()
plt.show()
