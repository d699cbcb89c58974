//! SDE: a memoizing computation framework with checkpointing

pub mod last_value;
mod sync;
