// The repulsion integrals of quartets of shells, from what `pairs` made: one quartet for each item.
//
// In: the pairs of both electrons, and for each quartet where its pairs of primitives begin and how
// many there are, of the first electron and of the second. `coulomb` is generated: it computes the
// derivatives of the Boys function, statement by statement.

#define BRA_PAIR (4 + BRA_HERMITES * BRA)
#define KET_PAIR (4 + KET_HERMITES * KET)

kernel void repulsion(global const REAL *bras, global const REAL *kets,
                      global const int4 *quartets, global REAL *out, int count) {
    const int number = get_global_id(0);
    if (number >= count)
        return;
    const int4 quartet = quartets[number];
    out += BRA * KET * number;
    for (int n = 0; n < BRA * KET; ++n)
        out[n] = 0;
    REAL half_done[BRA_HERMITES * KET];
    REAL r[TRIPLE_COUNT];
    for (int one = 0; one < quartet.y; ++one) {
        global const REAL *bra = bras + BRA_PAIR * (quartet.x + one);
        for (int n = 0; n < BRA_HERMITES * KET; ++n)
            half_done[n] = 0;
        for (int two = 0; two < quartet.w; ++two) {
            global const REAL *ket = kets + KET_PAIR * (quartet.z + two);
            const REAL p = bra[0], q = ket[0];
            const REAL scale = TWO_PI_TO_5_2 / (p * q * sqrt(p + q));
            coulomb(p * q / (p + q), bra[1] - ket[1], bra[2] - ket[2], bra[3] - ket[3], scale, r);
            for (int h = 0; h < BRA_HERMITES; ++h) {
                for (int k = 0; k < KET_HERMITES; ++k) {
                    const REAL value = SIGNS[k] * r[SUMS[h][k]];
                    for (int cd = 0; cd < KET; ++cd)
                        half_done[h * KET + cd] += value * ket[4 + k * KET + cd];
                }
            }
        }
        for (int h = 0; h < BRA_HERMITES; ++h)
            for (int ab = 0; ab < BRA; ++ab)
                for (int cd = 0; cd < KET; ++cd)
                    out[ab * KET + cd] += bra[4 + h * BRA + ab] * half_done[h * KET + cd];
    }
}
