//! The SDE store: checkpoints and archives on disk
