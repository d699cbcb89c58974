//! The code in README.md and `docs/`, compiled and run as doctests.
//!
//! One item for each document that has Rust in it; a house test notices one that is missing.
