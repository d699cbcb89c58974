//! Messages of any length from each rank to all.

use std::time::Duration;

use sde::archiver::ArchiveError;
use sde::ranks::{GroupError, ProcessGroup};

/// Gives each rank the messages of all, in the order of ranks.
///
/// # Errors
/// If a rank has left the group.
pub(super) fn share(group: &dyn ProcessGroup, mine: &[u8]) -> Result<Vec<Vec<u8>>, ArchiveError> {
    let length = (mine.len() as u64).to_le_bytes();
    // The engine has just met here, and has warned of late ranks.
    let lengths = group.meet(&length, Duration::MAX, &mut |_| {});
    let lengths = lengths.map_err(|error| cut_off(&error))?;
    let counts: Vec<usize> = lengths
        .as_chunks::<8>()
        .0
        .iter()
        .map(|l| u64::from_le_bytes(*l) as usize)
        .collect();
    let mut all = vec![0; counts.iter().sum()];
    if !all.is_empty() {
        let gathered = group.all_gather(mine, &counts, &mut all);
        gathered.map_err(|error| cut_off(&error))?;
    }
    let mut rest = &all[..];
    let split = counts.into_iter().map(|count| {
        let (one, others) = rest.split_at(count);
        rest = others;
        one.to_vec()
    });
    Ok(split.collect())
}

fn cut_off(error: &GroupError) -> ArchiveError {
    ArchiveError::Other(format!(
        "the ranks were cut off while they saved together: {error}; what each had saved is still there"
    ))
}
