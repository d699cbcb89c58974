//! A store as all commands see it: entries, merged from the frames they lie in.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use sde::{Key, Mark, RunId};
use sde_archives::inspect::{
    Damage, Entry, Inspection, Item, Manifests, Saved, Scratch, SegmentFile,
};
use sde_archives::{Class, Precedence};

use crate::failure::Failure;
use crate::kernels::{self, Uses};
use crate::output::warn;

/// A store that was opened, and what was found damaged in it so far.
pub struct Store {
    pub inspection: Inspection,
    pub manifests: Manifests,
    pub segments: Vec<SegmentFile>,
    /// How many things are damaged, of those that were looked at.
    pub damages: Vec<Damage>,
}

/// Which computation: an entry in two classes is one.
pub type Id = (Key, RunId);

impl Store {
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Failure> {
        let inspection = open(path.as_ref())?;
        Ok(Self {
            manifests: inspection.manifests()?,
            segments: inspection.segments()?,
            damages: inspection.misplaced()?,
            inspection,
        })
    }

    /// Gives each thing in the segments that has not been replaced to `each`.
    pub fn walk(&mut self, mut each: impl FnMut(&SegmentFile, Item)) -> Result<(), Failure> {
        let mut seen = HashSet::new();
        for segment in &self.segments {
            let replaced = self.manifests.replaced(segment);
            let damages = &mut self.damages;
            let walked = segment.walk(|item| match item {
                Item::Damage(damage) => {
                    if seen.insert((damage.path.clone(), damage.place.start)) {
                        damages.push(damage);
                    }
                }
                Item::Entry(entry) if entry.place.start < replaced => {}
                Item::Scratch(scratch) if scratch.place.start < replaced => {}
                item => each(segment, item),
            });
            match walked {
                Ok(_) => {}
                Err(error) => {
                    warn(error);
                    let whole = 0..segment.length();
                    self.damages
                        .push(Damage::new(segment.path(), whole, "it can't be read"));
                }
            }
        }
        self.damages.dedup();
        Ok(())
    }

    /// The same for entries only.
    pub fn entries(&mut self, mut each: impl FnMut(&SegmentFile, Entry)) -> Result<(), Failure> {
        self.walk(|segment, item| {
            if let Item::Entry(entry) = item {
                each(segment, *entry);
            }
        })
    }

    /// What is of another format than this program reads: a path, and the version.
    pub fn other_formats(&self) -> impl Iterator<Item = (String, u32)> {
        let segments = self.segments.iter();
        let segments =
            segments.filter_map(|one| Some((one.path().to_owned(), one.other_format()?)));
        let manifests = self.manifests.files.iter();
        let manifests = manifests
            .filter_map(|one| Some((format!("manifests/{}", one.name), one.other_format?)));
        segments.chain(manifests)
    }

    /// Says on standard error what was found damaged, in one line, and what can't be read by this
    /// release.
    pub fn tell_damage(&self) {
        for (path, version) in self.other_formats() {
            warn(format!("left out: {}", of_format(&path, version)));
        }
        if let Some(why) = self.inspection.format_damage() {
            warn(format!("this is a damaged store: {why}"));
        }
        if let Some(first) = self.damages.first() {
            let more = match self.damages.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let entry = first.key.map(|key| format!(" (entry {})", key.short()));
            let (path, at, entry) = (&first.path, first.place.start, entry.unwrap_or_default());
            warn(format!(
                "left out, as it is damaged: {path} at byte {at}{entry}{more}; `sde verify` lists all"
            ));
        }
    }

    /// Whether all that was looked at could be read.
    pub fn is_whole(&self) -> bool {
        let is_damaged = !self.damages.is_empty() || self.inspection.format_damage().is_some();
        !is_damaged && self.other_formats().next().is_none()
    }
}

/// Opens a store, or the one that a kernel cache has in a folder.
fn open(path: &Path) -> Result<Inspection, Failure> {
    let inner = path.join(kernels::FOLDER);
    match Inspection::open(path) {
        Err(_) if inner.is_dir() => Ok(Inspection::open(inner)?),
        opened => Ok(opened?),
    }
}

/// What a person is told of a file of another format.
pub fn of_format(path: &str, version: u32) -> String {
    format!(
        "{path} has format {version}, which this program does not read; use the release of SDE that \
         wrote it"
    )
}

/// An entry from all frames that have part of it.
pub struct Whole {
    pub entry: Entry,
    /// Whether it is the one of its key that counts.
    pub rank: Precedence,
    /// Where it lies.
    pub places: Vec<Lies>,
}

/// One frame of an entry.
pub struct Lies {
    pub path: String,
    pub class: Class,
    pub at: u64,
}

impl Whole {
    pub fn new(segment: &SegmentFile, entry: Entry) -> Self {
        Self {
            places: vec![Lies::of(segment, &entry)],
            rank: entry.precedence(),
            entry,
        }
    }

    /// Takes from another frame what this one lacks.
    pub fn add(&mut self, segment: &SegmentFile, other: Entry) {
        self.places.push(Lies::of(segment, &other));
        self.rank = self.rank.max(other.precedence());
        for theirs in other.results {
            let same = |own: &&mut Saved| own.name == theirs.name;
            if let Some(own) = self.entry.results.iter_mut().find(same)
                && own.payload.is_none()
            {
                own.payload = theirs.payload;
                own.contents = theirs.contents;
            }
        }
    }

    pub fn size(&self) -> u64 {
        let payloads = self
            .entry
            .results
            .iter()
            .filter_map(|saved| saved.payload.as_ref());
        payloads.map(|payload| payload.length()).sum()
    }
}

impl Lies {
    fn of(segment: &SegmentFile, entry: &Entry) -> Self {
        Self {
            path: segment.path().to_owned(),
            class: entry.class,
            at: entry.place.start,
        }
    }
}

/// Entries by computation.
#[derive(Default)]
pub struct Wholes(pub HashMap<Id, Whole>);

impl Wholes {
    pub fn add(&mut self, segment: &SegmentFile, entry: Entry) {
        let id = (entry.record.key, entry.record.run);
        match self.0.get_mut(&id) {
            Some(whole) => whole.add(segment, entry),
            None => {
                self.0.insert(id, Whole::new(segment, entry));
            }
        }
    }

    /// By rank, the highest first: of each key the one that counts.
    pub fn sorted(self) -> Vec<Whole> {
        let mut all: Vec<Whole> = self.0.into_values().collect();
        all.sort_by_key(|whole| (std::cmp::Reverse(whole.rank), whole.entry.record.key));
        all
    }
}

/// What the marks say: why which computations must not be used.
#[derive(Default)]
pub struct Marks(HashMap<Id, Mark>);

impl Marks {
    pub fn add(&mut self, mark: Mark) {
        let id = (mark.key, mark.run);
        match self.0.get(&id) {
            Some(known) if known.at > mark.at => {}
            _ => {
                self.0.insert(id, mark);
            }
        }
    }

    /// Why a computation must not be used.
    pub fn of(&self, id: &Id) -> Option<&Mark> {
        self.0.get(id).filter(|mark| !mark.undone)
    }

    pub fn standing(&self) -> usize {
        self.0.values().filter(|mark| !mark.undone).count()
    }
}

/// The latest state of each run that has not finished.
#[derive(Default)]
pub struct Scratches {
    states: HashMap<Key, (String, Scratch)>,
    finished: HashMap<Key, u64>,
}

impl Scratches {
    pub fn add(&mut self, segment: &SegmentFile, scratch: Scratch) {
        let path = segment.path().to_owned();
        match self.states.get(&scratch.key) {
            Some((_, known)) if known.saved_at > scratch.saved_at => {}
            _ => {
                self.states.insert(scratch.key, (path, scratch));
            }
        }
    }

    pub fn finish(&mut self, entry: &Entry) {
        let at = self.finished.entry(entry.record.key).or_default();
        *at = entry.saved_at.max(*at);
    }

    /// Those that were saved after their run last finished.
    pub fn left(self) -> Vec<(String, Scratch)> {
        let finished = self.finished;
        let is_left = |(_, scratch): &(String, Scratch)| {
            finished
                .get(&scratch.key)
                .is_none_or(|at| *at < scratch.saved_at)
        };
        let mut left: Vec<_> = self.states.into_values().filter(is_left).collect();
        left.sort_by_key(|(_, scratch)| std::cmp::Reverse(scratch.saved_at));
        left
    }
}

/// The beginning of a key as a person writes it.
pub struct Prefix(String);

impl Prefix {
    pub fn read(text: &str) -> Result<Self, Failure> {
        let is_hex = text.chars().all(|digit| digit.is_ascii_hexdigit());
        match is_hex && (1..=64).contains(&text.len()) {
            true => Ok(Self(text.to_ascii_lowercase())),
            false => Err(Failure::told(format!(
                "\"{text}\" is not a key, nor the beginning of one; `sde ls` shows them"
            ))),
        }
    }

    pub fn fits(&self, key: &Key) -> bool {
        key.to_string().starts_with(&self.0)
    }
}

/// The entries that a prefix means: all computations of one key, the latest first.
pub fn find(store: &mut Store, prefix: &Prefix) -> Result<Vec<Whole>, Failure> {
    Ok(find_marked(store, prefix)?.0)
}

/// The same, which of them are marked as not to be used, and how often their key was used.
pub fn find_marked(
    store: &mut Store,
    prefix: &Prefix,
) -> Result<(Vec<Whole>, Marks, Uses), Failure> {
    let mut wholes = Wholes::default();
    let mut marks = Marks::default();
    let mut uses = Uses::default();
    store.walk(|segment, item| match item {
        Item::Entry(entry) if prefix.fits(&entry.record.key) => wholes.add(segment, *entry),
        Item::Mark { mark, .. } if prefix.fits(&mark.key) => marks.add(mark),
        Item::Uses { uses: of_frame, .. } => uses.add(of_frame),
        _ => {}
    })?;
    let found = wholes.sorted();
    let keys: HashSet<Key> = found.iter().map(|whole| whole.entry.record.key).collect();
    match keys.len() {
        1 => Ok((found, marks, uses)),
        0 => {
            store.tell_damage();
            Err(Failure::told(format!(
                "no entry has a key that begins with {}; `sde ls` shows those there are",
                prefix.0
            )))
        }
        more => {
            let mut some: Vec<_> = keys.iter().take(5).map(|key| key.short()).collect();
            some.sort();
            Err(Failure::told(format!(
                "{more} keys begin with {}: {}{}; give more of it",
                prefix.0,
                some.join(", "),
                if more > 5 { ", …" } else { "" }
            )))
        }
    }
}
