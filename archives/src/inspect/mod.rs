//! Inspects a store without an engine, and without trusting its contents.
//!
//! When a store is damaged, its owner wants to know what is left: which files, entries and values. The engine only
//! reports misses. A person who was sent an archive wants to see its entries without the Rust types of the program
//! that made it.
//!
//! So this reads all files, frame by frame, and changes nothing. Nothing counts as whole unless it was checked;
//! each length is compared with the rest of the file before it is used; memory stays bounded, however large the
//! payloads are. Damage is reported with its place, and reading goes on after it.
//!
//! ```
//! use sde::{Sde, Value};
//! use sde_archives::{DirStore, inspect::{Inspection, Item}};
//!
//! #[sde::app]
//! fn cube(x: f64) -> f64 {
//!     x * x * x
//! }
//!
//! # fn main() -> Result<(), sde::Error> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("store");
//! let sde = Sde::builder().store(DirStore::open(&path)?).build()?;
//! cube.call(&sde, 2.0)?;
//! sde.finish()?;
//!
//! let mut seen = Vec::new();
//! let store = Inspection::open(&path)?;
//! for segment in store.segments()? {
//!     segment.walk(|item| {
//!         if let Item::Entry(entry) = item {
//!             for result in &entry.results {
//!                 let short = result.payload.as_ref().map(|payload| payload.short());
//!                 seen.push(format!("{} {}: {:?}", entry.record.app, result.name, short));
//!             }
//!         }
//!     })?;
//! }
//! assert_eq!(seen, ["cube result: Some(\"8.0\")"]);
//! # Ok(())
//! # }
//! ```

mod computations;
mod item;
mod listed;
mod manifests;
mod numbers;
mod segments;
mod short;
mod snapshot;
mod value;
mod walk;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use sde::archiver::ArchiveError;

use crate::catalog::Catalog;
use crate::format::class::Part;
use crate::format::directory;
use crate::format::trust::{Trust, not_a_store};
use crate::vfs::{Disk, Found, Vfs};

pub use crate::format::about::About as AboutWriter;
pub use crate::format::manifest::{ListedSegment, Manifest, ReplacedSegment};
pub use crate::read::error::Damage;
pub use crate::read::payload::{PayloadReader, StoredValue};

pub use computations::{Computation, Computations, Resolved, Standing};
pub use item::{Content, Entry, EntryUses, Item, NamedValue, SavedJournal, SavedState};
pub use listed::Listed;
pub use manifests::{ManifestFile, Manifests};
pub use numbers::Numbers;
pub use segments::{SegmentFile, SegmentId};
pub use snapshot::{Snapshot, Wanted};
pub use value::Decoded;
pub use walk::Walked;

/// A store under inspection.
#[derive(Clone)]
pub struct Inspection {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    format: Option<String>,
    /// The index of all segments, read on first use.
    catalog: Arc<OnceLock<Catalog>>,
}

impl Inspection {
    /// Inspects the store in this directory.
    ///
    /// A damaged or missing `FORMAT` file is no error if there are folders of segments:
    /// [`format_damage`](Self::format_damage) reports it.
    ///
    /// # Errors
    /// If there is no store, or one of another format than this program reads.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, ArchiveError> {
        Self::open_on(Arc::new(Disk), dir)
    }

    /// Inspects the store in this directory of another medium than the disk.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_on(vfs: Arc<dyn Vfs>, dir: impl AsRef<Path>) -> Result<Self, ArchiveError> {
        let dir = dir.as_ref().to_owned();
        let format = match directory::look(&*vfs, &dir) {
            Ok(directory::DirectoryContent::Store) => None,
            Ok(directory::DirectoryContent::Nothing) => {
                return Err(not_a_store(&dir, "there is nothing"));
            }
            // It is damage only if there are segments, and the format is not another release's.
            Err(ArchiveError::NotAStore { why, .. })
                if has_segments(&*vfs, &dir) && !directory::is_another_version(&*vfs, &dir) =>
            {
                Some(why)
            }
            Err(error) => return Err(error),
        };
        Ok(Self {
            vfs,
            dir,
            format,
            catalog: Arc::default(),
        })
    }

    /// The store's directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// The damage of the `FORMAT` file; `None` if it is sound.
    #[must_use]
    pub fn format_damage(&self) -> Option<&str> {
        self.format.as_deref()
    }

    /// Files with the name of a folder of the store. That folder's contents are missing; the rest of the store can
    /// be read.
    ///
    /// # Errors
    /// If the directory can't be looked at.
    pub fn misplaced(&self) -> Result<Vec<Damage>, ArchiveError> {
        let misplaced = directory::misplaced(&*self.vfs, &self.dir);
        let misplaced =
            misplaced.map_err(|error| ArchiveError::io("looking at", &self.dir, error))?;
        let damage =
            |(name, found): (&str, Found)| Damage::new(name, 0..found.length, "it is no folder");
        Ok(misplaced.into_iter().map(damage).collect())
    }

    /// A new inspection of this store, without the cached index.
    fn again(&self) -> Self {
        Self {
            catalog: Arc::default(),
            ..self.clone()
        }
    }

    /// The index of all segments.
    fn catalog(&self) -> &Catalog {
        self.catalog.get_or_init(|| {
            let catalog = Catalog::new(&self.vfs, self.dir.clone(), Trust::Others, None);
            // Walks report the segments that can't be read.
            let _ = catalog.look();
            catalog
        })
    }
}

impl fmt::Debug for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Inspection");
        debug.field("dir", &self.dir).finish_non_exhaustive()
    }
}

fn has_segments(vfs: &dyn Vfs, dir: &Path) -> bool {
    let is_there = |part: Part| matches!(vfs.look(&dir.join(part.folder())), Ok(Some(_)));
    Part::ALL.into_iter().any(is_there)
}
