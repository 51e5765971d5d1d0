"""
Logistic regression by Newton's method
======================================

Which measurements of a cell's nucleus tell a malignant tumour from a benign one? 569 biopsies (Wisconsin,
1995; `sklearn.datasets.load_breast_cancer`), ten mean measurements each. `pb.hessian` of a compiled loss is
one more compiled function, so Newton's method is three lines; and the inverse of the Hessian says how far
each coefficient is to be trusted.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import pullback as pb

data = load_breast_cancer()
X = data.data[:, :10]
X = np.column_stack([np.ones(len(X)), (X - X.mean(0)) / X.std(0)])
malignant = 1.0 - data.target


@pb.compile
def loss(w, X, malignant):
    scores = X @ w
    return (np.logaddexp(0.0, scores) - malignant * scores).sum() + 0.5 * (w[1:] ** 2).sum()


# %%
# Newton's method, with the exact gradient and the exact Hessian.

gradient, hessian = pb.grad(loss), pb.hessian(loss)
w = np.zeros(X.shape[1])
norms = []
while not norms or norms[-1] > 1e-9:
    g = gradient(w, X, malignant)
    w = w - np.linalg.solve(hessian(w, X, malignant), g)
    norms.append(np.abs(gradient(w, X, malignant)).max())
print(f"{len(norms)} steps; {((X @ w > 0) == malignant).mean():.1%} of the biopsies are told right")

# %%
# Standard errors are the roots of the diagonal of the inverse Hessian. Radius, perimeter and area measure
# one thing thrice: the data say little of each alone, and the bars show it.

errors = np.sqrt(np.diag(np.linalg.inv(hessian(w, X, malignant))))
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), width_ratios=(2, 1), layout="constrained")
left.errorbar(w[1:], data.feature_names[:10], xerr=2 * errors[1:], fmt="o", capsize=3)
left.axvline(0.0, color="grey", linewidth=0.8)
left.set(title="coefficients, with two standard errors", xlabel="log odds per standard deviation")
right.semilogy(range(1, len(norms) + 1), norms, "o-")
right.set(title="Newton's method", xlabel="step", ylabel="largest element of the gradient")
plt.show()
