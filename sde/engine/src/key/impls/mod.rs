//! [`Fingerprint`](super::Fingerprint) for the types of the standard library and of the number
//! crates.

#[cfg(feature = "ndarray-0_17")]
mod array;
mod map;
mod misc;
mod pointer;
mod scalar;
mod sequence;
mod sum;
mod text;
mod tuple;
