//! The engine's rules, a module a theme.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod callees;
mod first;
mod identity;
mod mended;
mod nondeterminism;
mod policies;
mod scratch;
mod turns;
