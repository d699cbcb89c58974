//! Entries, scratch states and their values.

pub(crate) mod content;
pub(crate) mod error;
pub(crate) mod frame;
pub(crate) mod payload;
