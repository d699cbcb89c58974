//! The test kit, and the tests that cross crates
