//! Ages on a scale that is finer for the young: two steps an octave.

/// How many steps there are: more than ticks fit into a word of [uses](super::Uses).
pub(super) const AGES: usize = 88;

/// The logarithm to base two in steps of 1/256, by straight lines between powers of two. No library's, so that it is the same
/// on all machines.
pub(super) fn octaves(number: u64) -> u32 {
    let number = number.max(1);
    let whole = number.ilog2();
    let rest = (number << (63 - whole)) << 1 >> 56;
    whole << 8 | rest as u32
}

/// The step that an age is in.
pub(super) fn whole_step(age: u64) -> usize {
    (octaves(age + 1) as usize / 128).min(AGES - 1)
}

/// The age at which a step begins.
pub(super) fn start(step: usize) -> f64 {
    power(step as f64 / 2.0) - 1.0
}

/// Two to the power of a number, by straight lines like [`octaves`].
pub(super) fn power(number: f64) -> f64 {
    let whole = number.floor();
    (1.0 + number - whole) * 2_f64.powi(whole as i32)
}
