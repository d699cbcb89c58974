//! Programs on real input that show what SDE does

#![forbid(unsafe_code)]
