/* Squared misfit of a plate's temperature after a step of the heat equation for each interval; gradient of the
 * first temperature and of the conductivity, by the adjoint steps over the stored plates. */
#include "arrays.h"
#include <stdlib.h>
#include <string.h>

/* Plates have a frame of zeros, so that no point is special: element (i, j) is at (i + 1) * width + j + 1. */
static inline real laplacian(const real *plate, int64_t at, int64_t width) {
    return plate[at - width] + plate[at + width] + plate[at - 1] + plate[at + 1] - 4 * plate[at];
}

void run(const array *inputs, const array *outputs) {
    const int64_t rows = inputs[0].shape[0], columns = inputs[0].shape[1], width = columns + 2;
    const int64_t size = (rows + 2) * width, steps = inputs[2].shape[0], needed = (steps + 3) * size;
    const real *first = inputs[0].data, conductivity = *(real *)inputs[1].data;
    const real *intervals = inputs[2].data, *measured = inputs[3].data;
    static real *plates = NULL; /* kept: page faults would cost more than the steps */
    static int64_t kept = 0;
    if (kept != needed) {
        free(plates);
        plates = calloc(needed, sizeof(real)), kept = needed;
    }
    real *adjoint = plates + (steps + 1) * size, *next = adjoint + size;
    double total = 0, by_conductivity = 0;
    for (int64_t i = 0; i < rows; i++)
        memcpy(plates + (i + 1) * width + 1, first + i * columns, columns * sizeof(real));

#pragma omp parallel if (rows * columns > PARALLEL)
    {
        for (int64_t step = 0; step < steps; step++) {
            const real *from = plates + step * size, rate = conductivity * intervals[step];
            real *restrict to = plates + (step + 1) * size;
#pragma omp for
            for (int64_t i = 0; i < rows; i++) {
#pragma omp simd
                for (int64_t at = (i + 1) * width + 1; at < (i + 1) * width + 1 + columns; at++)
                    to[at] = from[at] + rate * laplacian(from, at, width);
            }
        }
#pragma omp for reduction(+ : total)
        for (int64_t i = 0; i < rows; i++) {
            for (int64_t j = 0; j < columns; j++) {
                const int64_t at = (i + 1) * width + j + 1;
                const real apart = plates[steps * size + at] - measured[i * columns + j];
                total += apart * apart;
                (steps % 2 ? next : adjoint)[at] = 2 * apart; /* so that the last one is in `adjoint` */
            }
        }
        for (int64_t step = steps - 1; step >= 0; step--) {
            const real *plate = plates + step * size, *from = step % 2 ? adjoint : next;
            const real rate = conductivity * intervals[step];
            real *restrict to = step % 2 ? next : adjoint;
#pragma omp for reduction(+ : by_conductivity)
            for (int64_t i = 0; i < rows; i++) {
                real sum = 0;
#pragma omp simd reduction(+ : sum)
                for (int64_t at = (i + 1) * width + 1; at < (i + 1) * width + 1 + columns; at++) {
                    sum += from[at] * laplacian(plate, at, width);
                    to[at] = from[at] + rate * laplacian(from, at, width);
                }
                by_conductivity += sum * intervals[step];
            }
        }
    }
    real *by_first = outputs[1].data;
    for (int64_t i = 0; i < rows; i++)
        memcpy(by_first + i * columns, adjoint + (i + 1) * width + 1, columns * sizeof(real));
    *(real *)outputs[2].data = (real)by_conductivity;
    *(real *)outputs[0].data = (real)total;
}
