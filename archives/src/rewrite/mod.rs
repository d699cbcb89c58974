//! Writing what counts of some segments to others: the one operation behind compactions, merging, archives, copies, and
//! what ranks commit together.
//!
//! Nothing is changed in place. What is rewritten is [selected](select) first, by merging the indexes of the
//! [sources](source), within the [limits] of a user if there are such; then it is [written](write) and read back.

pub(crate) mod facts;
pub(crate) mod limits;
pub(crate) mod select;
pub(crate) mod selected;
pub(crate) mod source;
pub(crate) mod write;
