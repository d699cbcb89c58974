//! Which computation of a key counts.

use std::time::SystemTime;

use sde::{RunId, Tags};

/// The precedence of a computation among those of its key: **the highest counts.**
///
/// A key may have been computed more than once: refreshed, invalidated, or by two processes at one
/// time. All computations are in the store until a compaction drops what does not count. Everything
/// that has to choose goes by this order: looking an entry up, a compaction, and what lists, exports
/// and compares stores.
///
/// - One whose results are there counts before one of which only intermediates are, or a result is
///   damaged: its save was cut short, and what it was to take the place of is not to be lost for
///   that. The values of a key with several computations are looked at to know that: all by a compaction, and else those
///   of up to 16 MiB; of longer ones what a frame says to be there is taken for whole.
/// - Of those the one whose record has the latest `made_at` counts. What takes the place of an entry is made
///   later than it, whatever the clocks say: the engine sees to that.
/// - Of two that were made at one time that counts whose last frame was saved later. One computation may lie
///   in several frames, in each class for instance: its precedence is the highest of theirs.
/// - If that is one time too, that with the greater [`RunId`]: so that all who choose choose the same.
///
/// Whether the one that counts may be used is another question, which marks answer: if it must not,
/// none of the key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Precedence {
    /// Whether a result is there that is archived, and none is known to be damaged; or there are none of
    /// that kind.
    pub has_results: bool,
    /// When it was made, as its record says.
    pub made_at: SystemTime,
    /// When it was saved, as its frame says, in nanoseconds since 1970.
    pub saved_at: u64,
    /// Which computation it is.
    pub run: RunId,
}

impl Precedence {
    /// That of what was saved in one frame, taken to be whole. `results` are the tags of all its
    /// results, and whether each has a value in this frame.
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
            run: RunId { process: 1, number },
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
