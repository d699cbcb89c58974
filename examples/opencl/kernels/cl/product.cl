// The product of two matrices stored by rows, tile by tile through local memory. Each may be stored
// as its transpose.

#if TRANSPOSED_A
#define A(i, k) a[(k) * rows + (i)]
#else
#define A(i, k) a[(i) * depth + (k)]
#endif
#if TRANSPOSED_B
#define B(k, j) b[(j) * depth + (k)]
#else
#define B(k, j) b[(k) * columns + (j)]
#endif

kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void product(global const REAL *a, global const REAL *b, global REAL *c,
             int rows, int columns, int depth) {
    local REAL left[TILE][TILE];
    local REAL right[TILE][TILE];
    const int x = get_local_id(0), y = get_local_id(1);
    const int column = get_global_id(0), row = get_global_id(1);
    REAL sum = 0;
    for (int first = 0; first < depth; first += TILE) {
        left[y][x] = row < rows && first + x < depth ? A(row, first + x) : 0;
        right[y][x] = first + y < depth && column < columns ? B(first + y, column) : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TILE; ++k)
            sum += left[y][k] * right[k][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < rows && column < columns)
        c[row * columns + column] = sum;
}
