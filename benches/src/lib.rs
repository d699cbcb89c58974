//! Benchmarks against peers, as ratios in one run

#![forbid(unsafe_code)]
