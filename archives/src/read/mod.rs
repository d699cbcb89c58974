//! Entries, scratch states and their values.

pub(crate) mod find;
pub(crate) mod frame;
pub(crate) mod payload;
pub(crate) mod relocatable;
