//! Writes batches to segments.

pub(crate) mod encode;
pub(crate) mod frame;
pub(crate) mod group_commit;
pub(crate) mod segment_writer;
pub(crate) mod unsynced;
