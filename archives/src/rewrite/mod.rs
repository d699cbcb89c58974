//! Copies the frames that count of some segments to others: the operation behind compactions, merges, archives,
//! copies, and collective commits.
//!
//! Nothing is changed in place. The frames are [selected](select) first, by merging the indexes of the
//! [sources](source), within a user's [limits] if there are any. Then they are [written](write) and read back.

pub(crate) mod facts;
pub(crate) mod limits;
pub(crate) mod removal;
pub(crate) mod select;
pub(crate) mod selected;
pub(crate) mod source;
pub(crate) mod write;
