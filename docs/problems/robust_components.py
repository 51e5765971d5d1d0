"""
Principal components on the Stiefel manifold
============================================

Six components of the handwritten threes (`sklearn.datasets.load_digits`), where a blot covers a part of
every fifth image. The usual components, which minimise squared errors, spend themselves on the blots.
Huber's loss does not, but then there is no decomposition that solves it: the frame of components is found
by gradient steps on the manifold of frames that are orthonormal.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import pullback as pb

data = load_digits()
clean = data.data[data.target == 3] / 16.0
images, rng = clean.copy(), np.random.default_rng(0)
for blotted in images[::5]:
    row, column = rng.integers(0, 5, 2)
    blotted.reshape(8, 8)[row : row + 4, column : column + 4] = 1.0
centre = np.median(images, 0)


@pb.compile
def loss(Q, images, centre):
    """Huber's loss of how far each image is from the space of the components."""
    moved = images - centre
    distance = np.sqrt(((moved - (moved @ Q) @ Q.T) ** 2).sum(1) + 1e-12)
    return np.where(distance < 0.5, 0.5 * distance**2, 0.5 * (distance - 0.25)).mean()


# %%
# A step: the gradient's part along the manifold, and back onto it by a QR decomposition. A step that does
# not descend is halved.

both = pb.value_and_grad(loss)
usual = np.linalg.svd(images - images.mean(0), full_matrices=False)[2][:6].T
Q, rate = usual, 1.0
losses = []
for _ in range(200):
    value, G = both(Q, images, centre)
    losses.append(value)
    along = G - Q @ (0.5 * (Q.T @ G + G.T @ Q))
    while loss(trial := np.linalg.qr(Q - rate * along)[0], images, centre) > value and rate > 1e-8:
        rate *= 0.5
    Q, rate = trial, rate * 1.5
print(f"orthonormal to {np.abs(Q.T @ Q - np.eye(6)).max():.0e}")

# %%
# How well images without a blot are rebuilt from six numbers each.


def rebuilt(Q, centre):
    return centre + (clean - centre) @ Q @ Q.T


pairs = (("usual", rebuilt(usual, images.mean(0))), ("robust", rebuilt(Q, centre)))
whole = (images == clean).all(1)
for name, found in pairs:
    print(f"{name}: mean squared error {((found - clean)[whole] ** 2).mean():.4f}")

figure, panels = plt.subplots(4, 6, figsize=(8, 5.4), layout="constrained")
shown = np.arange(5, 35, 5)
rows = (("image", clean), ("as given", images), *pairs)
for line, (name, found) in zip(panels, rows):
    for axes, one in zip(line, shown):
        axes.imshow(found[one].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        axes.set(xticks=[], yticks=[])
    line[0].set_ylabel(name)
plt.show()
