"""
Sharpening what was blurred
===========================

A dahlia (`sklearn.datasets.load_sample_image`), photographed out of focus: blurred by a disk, and noisy.
What was it before? The blur is a product in the frequencies, so the misfit is written with `np.fft`, whose
transforms have exact adjoints; a small total variation keeps the noise from growing.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import load_sample_image

import pullback as pb

photograph = load_sample_image("flower.jpg")[120:376, 240:496].mean(2) / 255.0
rows, columns = photograph.shape
away = np.hypot(*np.meshgrid(np.fft.fftfreq(rows) * rows, np.fft.fftfreq(columns) * columns))
disk = (away <= 4.0) / (away <= 4.0).sum()
blur = np.fft.rfft2(disk)
seen = np.fft.irfft2(np.fft.rfft2(photograph) * blur, s=photograph.shape)
seen += np.random.default_rng(0).normal(scale=0.01, size=seen.shape)


@pb.compile
def objective(image, seen, blur, weight):
    image = image.reshape(seen.shape)
    misfit = np.fft.irfft2(np.fft.rfft2(image) * blur, s=seen.shape) - seen
    down = image[1:, :-1] - image[:-1, :-1]
    across = image[:-1, 1:] - image[:-1, :-1]
    return 0.5 * (misfit**2).sum() + weight * np.sqrt(down**2 + across**2 + 1e-6).sum()


found = minimize(
    pb.value_and_grad(objective), seen.ravel(), args=(seen, blur, 1e-3), jac=True, method="L-BFGS-B",
    options={"maxiter": 150},
)
sharp = found.x.reshape(seen.shape)


def decibels(image):
    return -10.0 * np.log10(((image - photograph) ** 2).mean())


before, after = decibels(seen), decibels(sharp)
print(f"signal to noise: {before:.1f} dB before, {after:.1f} dB after {found.nfev} evaluations")

# %%

figure, panels = plt.subplots(1, 3, figsize=(10, 3.8), layout="constrained")
titles = ("the photograph", f"as it was seen, {before:.1f} dB", f"sharpened, {after:.1f} dB")
for axes, image, title in zip(panels, (photograph, seen, sharp), titles):
    axes.imshow(image, cmap="gray", vmin=0, vmax=1)
    axes.set_title(title)
    axes.axis("off")
plt.show()
