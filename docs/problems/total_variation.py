"""
Taking noise off a photograph
=============================

The Summer Palace in Beijing (`sklearn.datasets.load_sample_image`), with noise added. The image that is
wanted is near the noisy one and has a small total variation: the sum of the lengths of its gradients, which
leaves edges as they are where a blur would not. 65,000 unknowns; value and gradient are one fused pass over
the image.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import load_sample_image

import pullback as pb

photograph = load_sample_image("china.jpg")[60:316, 200:456].mean(2) / 255.0
noisy = photograph + np.random.default_rng(0).normal(scale=0.12, size=photograph.shape)


@pb.compile
def objective(image, noisy, weight):
    image = image.reshape(noisy.shape)
    down = image[1:, :-1] - image[:-1, :-1]
    across = image[:-1, 1:] - image[:-1, :-1]
    variation = np.sqrt(down**2 + across**2 + 1e-6).sum()
    return 0.5 * ((image - noisy) ** 2).sum() + weight * variation


# %%
# SciPy's L-BFGS on all pixels at once.

found = minimize(
    pb.value_and_grad(objective), noisy.ravel(), args=(noisy, 0.12), jac=True, method="L-BFGS-B",
    options={"maxiter": 300},
)
denoised = found.x.reshape(noisy.shape)


def decibels(image):
    return -10.0 * np.log10(((image - photograph) ** 2).mean())


before, after = decibels(noisy), decibels(denoised)
print(f"signal to noise: {before:.1f} dB before, {after:.1f} dB after {found.nfev} evaluations")

# %%

figure, panels = plt.subplots(1, 3, figsize=(10, 3.8), layout="constrained")
titles = ("the photograph", f"with noise, {before:.1f} dB", f"without, {after:.1f} dB")
for axes, image, title in zip(panels, (photograph, noisy, denoised), titles):
    axes.imshow(image, cmap="gray", vmin=0, vmax=1)
    axes.set_title(title)
    axes.axis("off")
plt.show()
