//! A store as all commands see it: entries, merged from the frames they lie in.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use sde::{ArchiveError, Key, Mark};
use sde_archives::inspect::{
    Damage, Entry, Inspection, Item, Listed, Manifests, Scratch, SegmentFile,
};

use crate::failure::Failure;
use crate::lost;
use crate::output::warn;
use crate::whole::{Id, Whole, Wholes};

/// A store that was opened, and what was found damaged in it so far.
pub struct Store {
    pub inspection: Inspection,
    pub manifests: Manifests,
    pub segments: Vec<SegmentFile>,
    /// What is damaged, of what was looked at.
    pub damages: Vec<Damage>,
    /// Whether a file was removed while this was read.
    pub gone: bool,
}

/// How often a store is read from which files are removed meanwhile.
const LOOKS: usize = 8;

/// Opens a store and reads what is asked for. If a compaction removes files meanwhile, it has put what was in them
/// elsewhere: then once more.
pub fn read<T>(
    path: impl AsRef<Path>,
    mut what: impl FnMut(&mut Store) -> Result<T, Failure>,
) -> Result<(Store, T), Failure> {
    for left in (0..LOOKS).rev() {
        let mut store = Store::open(&path)?;
        let found = what(&mut store);
        let is_sure = !store.gone && found.is_ok() && store.is_whole();
        if is_sure || !store.has_changed()? {
            return Ok((store, found?));
        }
        if left == 0 {
            warn(
                "files were removed each time that this was read: some of what is there may be missing",
            );
            store.gone = true;
            return Ok((store, found?));
        }
    }
    Err(Failure::told("the store could not be read"))
}

impl Store {
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Failure> {
        let inspection = open(path.as_ref())?;
        let (manifests, segments) = (inspection.manifests()?, inspection.segments()?);
        let mut damages = inspection.misplaced()?;
        if lost::is_certain(&manifests) {
            let lost = lost::lost(&manifests, &segments, SegmentFile::length);
            damages.extend(lost.into_iter().map(|(damage, _)| damage));
        }
        damages.extend(lost::damaged_manifests(&manifests));
        Ok(Self {
            inspection,
            manifests,
            segments,
            damages,
            gone: false,
        })
    }

    /// Whether files were removed, or generations made, since it was opened.
    fn has_changed(&self) -> Result<bool, Failure> {
        let names = |manifests: &Manifests| -> Vec<String> {
            let files = manifests.files.iter();
            files.map(|file| file.name.clone()).collect()
        };
        Ok(self.gone || names(&self.manifests) != names(&self.inspection.manifests()?))
    }

    /// Takes note of a file that was removed meanwhile, if that is what an error says.
    pub fn is_gone(&mut self, error: &ArchiveError) -> bool {
        let is_gone = error.is_not_found();
        self.gone |= is_gone;
        is_gone
    }

    /// Gives each thing in the segments that has not been replaced to `each`.
    pub fn walk(&mut self, each: impl FnMut(&SegmentFile, Item)) {
        self.walk_wanted(None, each);
    }

    /// The same for those frames that are wanted, or for all.
    pub fn walk_wanted(
        &mut self,
        wanted: Option<&dyn Fn(&Listed) -> bool>,
        mut each: impl FnMut(&SegmentFile, Item),
    ) {
        let mut seen = HashSet::new();
        for segment in &self.segments {
            let replaced = self.manifests.replaced(segment);
            let damages = &mut self.damages;
            let each = |item| match item {
                Item::Damage(damage) if damage.place.start < replaced => {}
                Item::Damage(damage) => {
                    if seen.insert((damage.path.clone(), damage.place.start)) {
                        damages.push(damage);
                    }
                }
                Item::Entry(entry) if entry.place.start < replaced => {}
                Item::Scratch(scratch) if scratch.place.start < replaced => {}
                Item::Uses { at, .. } if at < replaced => {}
                item => each(segment, item),
            };
            let walked = match wanted {
                Some(wanted) => segment.walk_wanted(wanted, each),
                None => segment.walk(each),
            };
            match walked {
                Ok(walked) => self.gone |= walked.gone,
                Err(error) => {
                    warn(error);
                    let whole = 0..segment.length();
                    self.damages
                        .push(Damage::new(segment.path(), whole, "it can't be read"));
                }
            }
        }
        self.damages.dedup();
    }

    /// How the keys of the entries and states begin that were saved last, at least so many frames if there are as many; `None`
    /// if these are all.
    pub fn latest(&self, frames: usize) -> Option<HashSet<u64>> {
        let mut latest: Vec<(u64, u64)> = Vec::new();
        let mut is_all = true;
        let mut keep = |latest: &mut Vec<(u64, u64)>| {
            if latest.len() > frames {
                is_all = false;
                latest.select_nth_unstable_by_key(frames, |(saved_at, _)| {
                    std::cmp::Reverse(*saved_at)
                });
                latest.truncate(frames);
            }
        };
        for segment in &self.segments {
            let listed = segment.list(|listed| {
                if listed.is_entry() || listed.is_scratch() {
                    latest.push((listed.saved_at(), listed.prefix()));
                }
                // So that memory does not grow with the store.
                if latest.len() > frames.saturating_mul(4) {
                    keep(&mut latest);
                }
            });
            // What can't be read is told of where it is walked through.
            let _ = listed;
        }
        keep(&mut latest);
        (!is_all).then(|| latest.into_iter().map(|(_, prefix)| prefix).collect())
    }

    /// Gives each entry in the segments that has not been replaced to `each`.
    pub fn entries(&mut self, mut each: impl FnMut(&SegmentFile, Entry)) {
        self.walk_wanted(Some(&Listed::is_entry), |segment, item| {
            if let Item::Entry(entry) = item {
                each(segment, *entry);
            }
        });
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
        let is_damaged =
            self.gone || !self.damages.is_empty() || self.inspection.format_damage().is_some();
        !is_damaged && self.other_formats().next().is_none()
    }
}

/// The folder of a kernel cache in which its store is.
const OF_KERNELS: &str = "store";

/// Opens a store, or the one that a kernel cache has in a folder.
fn open(path: &Path) -> Result<Inspection, Failure> {
    let inner = path.join(OF_KERNELS);
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

    fn may_fit(&self, listed: &Listed) -> bool {
        let first = self.0.get(..16).unwrap_or(&self.0);
        format!("{:016x}", listed.prefix()).starts_with(first)
    }
}

/// The entries that a prefix means: all computations of one key, the latest first.
pub fn find(store: &mut Store, prefix: &Prefix) -> Result<Vec<Whole>, Failure> {
    Ok(find_marked(store, prefix)?.0)
}

/// The same, and which of them are marked as not to be used.
pub fn find_marked(store: &mut Store, prefix: &Prefix) -> Result<(Vec<Whole>, Marks), Failure> {
    let mut wholes = Wholes::default();
    let mut marks = Marks::default();
    let wanted =
        |listed: &Listed| (listed.is_entry() || listed.is_mark()) && prefix.may_fit(listed);
    store.walk_wanted(Some(&wanted), |segment, item| match item {
        Item::Entry(entry) if prefix.fits(&entry.record.key) => {
            wholes.add(Whole::checked(segment, *entry));
        }
        Item::Mark { mark, .. } if prefix.fits(&mark.key) => marks.add(mark),
        _ => {}
    });
    let found = wholes.sorted();
    let keys: HashSet<Key> = found.iter().map(|whole| whole.entry.record.key).collect();
    match keys.len() {
        1 => Ok((found, marks)),
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails says where")]
mod tests {
    use std::time::Duration;

    use sde::{SavePolicy, Sde};
    use sde_archives::{DirStore, Options, Retention};

    use super::*;

    #[sde::app]
    fn double(number: u64) -> u64 {
        2 * number
    }

    /// A compaction between the listing of the files and the reading of them.
    #[test]
    fn what_a_compaction_removes_meanwhile_is_found_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..3 {
            let store = DirStore::open(folder.path()).unwrap();
            let builder = Sde::builder().store(store).save(SavePolicy::EveryResult);
            double.call(&builder.build().unwrap(), number).unwrap();
        }
        let mut looks = 0;
        let (store, entries) = read(folder.path(), |store| {
            looks += 1;
            if looks == 1 {
                let at_once = Options::new().grace(Duration::ZERO);
                let writer = at_once.open(folder.path()).unwrap();
                assert_eq!(writer.compact(&Retention::new()).unwrap().removed, 3);
            }
            let mut entries = 0;
            store.entries(|_, _| entries += 1);
            Ok(entries)
        })
        .unwrap();
        assert_eq!((looks, entries, store.is_whole()), (2, 3, true));
    }
}
