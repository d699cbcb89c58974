//! Which computation of a key counts.

use std::time::SystemTime;

use sde::Tags;
use sde::record::RunId;

/// The precedence of a computation among those of its key: **the highest counts.**
///
/// A key may have been computed more than once: refreshed, invalidated, or by two processes at one time. The store
/// keeps all computations until a compaction drops superseded ones. Look-ups, compactions, and tools that list,
/// export or compare stores all choose by this order.
///
/// - A computation with its results precedes one with only intermediates, or with a damaged result: the save of the
///   latter was cut short, and must not hide the earlier one. If a key has several computations, their values are
///   checked for that. A compaction checks all values, others those of up to 16 MiB; longer ones count as whole if
///   a frame has them.
/// - Then the one with the latest `made_at` in its record counts. The engine makes an entry that supersedes another
///   later than it, whatever the clocks say.
/// - Then the one whose last frame was saved later counts. One computation may lie in several frames, one for each
///   class for instance: it has the highest of their precedences.
/// - Then the one with the greater [`RunId`] counts, so that all readers choose alike.
///
/// Whether the one that counts may be used is another question, which invalidation marks answer: if it must not, no
/// computation of the key is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Precedence {
    /// Whether an archived result is there and none is known to be damaged; also true if no result is to be
    /// archived.
    pub has_results: bool,
    /// When it was made, by its record.
    pub made_at: SystemTime,
    /// When it was saved, in nanoseconds since 1970, by its frame.
    pub saved_at: u64,
    /// The id of the computation.
    pub run: RunId,
}

impl Precedence {
    /// The precedence by one frame, assumed to be whole. `results` has each result's tags, and whether this frame
    /// has its value.
    pub(crate) fn of(
        (run, made_at): (RunId, SystemTime),
        saved_at: u64,
        results: impl IntoIterator<Item = (Tags, bool)>,
    ) -> Self {
        let mut archived = results
            .into_iter()
            .filter(|(tags, _)| tags.is_archived())
            .peekable();
        Self {
            has_results: archived.peek().is_none() || archived.any(|(_, is_there)| is_there),
            made_at,
            saved_at,
            run,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn made_last_then_saved_last_then_any_but_always_the_same() {
        let precedence = |made, saved_at, number| Precedence {
            has_results: true,
            made_at: UNIX_EPOCH + Duration::from_secs(made),
            saved_at,
            run: RunId::new(1, number),
        };
        let mut all = [
            precedence(2, 1, 1),
            precedence(1, 9, 9),
            precedence(2, 2, 1),
            precedence(1, 1, 1),
            precedence(2, 1, 2),
        ];
        all.sort();
        let sorted = [
            precedence(1, 1, 1),
            precedence(1, 9, 9),
            precedence(2, 1, 1),
            precedence(2, 1, 2),
            precedence(2, 2, 1),
        ];
        assert_eq!(all, sorted);
    }
}
