"""
Laying one photograph over another
==================================

The Summer Palace (`sklearn.datasets.load_sample_image`), photographed twice: the second time the camera was
turned, moved and a little nearer, there was less light, and there is noise. Which rotation, scale and shift
lay the second over the first? A warp reads an image between its pixels, so it has a gradient by the four
numbers that describe it.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage
from scipy.optimize import minimize
from sklearn.datasets import load_sample_image

import pullback as pb
import pullback.nn.functional as F

gray = load_sample_image("china.jpg").mean(2) / 255.0
rows, columns = np.mgrid[0:200, 0:200] - 99.5


def taken(angle, scale, down, right):
    """A view of 200 by 200 pixels of the photograph, by SciPy's cubic interpolation."""
    s, c = scale * np.sin(angle), scale * np.cos(angle)
    where = [c * rows - s * columns + 170 + down, s * rows + c * columns + 320 + right]
    return ndimage.map_coordinates(gray, where, order=3)


rng = np.random.default_rng(0)
truth = np.array([0.15, 0.92, -9.0, 14.0])
first = taken(0.0, 1.0, 0.0, 0.0)
second = 0.8 * taken(*truth) + rng.normal(scale=0.05, size=first.shape)

# %%
# The second image, read where the pixels of the first lie in it. `affine_grid` and `grid_sample` are
# PyTorch's functions, and take arrays. Brightness does not count: images are compared without mean and scale.


def warped(p, image):
    """`p`: the angle, the logarithm of the scale, and the shift in units of half an image."""
    s, c = np.exp(p[1]) * np.sin(p[0]), np.exp(p[1]) * np.cos(p[0])
    theta = np.stack([np.stack([c, s, p[3]]), np.stack([-s, c, p[2]])])
    grid = F.affine_grid(theta[None], (1, 1, *image.shape), align_corners=False)
    return F.grid_sample(image[None, None], grid, align_corners=False, padding_mode="border")[0, 0]


@pb.compile
def difference(p, first, second):
    """1 less the correlation of the middle of both images."""
    a, b = first[40:-40, 40:-40], warped(p, second)[40:-40, 40:-40]
    a, b = a - a.mean(), b - b.mean()
    return 1.0 - (a * b).sum() / np.sqrt((a**2).sum() * (b**2).sum())


# %%
# From coarse to fine: blurred images have few places to be caught in.

p = np.zeros(4)
for width in (16.0, 8.0, 4.0, 2.0, 1.0):
    blurred = [ndimage.gaussian_filter(image, width) for image in (first, second)]
    found = minimize(pb.value_and_grad(difference), p, args=tuple(blurred), jac=True, method="BFGS")
    p = found.x
    print(f"blurred by {width:4.1f} pixels: angle {np.degrees(p[0]):7.3f}°, scale {np.exp(p[1]):.4f}")
print(f"      what it should be: angle {-np.degrees(truth[0]):7.3f}°, scale {1 / truth[1]:.4f}")

# %%
# Both images in one picture, whose squares are from the first and the second by turns. Before, the roof
# breaks at each border.


def squares(a, b):
    chosen = (np.indices(a.shape) // 25).sum(0) % 2 == 0
    return np.where(chosen, (a - a.mean()) / a.std(), (b - b.mean()) / b.std())


figure, panels = plt.subplots(1, 4, figsize=(11, 3.0), layout="constrained")
titles = ("the first photograph", "the second", "squares of both, before", "and laid over each other")
shown = (first, second, squares(first, second), squares(first, warped(p, second)))
for axes, image, title in zip(panels, shown, titles):
    axes.imshow(image, cmap="gray")
    axes.set_title(title)
    axes.axis("off")
plt.show()
