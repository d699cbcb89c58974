//! What can be done with a distributed value whose type only its app knows.

use super::hand_over::HandOver;
use super::part::{Distributed, SavedParts};
use super::whereabouts::Whereabouts;
use crate::error::{AppError, ArchiveError};
use crate::result_map::ErasedValue;

type HandOverFn = fn(Option<&ErasedValue>, &HandOver<'_>) -> Result<Option<ErasedValue>, AppError>;
/// From all outlines and what reads a part, for a rank of so many.
type AssembleFn = fn(&[Vec<u64>], Read<'_>, usize, usize) -> Result<ErasedValue, AppError>;
type Read<'a> = &'a dyn Fn(usize) -> Result<ErasedValue, ArchiveError>;

/// The functions of one [`Distributed`] type.
#[derive(Clone, Copy)]
pub(crate) struct DistOps {
    pub(crate) outline: fn(&ErasedValue) -> Option<Vec<u64>>,
    pub(crate) bytes: fn(&ErasedValue) -> usize,
    pub(crate) hand_over: HandOverFn,
    pub(crate) assemble: AssembleFn,
    pub(crate) settle: fn(&ErasedValue, &Whereabouts),
    pub(crate) check: fn(&[Vec<u64>]) -> Result<(), AppError>,
}

impl DistOps {
    pub(crate) const fn of<T: Distributed>() -> Self {
        Self {
            outline: |value| Some(value.downcast_ref::<T>()?.outline()),
            bytes: |value| value.downcast_ref::<T>().map_or(0, T::bytes),
            hand_over: |part, over| {
                let part = part.and_then(|part| part.downcast_ref::<T>());
                Ok(T::hand_over(part, over)?.map(ErasedValue::new))
            },
            assemble: |outlines, read, rank, ranks| {
                let read = |part: usize| -> Result<T, ArchiveError> {
                    let value = read(part)?;
                    let type_name = value.type_name();
                    let another = || ArchiveError::Damaged {
                        why: format!("a {type_name} was saved"),
                    };
                    let shared = value.downcast::<T>().ok_or_else(another)?;
                    drop(value);
                    let held = |_| ArchiveError::Other("somebody holds it".to_owned());
                    crate::result_map::Value::try_unwrap(shared).map_err(held)
                };
                T::check(outlines)?;
                let parts = SavedParts {
                    outlines,
                    read: &read,
                };
                T::assemble(&parts, rank, ranks).map(ErasedValue::new)
            },
            check: T::check,
            settle: |value, at| {
                if let Some(value) = value.downcast_ref::<T>() {
                    value.settle(at);
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
