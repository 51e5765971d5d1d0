/* What the functions here are given: C-contiguous arrays, of `real` or of int64_t.
 *
 * Each file defines `run`, the value and the gradient of one workload, derived by hand. The first output is
 * the value. REAL comes from the compiler's command line. */
#include <math.h>
#include <stdint.h>

typedef REAL real;

typedef struct {
    void *data;
    int64_t shape[4];
} array;

void run(const array *inputs, const array *outputs);

/* The function of <math.h> in the precision of `real`: vectorised by -ffast-math and libmvec. */
#define MATH(name, x) (sizeof(real) == sizeof(float) ? name##f(x) : name(x))

/* Sums of one block are in `real`, those of blocks in double; below PARALLEL elements one thread is faster. */
enum { BLOCK = 4096, PARALLEL = 50000 };

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
