//! Opening a store on all ranks at once: one of them reads it.
//!
//! Ten thousand ranks that list a directory and open each file in it would overload a shared file system. One rank
//! does so, and tells the others where the frames are.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use sde::archiver::ArchiveError;
use sde::ranks::ProcessGroup;

use super::Team;
use super::listing::Listing;
use super::parts::Parts;
use super::rewrite::Writer;
use super::share::share;
use crate::cbor::metadata::{from_bytes, to_bytes};
use crate::format::directory::{self, DirectoryContent};
use crate::format::id::UniqueId;
use crate::format::trust::Trust;
use crate::store::options::StoreOptions;
use crate::store::{DirStore, absolute};
use crate::vfs::{Vfs, make_dirs};
use crate::writer::segment_writer::WriterConfig;

/// One rank's message to all, or its error.
type Said = Result<Vec<u8>, String>;

/// Opens a store. Collective.
pub(crate) fn open(
    options: StoreOptions,
    dir: &Path,
    group: &dyn ProcessGroup,
) -> Result<DirStore, ArchiveError> {
    let first = match group.rank() {
        0 => look(&options, dir),
        _ => Ok(Vec::new()),
    };
    let told = all(group, &first)?.swap_remove(0);
    // A failure of this rank alone is told to all, since they wait for it.
    let opened = terms(&options, dir).and_then(|terms| Ok((begin(options, dir, &told)?, terms)));
    let own = opened.as_ref().map(|(store, terms)| {
        let writer = &store.0.writer.config().writer().0[..];
        [writer, &short(&terms.of_all), &short(&terms.of_node)].concat()
    });
    let said = all(group, &own.map_err(ToString::to_string))?;
    let (store, terms) = opened?;
    let nodes = group.nodes();
    if let Some((rank, other)) = differing(&said, &nodes) {
        // Collective, so only now that all ranks have found the difference.
        let terms = all(group, &Ok(terms.to_string().into_bytes()))?;
        let of = |rank: usize| String::from_utf8_lossy(&terms[rank]).into_owned();
        let (own, others) = (of(rank), of(other));
        let why = format!(
            "rank {rank} and rank {other} open different stores together, or one otherwise; rank {rank}: {own}; rank {other}: {others}"
        );
        return Err(ArchiveError::Other(why));
    }
    let writers = said.iter().filter_map(|id| id.first_chunk());
    let writers = writers.flat_map(|id| [UniqueId(*id), for_others(&UniqueId(*id))]);
    // Only ranks of a node can read its own disk, so each node needs a writer then.
    let most = store.0.local().map_or(store.0.writers, |_| usize::MAX);
    let parts = Parts::new(nodes, most);
    store.join(group.rank(), Arc::new(parts), Arc::new(writers.collect()));
    Ok(store)
}

/// The options on which ranks must agree, as text.
struct Terms {
    of_all: String,
    /// The local directory, which may have another name on another node.
    of_node: String,
}

impl std::fmt::Display for Terms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.of_all, self.of_node)
    }
}

fn terms(options: &StoreOptions, dir: &Path) -> Result<Terms, ArchiveError> {
    let local = options.local.as_deref().map(absolute).transpose()?;
    let with = if local.is_some() { "with" } else { "without" };
    let how = if options.read_only {
        ", for reading only"
    } else {
        ""
    };
    let (dir, writers) = (absolute(dir)?, options.writers);
    Ok(Terms {
        of_all: format!(
            "{}, with {writers} writers at most{how}, {with} a local directory",
            dir.display()
        ),
        of_node: local.map_or_else(String::new, |local| local.display().to_string()),
    })
}

/// The first rank whose terms differ from those of rank 0, or of the first rank on its node; with that rank.
fn differing(said: &[Vec<u8>], nodes: &[usize]) -> Option<(usize, usize)> {
    let pairs = (0..said.len()).flat_map(|rank| {
        let of_node = nodes.iter().position(|node| *node == nodes[rank]);
        [(rank, 0, 16..24), (rank, of_node.unwrap_or(rank), 24..32)]
    });
    let mut pairs = pairs.filter(|(rank, other, part)| {
        said[*rank].get(part.clone()) != said[*other].get(part.clone())
    });
    pairs.next().map(|(rank, other, _)| (rank, other))
}

/// A digest of terms, by which ranks compare them.
fn short(terms: &str) -> [u8; 8] {
    let digest = blake3::hash(terms.as_bytes());
    digest.as_bytes().first_chunk().copied().unwrap_or_default()
}

/// A rank's id as a writer for others.
fn for_others(writer: &UniqueId) -> UniqueId {
    writer.of_part(b"for others")
}

/// Shares a message of each rank; if one sent an error, all ranks get that error.
fn all(group: &dyn ProcessGroup, mine: &Said) -> Result<Vec<Vec<u8>>, ArchiveError> {
    let mut bytes = vec![u8::from(mine.is_err())];
    match mine {
        Ok(said) => bytes.extend(said),
        Err(why) => bytes.extend(why.as_bytes()),
    }
    let mut all = share(group, &bytes)?;
    for (rank, said) in all.iter_mut().enumerate() {
        if said.is_empty() || said.remove(0) != 0 {
            let why = String::from_utf8_lossy(said);
            return Err(ArchiveError::Other(format!("rank {rank}: {why}")));
        }
    }
    Ok(all)
}

/// Opens the store as a single process does, and lists its frames.
fn look(options: &StoreOptions, dir: &Path) -> Said {
    let mut alone = options.clone();
    alone.local = None;
    let store = alone.open(dir).map_err(|error| error.to_string())?;
    if !options.read_only
        && store
            .close_what_is_left()
            .map_err(|error| error.to_string())?
    {
        store.refresh().map_err(|error| error.to_string())?;
    }
    to_bytes(&Listing::all(&store.0.catalog))
}

/// A store that knows the listed frames, and those on this node's disk.
fn begin(mut options: StoreOptions, dir: &Path, told: &[u8]) -> Result<DirStore, ArchiveError> {
    options = options.resolved()?;
    let dir = absolute(dir)?;
    let trust = Trust::of(&*options.vfs, &dir, options.trust_others);
    let (listing, _) = from_bytes::<Listing>(told).map_err(ArchiveError::Other)?;
    options.local = options.local.map(|local| folder(&local, &dir));
    if let (Some(local), false) = (&options.local, options.read_only) {
        make(&*options.vfs, local, options.trust_others)?;
    }
    let store = DirStore::new(options, dir, trust);
    let inner = &*store.0;
    listing.apply(&inner.catalog);
    if let Some(local) = inner.local() {
        if !inner.read_only {
            directory::remove_unfinished(&**inner.vfs(), local, inner.grace);
        }
        inner.catalog.look_at_local()?;
        store.check_trust()?;
    }
    Ok(store)
}

/// The folder of a store on a node's disk: many stores may be given the same disk.
fn folder(local: &Path, store: &Path) -> PathBuf {
    let digest = blake3::hash(store.as_os_str().as_encoded_bytes());
    local.join(format!("sde-{}", &digest.to_hex()[..16]))
}

/// Makes the local folder a store itself, so that what is left there can be inspected.
fn make(vfs: &dyn Vfs, local: &Path, trust_others: bool) -> Result<(), ArchiveError> {
    make_dirs(vfs, local)
        .map_err(|error| ArchiveError::io("making the directory", local, error))?;
    let trust = Trust::of(vfs, local, trust_others);
    trust.check(vfs, local)?;
    match directory::look(vfs, local)? {
        DirectoryContent::Store => directory::check_parts(vfs, local, trust, false),
        DirectoryContent::Nothing => directory::create(vfs, local),
    }
}

impl DirStore {
    /// Makes this store part of a team that commits together.
    fn join(&self, rank: usize, parts: Arc<Parts>, writers: Arc<HashSet<UniqueId>>) {
        let inner = &*self.0;
        let config = inner.writer.config();
        let team = Team {
            rank,
            parts,
            writers,
            dir: config.dir.clone(),
            is_local: inner.local().is_some(),
            writer: Writer::new(WriterConfig {
                vfs: Arc::clone(inner.vfs()),
                dir: inner.dir.clone(),
                opening: for_others(&config.opening),
                segment_size: config.segment_size,
            }),
            unvouched: Mutex::default(),
            told: Mutex::default(),
        };
        // The team is not set yet: the store was just made.
        let _ = inner.team.set(team);
    }
}
