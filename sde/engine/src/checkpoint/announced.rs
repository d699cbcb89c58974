//! The processes that use a store, and the keys that they compute.

/// The outcome of [announcing](super::Archiver::announce) a key.
#[non_exhaustive]
pub enum Announced {
    /// Other processes are told that this one computes it, until this is dropped.
    Mine(Box<dyn Send + Sync>),
    /// Another process computes it, as far as can be told.
    Others(Holder),
    /// This store tells other processes nothing, or could not.
    Unsupported,
}

/// A process that has announced a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The name of its machine.
    pub host: String,
    /// Its number there.
    pub process: u32,
}
