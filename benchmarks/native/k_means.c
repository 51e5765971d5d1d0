/* The cost of k-means, its gradient by the centroids, and its Hessian (diagonal: twice the number of a
 * centroid's points) times a vector. */
#include "arrays.h"
#include <stdlib.h>

enum { LANES = 32 }; /* centroids whose distances from a point are computed side by side */

/* Centroids as columns, padded with ones that are nearest to no point. */
static real *transposed(const real *centroids, int64_t k, int64_t d, int64_t width) {
    real *columns = malloc(width * d * sizeof(real));
    for (int64_t j = 0; j < d; j++)
        for (int64_t c = 0; c < width; c++) columns[j * width + c] = c < k ? centroids[c * d + j] : (real)1e18;
    return columns;
}

void run(const array *inputs, const array *outputs) {
    const int64_t n = inputs[0].shape[0], d = inputs[0].shape[1], k = inputs[1].shape[0];
    const int64_t width = (k + LANES - 1) / LANES * LANES;
    const real *points = inputs[0].data, *centroids = inputs[1].data, *vector = inputs[2].data;
    real *gradient = outputs[1].data, *product = outputs[2].data;
    real *columns = transposed(centroids, k, d, width), *sums = calloc(k * d, sizeof(real));
    real *counts = calloc(k, sizeof(real));
    double total = 0;
#pragma omp parallel for reduction(+ : total, sums[:k * d], counts[:k]) if (n * k * d > PARALLEL)
    for (int64_t i = 0; i < n; i++) {
        const real *point = points + i * d;
        real least = (real)INFINITY;
        int64_t nearest = 0;
        for (int64_t start = 0; start < width; start += LANES) {
            real squares[LANES] = {0};
            for (int64_t j = 0; j < d; j++) {
#pragma omp simd
                for (int64_t c = 0; c < LANES; c++) {
                    const real apart = point[j] - columns[j * width + start + c];
                    squares[c] += apart * apart;
                }
            }
            for (int64_t c = 0; c < LANES; c++)
                if (squares[c] < least) least = squares[c], nearest = start + c;
        }
        total += least;
        counts[nearest] += 1;
#pragma omp simd
        for (int64_t j = 0; j < d; j++) sums[nearest * d + j] += point[j];
    }
    for (int64_t c = 0; c < k; c++)
        for (int64_t j = c * d; j < (c + 1) * d; j++) {
            gradient[j] = 2 * (counts[c] * centroids[j] - sums[j]);
            product[j] = 2 * counts[c] * vector[j];
        }
    free(columns), free(sums), free(counts);
    *(real *)outputs[0].data = (real)total;
}
