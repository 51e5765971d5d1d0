"""
Survival, of which not all is known
===================================

How long 69 patients at Stanford lived after a heart was transplanted to them, and how old they were (Miller,
1976; it ships with statsmodels as `heart`). 24 were alive when the study ended: of them it is known only that
they lived longer. A parametric model says how the risk changes with time; Cox's leaves that open, and at each
death compares who died with all who were still at risk.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from statsmodels.datasets import heart

import pullback as pb

table = heart.load_pandas().data.sort_values("survival", ascending=False)
days, age = table["survival"].to_numpy(), table["age"].to_numpy()
died = table["censors"].to_numpy() == 1  # so the data set says it
x = (age - 50.0) / 10.0


@pb.compile
def weibull(p, x, days, died):
    """Negative log likelihood: the logarithms of shape and scale, and what ten years do to the scale."""
    shape = np.exp(p[0])
    z = shape * (np.log(days) - p[1] - p[2] * x)
    return np.exp(z).sum() - np.where(died, p[0] + z - np.log(days), 0.0).sum()


@pb.compile
def cox(b, x, died, last):
    """Negative partial likelihood; `last` is the place of the last who was at risk as each one died."""
    at_risk = np.cumsum(np.exp(b * x))[last]
    return -np.where(died, b * x - np.log(at_risk), 0.0).sum()


# %%
# Both fits, and how sure they are. Who died on the same day was at risk together.

last = np.searchsorted(-days, -days, side="right") - 1
fit = minimize(pb.value_and_grad(weibull), np.array([0.0, 7.0, 0.0]), args=(x, days, died), jac=True)
covariance = np.linalg.inv(pb.hessian(weibull)(fit.x, x, days, died))
found = minimize(lambda b, *data: pb.value_and_grad(cox)(b[0], *data), [0.0], args=(x, died, last), jac=True)
b, error = found.x[0], 1.0 / np.sqrt(pb.hessian(cox)(found.x[0], x, died, last))
print(f"shape {np.exp(fit.x[0]):.2f}: the risk is highest at the beginning")
print(f"ten years older: {np.exp(b):.2f} times the risk, "
      f"from {np.exp(b - 1.96 * error):.2f} to {np.exp(b + 1.96 * error):.2f}")

# %%
# How many live on, by age as the model has it, with the delta method's bands; the steps are what was seen
# (Kaplan and Meier).


def living(p, x, t):
    return np.exp(-np.exp(np.exp(p[0]) * (np.log(t) - p[1] - p[2] * x)))


t = np.linspace(1.0, days.max(), 300)
figure, axes = plt.subplots(figsize=(8.5, 4.4), layout="constrained")
for name, group in {"under 45": age < 45, "45 and older": age >= 45}.items():
    mean = x[group].mean()
    J = pb.jacobian(pb.compile(living))(fit.x, mean, t)
    width = 1.96 * np.sqrt(np.einsum("ij,jk,ik->i", J, covariance, J))
    expected = living(fit.x, mean, t)
    (line,) = axes.plot(t, expected, linewidth=2, label=f"{10 * mean + 50:.0f} years old, fitted")
    axes.fill_between(t, expected - width, expected + width, color=line.get_color(), alpha=0.2)
    seen = np.cumprod(1.0 - died[group][::-1] / np.arange(group.sum(), 0, -1))
    axes.step(days[group][::-1], seen, "--", where="post", color=line.get_color(), label=f"{name}, seen")
axes.set(xlabel="days after the transplantation", ylabel="share alive", ylim=(0, 1), title="69 patients")
axes.legend()
plt.show()
