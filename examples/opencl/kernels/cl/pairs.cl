// Pairs of primitive Gaussians as sums of Hermite Gaussians (McMurchie and Davidson, 1978).
//
// In: for each pair both exponents, the product of the coefficients, both centres: 9 numbers.
// Out: the sum of the exponents, the centre of the product, and the matrix from Hermite Gaussians to
// the products of the two shells' functions.

#define WIDTH (LA + LB + 1)
#define AT(i, j, t) (((i) * (LB + 1) + (j)) * WIDTH + (t))

// The coefficients of one coordinate for all powers up to LA and LB.
static void expand(REAL *e, REAL p, REAL pa, REAL pb, REAL start) {
    for (int n = 0; n < AT(LA, LB, WIDTH); ++n)
        e[n] = 0;
    e[0] = start;
    for (int i = 0; i <= LA; ++i) {
        for (int j = 0; j <= LB; ++j) {
            if (i + j == 0)
                continue;
            // From one power less, of the second Gaussian if it has any.
            const int from_i = j > 0 ? i : i - 1;
            const int from_j = j > 0 ? j - 1 : 0;
            const REAL x = j > 0 ? pb : pa;
            for (int t = 0; t <= i + j; ++t) {
                REAL value = x * e[AT(from_i, from_j, t)];
                if (t > 0)
                    value += e[AT(from_i, from_j, t - 1)] / ((REAL)2 * p);
                if (t + 1 < i + j)
                    value += (REAL)(t + 1) * e[AT(from_i, from_j, t + 1)];
                e[AT(i, j, t)] = value;
            }
        }
    }
}

kernel void pairs(global const REAL *in, global REAL *out, int count) {
    const int pair = get_global_id(0);
    if (pair >= count)
        return;
    in += 9 * pair;
    out += (4 + HERMITES * FUNCTIONS) * pair;
    const REAL a = in[0], b = in[1], p = a + b;
    REAL e[3][AT(LA, LB, WIDTH)];
    out[0] = p;
    for (int axis = 0; axis < 3; ++axis) {
        const REAL ax = in[3 + axis], bx = in[6 + axis];
        const REAL px = (a * ax + b * bx) / p;
        expand(e[axis], p, px - ax, px - bx, exp(-a * b / p * (ax - bx) * (ax - bx)));
        out[1 + axis] = px;
    }
    for (int h = 0; h < HERMITES; ++h) {
        for (int i = 0; i < FUNCTIONS_A; ++i) {
            for (int j = 0; j < FUNCTIONS_B; ++j) {
                REAL value = in[2] * NORMS_A[i] * NORMS_B[j];
                // Beyond the sum of the powers the coefficients are 0.
                for (int axis = 0; axis < 3; ++axis)
                    value *= e[axis][AT(POWERS_A[i][axis], POWERS_B[j][axis], TRIPLES[h][axis])];
                out[4 + h * FUNCTIONS + i * FUNCTIONS_B + j] = value;
            }
        }
    }
}
