//! What happens to results when the ranks of a program do different things.
//!
//! Each rank has caches of its own. A process set may be split, so that its parts compute
//! different things, and released, after which all of its ranks are to have what any of them
//! has computed. Ordinary results are the same wherever they were made, so they are
//! [exchanged](exchange): keys first, then each value that somebody lacks, once. What arrives
//! waits as [bytes](received) until a run asks for it, as if it were in a store. Results of
//! distributed apps belong to the process set that made them ([`ProcessSet`]).

mod exchange;
mod packed;
mod parts;
mod received;
mod set;
mod stream;

pub(crate) use exchange::{Exchange, Left, Offer, Sent};
pub(crate) use packed::{pack, unpack};
pub(crate) use parts::{Outlines, StoredParts, head_of, origin_of, part_of};
pub(crate) use received::{ReceivedEntry, ReceivedResult};
pub(crate) use set::{ProcessSet, Sets, Together};
