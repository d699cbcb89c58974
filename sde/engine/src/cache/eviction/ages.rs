//! Ages on a scale that is finer for the young: two steps an octave.

/// How many steps there are: more than ticks fit into a word of [uses](super::Uses).
pub(super) const AGES: usize = 88;

/// The logarithm to base two in steps of 1/256, interpolated between powers of two. No library's, so that it is the
/// same on all machines.
pub(super) fn octaves(number: u64) -> u32 {
    let number = number.max(1);
    let whole = number.ilog2();
    let rest = (number << (63 - whole)) << 1 >> 56;
    whole << 8 | rest as u32
}

/// The step that an age is in.
pub(super) fn step(age: u64) -> usize {
    (octaves(age + 1) as usize / 128).min(AGES - 1)
}

/// The age at which a step begins: 0, 1/2, 1, 2, 3, 5, 7, 11.. One more than this doubles every two steps: an exponent
/// and the first bit of a mantissa.
pub(super) fn start(step: usize) -> f64 {
    f64::from_bits((2046 + step as u64) << 51) - 1.0
}
