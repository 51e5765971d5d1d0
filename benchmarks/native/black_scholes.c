/* The sum of the prices of European calls, and each one's greeks: by spot, strike, rate, volatility, years. */
#include "arrays.h"

void run(const array *inputs, const array *outputs) {
    const int64_t n = inputs[0].shape[0];
    const real *spot = inputs[0].data, *strike = inputs[1].data, *rate = inputs[2].data;
    const real *volatility = inputs[3].data, *years = inputs[4].data;
    real *restrict delta = outputs[1].data, *restrict by_strike = outputs[2].data;
    real *restrict rho = outputs[3].data, *restrict vega = outputs[4].data, *restrict theta = outputs[5].data;
    const real root_of_half = (real)0.70710678118654752440, density_at_zero = (real)0.39894228040143267794;
    double total = 0;
#pragma omp parallel for reduction(+ : total) if (n > PARALLEL)
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t stop = smaller(start + BLOCK, n);
        real sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = start; i < stop; i++) {
            const real root = MATH(sqrt, years[i]), deviation = volatility[i] * root;
            const real drift = (rate[i] + (real)0.5 * volatility[i] * volatility[i]) * years[i];
            const real d1 = (MATH(log, spot[i] / strike[i]) + drift) / deviation, d2 = d1 - deviation;
            const real n1 = (real)0.5 + (real)0.5 * MATH(erf, d1 * root_of_half);
            const real n2 = (real)0.5 + (real)0.5 * MATH(erf, d2 * root_of_half);
            const real discounted = MATH(exp, -rate[i] * years[i]) * n2, paid = strike[i] * discounted;
            const real density = spot[i] * density_at_zero * MATH(exp, (real)-0.5 * d1 * d1);
            sum += spot[i] * n1 - paid;
            delta[i] = n1;
            by_strike[i] = -discounted;
            rho[i] = paid * years[i];
            vega[i] = density * root;
            theta[i] = (real)0.5 * density * volatility[i] / root + rate[i] * paid;
        }
        total += sum;
    }
    *(real *)outputs[0].data = (real)total;
}
