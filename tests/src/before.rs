//! Stores that do something of their own beside what another does.

use sde::archiver::{ArchiveError, Archiver, Batch, Saved};

/// In an `impl Archiver` of a test program: these methods are those of the store in a field.
#[macro_export]
macro_rules! forward {
    ($field:tt: $($method:ident),+) => {
        $($crate::forward!(@ $field $method);)+
    };
    (@ $field:tt save) => {
        fn save(&self, batch: &::sde::archiver::Batch) -> Result<::sde::archiver::Saved, ::sde::archiver::ArchiveError> {
            self.$field.save(batch)
        }
    };
    (@ $field:tt find) => {
        fn find(&self, key: &::sde::Key) -> Result<Option<::sde::archiver::StoredEntry>, ::sde::archiver::ArchiveError> {
            self.$field.find(key)
        }
    };
    (@ $field:tt find_scratch) => {
        fn find_scratch(
            &self,
            key: &::sde::Key,
        ) -> Result<Option<::std::sync::Arc<dyn ::sde::archiver::Payload>>, ::sde::archiver::ArchiveError> {
            self.$field.find_scratch(key)
        }
    };
    (@ $field:tt marks) => {
        fn marks(&self) -> Result<Vec<::sde::archiver::Mark>, ::sde::archiver::ArchiveError> {
            self.$field.marks()
        }
    };
    (@ $field:tt describe) => {
        fn describe(&self) -> String {
            self.$field.describe()
        }
    };
}

/// A store that does something before each save.
#[derive(Clone)]
pub struct Before<S, F>(pub S, pub F);

impl<S, F> Archiver for Before<S, F>
where
    S: Archiver,
    F: Fn(&Batch) -> Result<(), ArchiveError> + Send + Sync,
{
    fn save(&self, batch: &Batch) -> Result<Saved, ArchiveError> {
        (self.1)(batch)?;
        self.0.save(batch)
    }

    forward!(0: find, find_scratch, marks, describe);
}
