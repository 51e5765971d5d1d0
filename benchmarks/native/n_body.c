/* The potential energy of n bodies with softened distances; gradient of masses and positions. Each pair is
 * looked at once. */
#include "arrays.h"
#include <stdlib.h>

static const real SOFTENING = (real)0.01;

void run(const array *inputs, const array *outputs) {
    const int64_t n = inputs[0].shape[0];
    const real *mass = inputs[0].data, *positions = inputs[1].data;
    real *coordinates = malloc(3 * n * sizeof(real)), *sums = calloc(4 * n, sizeof(real));
    real *x = coordinates, *y = x + n, *z = y + n;
    for (int64_t i = 0; i < n; i++)
        x[i] = positions[3 * i], y[i] = positions[3 * i + 1], z[i] = positions[3 * i + 2];
    /* Of each body: the sum over others of mass / distance, and of mass (its position - theirs) / distance^3. */
#pragma omp parallel for schedule(static, 16) reduction(+ : sums[:4 * n]) if (n * n > PARALLEL)
    for (int64_t i = 0; i < n; i++) {
        real *restrict potential = sums, *restrict gx = sums + n, *restrict gy = gx + n, *restrict gz = gy + n;
        real p = 0, fx = 0, fy = 0, fz = 0;
#pragma omp simd reduction(+ : p, fx, fy, fz)
        for (int64_t j = i + 1; j < n; j++) {
            const real dx = x[i] - x[j], dy = y[i] - y[j], dz = z[i] - z[j];
            const real inverse = 1 / MATH(sqrt, dx * dx + dy * dy + dz * dz + SOFTENING);
            const real cube = inverse * inverse * inverse, of_j = mass[j] * cube, of_i = mass[i] * cube;
            p += mass[j] * inverse, fx += of_j * dx, fy += of_j * dy, fz += of_j * dz;
            potential[j] += mass[i] * inverse, gx[j] -= of_i * dx, gy[j] -= of_i * dy, gz[j] -= of_i * dz;
        }
        potential[i] += p + mass[i] / MATH(sqrt, SOFTENING); /* a body meets itself, too */
        gx[i] += fx, gy[i] += fy, gz[i] += fz;
    }
    real *by_mass = outputs[1].data, *by_position = outputs[2].data;
    double total = 0;
    for (int64_t i = 0; i < n; i++) {
        total -= 0.5 * mass[i] * sums[i];
        by_mass[i] = -sums[i];
        for (int64_t axis = 0; axis < 3; axis++)
            by_position[3 * i + axis] = mass[i] * sums[(axis + 1) * n + i];
    }
    free(coordinates), free(sums);
    *(real *)outputs[0].data = (real)total;
}
