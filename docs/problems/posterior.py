"""
A posterior by Hamiltonian Monte Carlo
======================================

Fisher's irises (`sklearn.datasets.load_iris`): where, in the length and width of petals, does *versicolor*
end and *virginica* begin? A Bayesian answers with many lines, not one. Hamiltonian Monte Carlo follows the
gradient of the log posterior; a whole trajectory, gradients included, is one compiled function, whose
leapfrog steps are a loop in machine code.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

import pullback as pb

data = load_iris()
X, virginica = data.data[50:, 2:], (data.target[50:] == 2) * 1.0
centre, scale = X.mean(0), X.std(0)
Z = np.column_stack([np.ones(len(X)), (X - centre) / scale])


def log_posterior(w, Z, virginica):
    scores = Z @ w
    return (virginica * scores - np.logaddexp(0.0, scores)).sum() - 0.5 * (w**2).sum() / 5.0**2


@pb.compile
def trajectory(w, momentum, Z, virginica, step, steps):
    """Leapfrog: the end, its momentum, and how much the energy has changed on the way."""
    slope = pb.grad(log_posterior)

    def leap(_, state):
        w, p = state
        p = p + 0.5 * step * slope(w, Z, virginica)
        w = w + step * p
        return w, p + 0.5 * step * slope(w, Z, virginica)

    def energy(w, p):
        return 0.5 * (p**2).sum() - log_posterior(w, Z, virginica)

    end, last = pb.fori_loop(0, steps, leap, (w, momentum))
    return end, energy(end, last) - energy(w, momentum)


# %%
# Steps of random number and length, accepted by Metropolis' rule.

rng = np.random.default_rng(0)
w, draws, accepted = np.zeros(3), [], 0
for _ in range(3000):
    momentum, step, steps = rng.normal(size=3), rng.uniform(0.1, 0.5), rng.integers(5, 20)
    proposed, change = trajectory(w, momentum, Z, virginica, step, steps)
    if np.log(rng.uniform()) < -change:
        w, accepted = proposed, accepted + 1
    draws.append(w)
draws = np.array(draws[500:])
print(f"{accepted / 3000:.0%} accepted; means {draws.mean(0).round(2)}, deviations {draws.std(0).round(2)}")

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), width_ratios=(3, 2), layout="constrained")
across = np.linspace(2.8, 7.1, 50)
for w in draws[::25]:
    line = -(w[0] + w[1] * (across - centre[0]) / scale[0]) / w[2] * scale[1] + centre[1]
    left.plot(across, line, color="grey", alpha=0.15, linewidth=1)
for kind, name in ((0.0, "versicolor"), (1.0, "virginica")):
    left.plot(*X[virginica == kind].T, "o", markersize=4, label=name)
left.set(xlabel="petal length (cm)", ylabel="petal width (cm)", ylim=(0.8, 2.7), title="a hundred borders")
left.legend()
right.hist(draws[:, 1:], bins=40, histtype="step", label=["length", "width"], density=True)
right.set(title="posterior", xlabel="log odds per standard deviation", ylabel="density")
right.legend()
plt.show()
