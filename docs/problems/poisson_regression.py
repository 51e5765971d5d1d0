"""
Counts, and how sure one may be of them
=======================================

Twenty men of a fitness club did as many chin-ups as they could (`sklearn.datasets.load_linnerud`, measured
by A. C. Linnerud). Does the waist tell how many? Counts call for a generalised linear model; these vary
more than a Poisson distribution allows, so the model is negative binomial, by SciPy's own name for it. The
Hessian gives the uncertainty, also of what is computed from the coefficients.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from scipy.optimize import minimize
from sklearn.datasets import load_linnerud

import pullback as pb

data = load_linnerud()
chins, waist = data.data[:, 0], data.target[:, 1] * 2.54
z = (waist - waist.mean()) / 10.0


def expected(p, z):
    return np.exp(p[0] + p[1] * z)


@pb.compile
def negative_log_likelihood(p, z, chins):
    """Of the intercept, the slope for 10 cm, and the logarithm of the size of the negative binomial."""
    size = np.exp(p[2])
    return -stats.nbinom.logpmf(chins, size, size / (size + expected(p, z))).sum()


found = minimize(
    pb.value_and_grad(negative_log_likelihood), np.array([2.0, 0.0, 0.0]), args=(z, chins), jac=True,
    method="BFGS",
)
covariance = np.linalg.inv(pb.hessian(negative_log_likelihood)(found.x, z, chins))
error = np.sqrt(covariance[1, 1])
print(f"10 cm more: {np.exp(found.x[1]):.2f} times as many, from {np.exp(found.x[1] - 1.96 * error):.2f} "
      f"to {np.exp(found.x[1] + 1.96 * error):.2f}")

# %%
# The delta method: how the expected count varies with the coefficients is a Jacobian, and with their
# covariance on both sides it gives the band.

grid = np.linspace(z.min(), z.max(), 100)
J = pb.jacobian(pb.compile(lambda p: np.log(expected(p, grid))))(found.x)
spread = 1.96 * np.sqrt(np.einsum("ij,jk,ik->i", J, covariance, J))
middle = expected(found.x, grid)

figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
centimetres = grid * 10.0 + waist.mean()
axes.fill_between(centimetres, middle * np.exp(-spread), middle * np.exp(spread), alpha=0.25, label="95%")
axes.plot(centimetres, middle, linewidth=2, label="expected")
axes.plot(waist, chins, "o", color="grey")
axes.set(xlabel="waist (cm)", ylabel="chin-ups", title="Twenty men")
axes.legend()
plt.show()
