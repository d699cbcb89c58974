// The Boys function F_m(t), the integral of u^2m exp(-t u^2) over u from 0 to 1: f[0] to f[DEGREE].
//
// Up to 36 the series gives the highest order, and the recurrence downwards, which loses nothing, the
// others. Beyond, erf(sqrt(t)) is 1 to the last bit.
static void boys(REAL t, REAL *f) {
    const REAL e = exp(-t);
    if (t >= (REAL)36) {
        const REAL half_over_t = (REAL)0.5 / t;
        f[0] = (REAL)0.5 * sqrt(PI / t);
        for (int m = 1; m <= DEGREE; ++m)
            f[m] = ((REAL)(2 * m - 1) * f[m - 1] - e) * half_over_t;
        return;
    }
    REAL term = (REAL)1 / (REAL)(2 * DEGREE + 1);
    REAL sum = term;
    REAL odd = (REAL)(2 * DEGREE + 3);
    while (term > ENOUGH * sum) {
        term *= (REAL)2 * t / odd;
        sum += term;
        odd += (REAL)2;
    }
    f[DEGREE] = e * sum;
    for (int m = DEGREE - 1; m >= 0; --m)
        f[m] = ((REAL)2 * t * f[m + 1] + e) / (REAL)(2 * m + 1);
}
