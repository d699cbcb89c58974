//! Functions that `#[derive(Distributed)]` calls for the fields of a type.
//!
//! The descriptor of a value is the list of its fields' descriptors, each after its length. The descriptor of a field
//! that is the same on all ranks is its digest, which shows whether it is.

use super::part::SavedParts;
use crate::error::{AppError, ArchiveError};
use crate::key::{Fingerprint, commit};

/// Joins the descriptors of all fields into one.
#[must_use]
pub fn join_descriptors(fields: &[Vec<u64>]) -> Vec<u64> {
    let with_length = |field: &Vec<u64>| {
        let length = field.len() as u64;
        std::iter::once(length).chain(field.clone())
    };
    fields.iter().flat_map(with_length).collect()
}

/// The descriptors of one field, by its place, from joined descriptors.
///
/// # Errors
/// If a joined descriptor has no such field: it may come from a store or another rank.
pub fn descriptors_of(all: &[Vec<u64>], place: usize) -> Result<Vec<Vec<u64>>, AppError> {
    let of_field = |descriptor: &Vec<u64>| {
        let mut rest = &descriptor[..];
        let mut field = None;
        for _ in 0..=place {
            let (length, others) = rest.split_first()?;
            let length = usize::try_from(*length).ok()?;
            (field, rest) = others
                .split_at_checked(length)
                .map(|(own, rest)| (Some(own), rest))?;
        }
        field.map(<[u64]>::to_vec)
    };
    let bad = || AppError::message("the parts are of another type");
    all.iter()
        .map(|descriptor| of_field(descriptor).ok_or_else(bad))
        .collect()
}

/// The descriptor of a field that is the same on all ranks; empty if the field has no digest.
#[must_use]
pub fn descriptor_of_same<T: Fingerprint>(field: &T) -> Vec<u64> {
    let digest = commit(field).map(|commitment| commitment.digest());
    let numbers = |chunk: &[u8]| u64::from_le_bytes(chunk.try_into().unwrap_or_default());
    let chunks = digest.iter().flat_map(|digest| digest.as_bytes().chunks(8));
    chunks.map(numbers).collect()
}

/// Checks that a field is the same on all ranks.
///
/// # Errors
/// If it is not.
pub fn check_same(name: &str, descriptors: &[Vec<u64>]) -> Result<(), AppError> {
    let first = descriptors.first().filter(|first| !first.is_empty());
    let differs = |other: &Vec<u64>| first.is_none_or(|first| first != other);
    match descriptors.iter().position(differs) {
        None => Ok(()),
        Some(rank) => Err(AppError::message(format!(
            "\"{name}\" is `same` for all ranks, and part {rank} has another than part 0"
        ))),
    }
}

/// Reads a saved part for the fields that are the same in all parts. Ranks read different parts, each one that it needs
/// for its other fields too.
///
/// # Errors
/// As [`SavedParts::read`].
pub fn part_for<T>(
    parts: &SavedParts<'_, T>,
    rank: usize,
    ranks: usize,
) -> Result<T, ArchiveError> {
    parts.read(rank * parts.ranks() / ranks.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_come_back_and_what_is_none_is_an_error() {
        let fields = [vec![1, 2, 3], vec![], vec![u64::MAX]];
        let all = [join_descriptors(&fields), join_descriptors(&fields)];
        for (place, field) in fields.iter().enumerate() {
            let found = descriptors_of(&all, place).unwrap();
            assert_eq!(found, [field.clone(), field.clone()]);
        }
        assert!(descriptors_of(&all, 3).is_err());
        for bad in [vec![], vec![2, 1], vec![u64::MAX, 1]] {
            assert!(descriptors_of(&[bad], 0).is_err());
        }
    }

    #[test]
    fn what_is_not_the_same_is_told_by_its_rank() {
        let descriptors = [1.0, 1.0, 2.0].map(|x: f64| descriptor_of_same(&x));
        assert!(check_same("x", &descriptors[..2]).is_ok());
        let error = format!("{:#}", check_same("x", &descriptors).unwrap_err());
        assert!(
            error.contains("\"x\"") && error.contains("part 2"),
            "{error}"
        );
        // Empty descriptors tell nothing.
        assert!(check_same("x", &[vec![], vec![]]).is_err());
        assert!(check_same("x", &[]).is_ok());
    }
}
