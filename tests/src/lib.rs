//! The test kit, and the tests that cross crates

#![forbid(unsafe_code)]

#[cfg(doctest)]
mod docs;
