//! The engine's rules, a module a theme.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod callees;
mod depth;
mod differences;
mod errors;
mod first;
mod identity;
mod mended;
mod metadata;
mod nearest;
mod nondeterminism;
mod policies;
mod room;
mod same_name;
mod scratch;
mod turns;
mod volatile;
mod words;
