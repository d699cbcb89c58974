//! An archive to keep and publish: results only, in a store of its own, with nothing superfluous.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use sde::archiver::ArchiveError;

use crate::catalog::manifests;
use crate::format::class::{Class, Part, folder};
use crate::format::directory::{self, DirectoryContent};
use crate::format::id::UniqueId;
use crate::format::manifest::{FOLDER, ListedSegment, Manifest};
use crate::format::trust::not_a_store;
use crate::locks::lock;
use crate::rewrite::select::{EVERYTHING, Filter, Selection};
use crate::rewrite::source::Source;
use crate::rewrite::write::{Output, Sealed};
use crate::store::{DirStore, absolute, where_files_are};
use crate::vfs::{Vfs, make_dirs, real_path};
use crate::writer::segment_writer::WriterConfig;

impl DirStore {
    /// Writes the results of this store, and nothing else, to a new store in a directory that is empty or does not
    /// exist. The directory becomes a store last, once it is complete.
    pub(crate) fn publish(&self, dir: &Path) -> Result<(), ArchiveError> {
        let dir = &absolute(dir)?;
        let inner = &*self.0;
        let vfs = &**inner.vfs();
        if real_path(vfs, dir).starts_with(real_path(vfs, &inner.dir)) {
            let why = "it is this store itself or lies in it; name a directory outside, where nothing that happens to the store can harm it";
            return Err(not_a_store(dir, why));
        }
        if directory::look(vfs, dir)? == DirectoryContent::Store {
            let why =
                "there is a store already; name an empty directory, or one that does not exist yet";
            return Err(not_a_store(dir, why));
        }
        where_files_are(|| self.try_publish(dir))
    }

    fn try_publish(&self, dir: &Path) -> Result<(), ArchiveError> {
        let inner = &*self.0;
        let config = WriterConfig {
            vfs: Arc::clone(inner.vfs()),
            dir: dir.to_owned(),
            opening: UniqueId::new(),
            segment_size: inner.writer.config().segment_size,
        };
        make_dirs(&*config.vfs, dir)
            .map_err(|error| ArchiveError::io("making the directory", dir, error))?;
        let written = self.write_to(&config);
        if written.is_err() {
            take_away(&config);
        }
        written
    }

    fn write_to(&self, config: &WriterConfig) -> Result<(), ArchiveError> {
        let (vfs, dir) = (&*config.vfs, &config.dir);
        let written = self.write_results(config)?;
        self.write_first_manifest(config, &written)?;
        directory::create(vfs, dir)?;
        // All else is written and synced: no later write would sync this name.
        let synced = vfs.sync_dir(dir);
        synced.map_err(|error| ArchiveError::io("syncing the directory", dir, error))
    }

    /// Writes the results that count in all segments of entries; of those being written, the durable frames. An
    /// error if one can't be read.
    fn write_results(&self, config: &WriterConfig) -> Result<Vec<Sealed>, ArchiveError> {
        let catalog = &self.0.catalog;
        let sources = self.all_entries()?;
        let filter = Filter {
            classes: &[Class::Result],
            contents: Some(&HashSet::new()),
            ..EVERYTHING
        };
        let selected = Selection::new(catalog, &sources, filter).run()?;
        match selected.missing {
            0 => {}
            missing => sde::warning!(
                "what {missing} output files held is missing in {}, and in the archive of it; `sde verify` says of which entries",
                self.0.dir.display()
            ),
        }
        let output = Output::new(config.clone(), false);
        let written = output.write(catalog, &sources, &selected);
        written.map(|(_, sealed)| sealed)
    }

    /// All segments of entries.
    pub(crate) fn all_entries(&self) -> Result<Vec<Source>, ArchiveError> {
        let inner = &*self.0;
        inner.seal();
        self.refresh()?;
        let known: Vec<_> = {
            let segments = lock(&inner.catalog.segments);
            // An archive must have all results, or fail.
            if let Some(error) = segments.unread.first() {
                return Err(error.clone());
            }
            let known = segments.known().map(|one| one.segment);
            // Frames acknowledged before an error count, although their segment has no index.
            known.chain(segments.owned().cloned()).collect()
        };
        let entries = known
            .into_iter()
            .filter(|segment| segment.part == Part::Entries);
        let sources = entries.map(|segment| self.source(&segment, false));
        sources.collect()
    }

    fn write_first_manifest(
        &self,
        config: &WriterConfig,
        written: &[Sealed],
    ) -> Result<(), ArchiveError> {
        let written = written.iter();
        let listed = written.map(|(segment, block)| ListedSegment::new(segment, block.end));
        let mut listed: Vec<_> = listed.collect();
        listed.sort_by(|a, b| a.path.cmp(&b.path));
        let manifest = Manifest {
            generation: 1,
            writer: config.writer().to_string(),
            at: self.0.catalog.clock.stamp(),
            parents: Vec::new(),
            segments: listed,
            replaced: Vec::new(),
            swept: None,
        };
        manifests::write(&*config.vfs, &config.dir, &manifest)
    }
}

/// Removes, as far as possible, what this attempt has written, so that the directory is empty for another.
fn take_away(config: &WriterConfig) {
    let (vfs, dir) = (&*config.vfs, &config.dir);
    // A directory that is a store is complete, whatever failed after that.
    if !matches!(directory::look_for_format(vfs, dir), Ok(false)) {
        return;
    }
    for folder in [folder(dir, Part::Entries), dir.join(FOLDER)] {
        // Files that stay are only in the way, and the first error is the one to report.
        let _ = take_folder_away(vfs, &folder, &config.writer());
    }
}

/// Removes one writer's files from a folder, and the folder, if it is empty then.
fn take_folder_away(vfs: &dyn Vfs, folder: &Path, writer: &UniqueId) -> io::Result<()> {
    let (segment, manifest) = (format!("{}-", writer.short()), writer.to_string());
    for name in vfs.list(folder)? {
        let text = name.to_string_lossy();
        if text.starts_with(&segment) || text.contains(&manifest) {
            vfs.remove(&folder.join(&name))?;
        }
    }
    vfs.remove_dir(folder)
}
