//! What is known of a store: its segments, what lies where in them, its manifests.

pub(crate) mod filter;
pub(crate) mod index;
pub(crate) mod manifests;
pub(crate) mod scan;
pub(crate) mod segments;
pub(crate) mod table;
