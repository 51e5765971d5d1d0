/* The mean over rows of logsumexp(row) - row[label], and its gradient with respect to the rows. */
#include "arrays.h"

void run(const array *inputs, const array *outputs) {
    const int64_t n = inputs[0].shape[0], classes = inputs[0].shape[1];
    const real *logits = inputs[0].data;
    const int64_t *labels = inputs[1].data;
    real *gradient = outputs[1].data;
    double total = 0;
#pragma omp parallel for reduction(+ : total) if (n * classes > PARALLEL)
    for (int64_t i = 0; i < n; i++) {
        const real *row = logits + i * classes;
        real *restrict g = gradient + i * classes;
        real largest = row[0], sum = 0;
#pragma omp simd reduction(max : largest)
        for (int64_t j = 0; j < classes; j++) largest = row[j] > largest ? row[j] : largest;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < classes; j++) {
            g[j] = MATH(exp, row[j] - largest);
            sum += g[j];
        }
        const real scale = 1 / (sum * n);
#pragma omp simd
        for (int64_t j = 0; j < classes; j++) g[j] *= scale;
        g[labels[i]] -= (real)1 / n;
        total += log(sum) + largest - row[labels[i]];
    }
    *(real *)outputs[0].data = (real)(total / n);
}
