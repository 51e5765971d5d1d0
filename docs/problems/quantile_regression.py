"""
Quantiles in place of means
===========================

Whose diabetes progresses most? 442 patients (`sklearn.datasets.load_diabetes`). A mean says nothing of the
spread; the curves below have a tenth, half and nine tenths of the patients below them. The loss of a
quantile has a corner, which is rounded off a little, more sharply in each round; all three curves are
fitted at once, and may not cross.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import load_diabetes

import pullback as pb

data = load_diabetes(scaled=False)
pressure, y = data.data[:, 3], data.target
x = (pressure - pressure.mean()) / pressure.std()
levels = np.array([0.1, 0.5, 0.9])


def curves(p, x):
    """Three parabolas: the lowest, and what the others lie above the one before, which is positive."""
    powers = np.stack([np.ones_like(x), x, x**2], 1)
    lowest = powers @ p[:3]
    steps = [np.exp(powers @ p[3:6]), np.exp(powers @ p[6:])]
    return np.stack([lowest, lowest + steps[0], lowest + steps[0] + steps[1]], 1)


@pb.compile
def loss(p, x, y, width):
    """The pinball loss, level * d above and (level - 1) * d below 0, its corner rounded over a width."""
    d = y[:, None] - curves(p, x)
    return (levels * d + width * np.logaddexp(0.0, -d / width)).mean()


# %%
# The width is a number like others: another one compiles nothing.

p = np.array([80.0, 0.0, 0.0, 4.0, 0.0, 0.0, 4.0, 0.0, 0.0])
with_gradient = pb.value_and_grad(loss)
for width in (20.0, 5.0, 1.0, 0.2):
    p = minimize(with_gradient, p, args=(x, y, width), jac=True, method="BFGS", options={"gtol": 1e-7}).x
below = (y[:, None] < curves(p, x)).mean(0)
print("below the curves:", ", ".join(f"{share:.1%}" for share in below))
print("traced so often:", with_gradient.cache_info().traces)

# %%

figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
grid = np.linspace(x.min(), x.max(), 200)
axes.plot(pressure, y, ".", color="grey", markersize=4)
at = grid * pressure.std() + pressure.mean()
for level, curve in zip(levels, curves(p, grid).T):
    axes.plot(at, curve, linewidth=2, label=f"{level:.0%} of patients are below")
axes.set(xlabel="mean blood pressure (mmHg)", ylabel="progression after a year", title="Three quantiles")
axes.legend(loc="upper left")
plt.show()
