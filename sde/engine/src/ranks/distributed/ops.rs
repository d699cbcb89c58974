//! The operations on a distributed value of erased type.

use super::part::{Distributed, SavedParts};
use super::placement::Placement;
use super::redistribution::Redistribution;
use crate::error::{AppError, ArchiveError};
use crate::result_map::ErasedValue;

type RedistributeFn =
    fn(Option<&ErasedValue>, &Redistribution<'_>) -> Result<Option<ErasedValue>, AppError>;
/// Takes all descriptors, a function that reads a part, this rank and the number of ranks.
type AssembleFn = fn(&[Vec<u64>], Read<'_>, usize, usize) -> Result<ErasedValue, AppError>;
type Read<'a> = &'a dyn Fn(usize) -> Result<ErasedValue, ArchiveError>;

/// The functions of one [`Distributed`] type.
#[derive(Clone, Copy)]
pub(crate) struct DistOps {
    pub(crate) part_descriptor: fn(&ErasedValue) -> Option<Vec<u64>>,
    pub(crate) redistribute_parts: RedistributeFn,
    pub(crate) assemble: AssembleFn,
    pub(crate) bind: fn(&ErasedValue, &Placement),
    pub(crate) check: fn(&[Vec<u64>]) -> Result<(), AppError>,
}

impl DistOps {
    pub(crate) const fn of<T: Distributed>() -> Self {
        Self {
            part_descriptor: |value| Some(value.downcast_ref::<T>()?.part_descriptor()),
            redistribute_parts: |part, over| {
                let part = part.and_then(|part| part.downcast_ref::<T>());
                Ok(T::redistribute_parts(part, over)?.map(ErasedValue::new))
            },
            assemble: |descriptors, read, rank, ranks| {
                let read = |part: usize| -> Result<T, ArchiveError> {
                    let value = read(part)?;
                    let type_name = value.type_name();
                    let another = || ArchiveError::Damaged {
                        why: format!("a {type_name} was saved"),
                    };
                    let shared = value.downcast::<T>().ok_or_else(another)?;
                    drop(value);
                    let held = |_| ArchiveError::Other("others hold it".to_owned());
                    crate::result_map::Value::try_unwrap(shared).map_err(held)
                };
                T::check(descriptors)?;
                let parts = SavedParts {
                    descriptors,
                    read: &read,
                };
                T::assemble(&parts, rank, ranks).map(ErasedValue::new)
            },
            check: T::check,
            bind: |value, at| {
                if let Some(value) = value.downcast_ref::<T>() {
                    value.bind(at);
                }
            },
        }
    }
}

impl std::fmt::Debug for DistOps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DistOps")
    }
}
