//! The kernels: Boys functions, one kernel for each order.
//!
//! They are what integral libraries generate by the dozen: small, numeric, and each worth a compilation of its
//! own, since the order is known to the compiler.

use sde_opencl::ProgramSpec;

/// The items of a launch, and those that run together.
pub const ITEMS: usize = 64;
pub const GROUP: usize = 8;

/// The name of each kernel.
pub const NAME: &str = "boys";

const SOURCE: &str = "
kernel void boys(global const float *t, global float *f) {
    const size_t item = get_global_id(0);
    const float x = t[item], e = exp(-x);
    float term = 1.0f / (2 * ORDER + 1), sum = term, odd = 2 * ORDER + 3;
    while (term > 1e-9f * sum) {
        term *= 2 * x / odd;
        sum += term;
        odd += 2;
    }
    f += item * (ORDER + 1);
    f[ORDER] = e * sum;
    for (int m = ORDER - 1; m >= 0; --m)
        f[m] = (2 * x * f[m + 1] + e) / (2 * m + 1);
}
";

/// The source text for this order, as OpenCL gets it without a cache.
pub fn source(order: usize) -> String {
    format!("#define ORDER {order}\n{SOURCE}")
}

/// The program of this order, for the cache.
pub fn program(order: usize) -> ProgramSpec {
    ProgramSpec::source(source(order)).named(format!("boys {order}"))
}
