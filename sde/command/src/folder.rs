//! The folder of one run.
