/* The weighted sum of the rows' logsumexp; gradient of the matrix and of the weights. */
#include "arrays.h"

void run(const array *inputs, const array *outputs) {
    const int64_t n = inputs[0].shape[0], columns = inputs[0].shape[1];
    const real *x = inputs[0].data, *weights = inputs[1].data;
    real *gradient = outputs[1].data, *of_rows = outputs[2].data;
    double total = 0;
#pragma omp parallel for reduction(+ : total) if (n * columns > PARALLEL)
    for (int64_t i = 0; i < n; i++) {
        const real *row = x + i * columns;
        real *restrict g = gradient + i * columns;
        real largest = row[0], sum = 0;
#pragma omp simd reduction(max : largest)
        for (int64_t j = 0; j < columns; j++) largest = row[j] > largest ? row[j] : largest;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < columns; j++) {
            g[j] = MATH(exp, row[j] - largest);
            sum += g[j];
        }
        const real scale = weights[i] / sum;
#pragma omp simd
        for (int64_t j = 0; j < columns; j++) g[j] *= scale;
        of_rows[i] = MATH(log, sum) + largest;
        total += weights[i] * of_rows[i];
    }
    *(real *)outputs[0].data = (real)total;
}
