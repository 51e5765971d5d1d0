/* The mean over rows of softplus(z) - y z, where z = x weights + bias; gradient of weights and bias. */
#include "arrays.h"

enum { ROWS = 128 };

void run(const array *inputs, const array *outputs) {
    const int64_t n = inputs[0].shape[0], d = inputs[0].shape[1];
    const real *x = inputs[0].data, *y = inputs[1].data, *weights = inputs[2].data;
    const real bias = *(real *)inputs[3].data;
    real *gw = outputs[1].data;
    double total = 0, gb = 0;
    for (int64_t j = 0; j < d; j++) gw[j] = 0;
#pragma omp parallel for reduction(+ : total, gb, gw[:d]) if (n * d > PARALLEL)
    for (int64_t start = 0; start < n; start += ROWS) {
        const int64_t rows = smaller(ROWS, n - start);
        const real *block = x + start * d;
        real z[ROWS], sum = 0, sum_of_g = 0;
        for (int64_t i = 0; i < rows; i++) {
            real dot = bias;
#pragma omp simd reduction(+ : dot)
            for (int64_t j = 0; j < d; j++) dot += block[i * d + j] * weights[j];
            z[i] = dot;
        }
#pragma omp simd reduction(+ : sum, sum_of_g)
        for (int64_t i = 0; i < rows; i++) {
            const real e = MATH(exp, -MATH(fabs, z[i])), positive = z[i] > 0 ? z[i] : 0;
            const real sigmoid = (z[i] > 0 ? 1 : e) / (1 + e);
            sum += MATH(log, 1 + e) + positive - y[start + i] * z[i];
            z[i] = (sigmoid - y[start + i]) / n;
            sum_of_g += z[i];
        }
        for (int64_t i = 0; i < rows; i++) {
#pragma omp simd
            for (int64_t j = 0; j < d; j++) gw[j] += z[i] * block[i * d + j];
        }
        total += sum, gb += sum_of_g;
    }
    *(real *)outputs[0].data = (real)(total / n);
    *(real *)outputs[2].data = (real)gb;
}
