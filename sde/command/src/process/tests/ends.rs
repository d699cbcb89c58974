//! The hard ends of runs.
