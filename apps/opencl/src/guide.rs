//! The code in the guide's page on kernels, compiled and run as a doctest.

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/07-kernels.md")]
mod kernels {}
