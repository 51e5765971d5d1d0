/* Rosenbrock's function, summed over neighbours, and its gradient. */
#include "arrays.h"

void run(const array *inputs, const array *outputs) {
    const int64_t n = inputs[0].shape[0];
    const real *x = inputs[0].data;
    real *restrict gradient = outputs[1].data, sum = 0, from_before = 0;
    for (int64_t i = 0; i + 1 < n; i++) {
        const real rise = x[i + 1] - x[i] * x[i], short_of_one = 1 - x[i];
        sum += 100 * rise * rise + short_of_one * short_of_one;
        gradient[i] = from_before - 400 * rise * x[i] - 2 * short_of_one;
        from_before = 200 * rise;
    }
    gradient[n - 1] = from_before;
    *(real *)outputs[0].data = sum;
}
