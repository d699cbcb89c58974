//! Benchmarks against peers, as ratios in one run
