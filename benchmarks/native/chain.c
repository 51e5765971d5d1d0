/* sum(tanh(x w + b) exp(-x^2)), and its gradient with respect to x, w and b. */
#include "arrays.h"

void run(const array *inputs, const array *outputs) {
    const int64_t n = inputs[0].shape[0];
    const real *x = inputs[0].data, *w = inputs[1].data, *b = inputs[2].data;
    real *restrict gx = outputs[1].data, *restrict gw = outputs[2].data, *restrict gb = outputs[3].data;
    double total = 0;
#pragma omp parallel for reduction(+ : total) if (n > PARALLEL)
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t stop = smaller(start + BLOCK, n);
        real sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = start; i < stop; i++) {
            const real t = MATH(tanh, x[i] * w[i] + b[i]), e = MATH(exp, -x[i] * x[i]);
            const real product = t * e, inner = (1 - t * t) * e;
            sum += product;
            gx[i] = inner * w[i] - 2 * x[i] * product;
            gw[i] = inner * x[i];
            gb[i] = inner;
        }
        total += sum;
    }
    *(real *)outputs[0].data = (real)total;
}
