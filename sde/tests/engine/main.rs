//! The engine's rules, a module a theme.

mod callees;
mod first;
mod identity;
mod mended;
mod nondeterminism;
mod policies;
mod scratch;
mod turns;
