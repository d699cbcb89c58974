//! SDE: a memoizing computation framework with checkpointing
