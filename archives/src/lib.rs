//! The SDE store: checkpoints and archives on disk

#![forbid(unsafe_code)]
