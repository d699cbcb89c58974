//! Selects the frames that a rewrite copies.
//!
//! The indexes of all sources are merged key by key, so memory is that of the indexes and one bit for each frame. A
//! frame is read only if its key has several, or for a filter, a limit, or output files.
//!
//! Of each key it keeps the computation that counts, by its [precedence](crate::Precedence), in as many frames as
//! have all its values in each class. It also keeps the scratch states saved later.
//!
//! Only frames of segments that are *taken* make others superfluous: another process may be dropping frames
//! elsewhere. There are two exceptions. Scratch is useless once its run has ended, wherever the entry is: losing
//! both would cost time, and no result. And a computation with its results in a sealed segment supersedes earlier
//! ones.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::SystemTime;

use sde::Key;
use sde::archiver::{ArchiveError, Mark};
use sde::record::RunId;

use super::facts::{Facts, Group, ScratchState, is_sound};
use super::limits::GivenUp;
use super::removal::RemovedFrames;
use super::selected::Selected;
use super::source::{FrameReader, Member, Source, by_key};
use crate::catalog::Catalog;
use crate::catalog::index::STATES;
use crate::cbor::metadata::from_bytes;
use crate::format::class::Class;
use crate::format::frame::FrameKind;
use crate::format::uses::{self, UsesOf};
use crate::read::frame::scratch_body;
use crate::resolve::{Computation, computations};
use crate::retention::Retention;

/// The number of processes whose journals are kept.
const JOURNALS: usize = 10_000;

/// Restricts which of the frames that count a rewrite copies.
#[derive(Clone, Copy)]
pub(crate) struct Filter<'a> {
    /// The classes of frames.
    pub(crate) classes: &'a [Class],
    /// Which of these are copied; all if `None`. With it values are checked, and frames of unknown kinds are left
    /// out.
    pub(crate) wants: Option<&'a dyn Fn(Wanted<'_>) -> bool>,
    /// Whether journals are copied.
    pub(crate) journals: bool,
    /// Contents of output files to copy besides those that kept entries name; all if `None`.
    pub(crate) contents: Option<&'a HashSet<Key>>,
}

/// An item that a filter decides on.
pub(crate) enum Wanted<'a> {
    Entry(&'a Facts),
    Mark(&'a Mark),
    /// The content of an output file that no kept entry names.
    Content(&'a Key),
}

/// Copies everything that counts.
pub(crate) const EVERYTHING: Filter<'_> = Filter {
    classes: &Class::ALL,
    wants: None,
    journals: true,
    contents: None,
};

/// A selection of frames from some sources.
pub(crate) struct Selection<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) sources: &'a [Source],
    /// The sources that are taken, all if `None`. The others stay, and only tell which runs have ended, and which
    /// results are in a sealed segment.
    pub(crate) taken: Option<&'a [bool]>,
    /// Whether each source is treated as if no other were taken.
    pub(crate) each_alone: bool,
    pub(crate) filter: Filter<'a>,
    pub(crate) given_up: Option<&'a GivenUp<'a>>,
    /// The keys that are taken out, whatever counts.
    pub(crate) removed: Option<&'a RemovedFrames>,
}

/// Called with the kept frames of each key, and the known uses.
type Tell<'a> = &'a mut (dyn FnMut(&Group, &UsesOf) + 'a);

impl<'a> Selection<'a> {
    /// Selects all frames of the sources that count and that the filter accepts.
    pub(crate) fn new(catalog: &'a Catalog, sources: &'a [Source], filter: Filter<'a>) -> Self {
        Self {
            catalog,
            sources,
            taken: None,
            each_alone: false,
            filter,
            given_up: None,
            removed: None,
        }
    }

    /// Selects the frames.
    pub(crate) fn run(&self) -> Result<Selected, ArchiveError> {
        self.run_with(None)
    }

    /// Chooses what is given up for limits; also gives the selection without limits. `now` and times of uses are in
    /// nanoseconds since 1970.
    pub(crate) fn give_up<'r>(
        &self,
        retention: &'r Retention,
        uses: &UsesOf,
        now: u64,
    ) -> Result<(GivenUp<'r>, Selected), ArchiveError> {
        let mut given_up = GivenUp::nothing(retention);
        if !retention.gives_up_anything() {
            return Ok((given_up, self.run()?));
        }
        let mut limited = Vec::new();
        let mut needed: HashMap<Key, u64> = HashMap::new();
        let selected = self.run_with(Some(&mut |group, known| {
            for key in group.entries.iter().flat_map(|one| &one.contents) {
                *needed.entry(*key).or_default() += 1;
            }
            let used = |prefix| {
                let last = |of: &UsesOf| of.get(&prefix).map_or(0, |one| one.last);
                last(known).max(last(uses))
            };
            limited.extend(given_up.limited(group, used));
        }))?;
        for one in &mut limited {
            let part = |key: &Key| selected.contents.get(key)?.checked_div(*needed.get(key)?);
            let parts = one.contents.drain(..).filter_map(|key| part(&key));
            one.bytes += parts.sum::<u64>();
        }
        given_up.choose(limited, now);
        let ids: HashSet<_> = self.sources.iter().map(|one| one.segment.id).collect();
        // A key with frames elsewhere is not given up: an earlier computation there would count instead.
        given_up.keep_unless(|prefix| {
            let lies_in = self.catalog.known(|index| index.segments_of(prefix));
            let is_one = || lies_in.iter().all(|id| Some(id) == lies_in.first());
            lies_in.iter().all(|id| ids.contains(id)) && (!self.each_alone || is_one())
        });
        Ok((given_up, selected))
    }

    fn run_with<'t>(&'t self, tell: Option<Tell<'t>>) -> Result<Selected, ArchiveError> {
        let has_contents = |source: &Source| {
            let mut rows = source.rows.iter();
            rows.any(|row| row.kind() == Some(FrameKind::Content))
        };
        let is_partial = self.filter.classes.len() < Class::ALL.len();
        let mut run = Run {
            reads_all: tell.is_some()
                || is_partial
                || self.filter.wants.is_some()
                || self.sources.iter().any(has_contents),
            of: self,
            tell,
            frames: FrameReader::new(self.catalog, self.sources),
            selected: Selected::new(self.sources),
            contents: Vec::new(),
            needed: self.filter.contents.cloned().unwrap_or_default(),
            journals: Vec::new(),
            taken_out: Vec::new(),
        };
        by_key(self.sources, |members| run.group(members))?;
        run.end()
    }

    fn is_taken(&self, one: &Member) -> bool {
        self.taken.is_none_or(|taken| taken[one.source])
    }
}

struct Run<'a> {
    of: &'a Selection<'a>,
    /// Whether entries are read even if their key has no other frame.
    reads_all: bool,
    tell: Option<Tell<'a>>,
    frames: FrameReader<'a>,
    selected: Selected,
    /// The contents in sources that are taken.
    contents: Vec<(Key, Member)>,
    needed: HashSet<Key>,
    journals: Vec<Member>,
    /// The prefixes of removed keys, in order.
    taken_out: Vec<u64>,
}

impl Run<'_> {
    fn group(&mut self, members: &[Member]) -> Result<(), ArchiveError> {
        let (mut values, mut marks, mut journals) = (Vec::new(), Vec::new(), Vec::new());
        for one in members {
            match one.row.kind() {
                Some(FrameKind::Entry | FrameKind::Scratch) => values.push(*one),
                _ if !self.of.is_taken(one) => {}
                Some(FrameKind::Mark) => marks.push(*one),
                Some(FrameKind::Journal) => journals.push(*one),
                Some(FrameKind::Uses) => self.uses(one)?,
                Some(FrameKind::Content) => {
                    let frame = self.frames.frame(one)?;
                    let content = frame.map(|frame| (frame.header.key, *one));
                    self.contents.extend(content);
                }
                Some(FrameKind::Provenance | FrameKind::About | FrameKind::Index) => {}
                // A frame of a later release.
                None if self.of.filter.wants.is_none() => self.selected.keep(one),
                None => {}
            }
        }
        // The latest journal of each process.
        let latest = journals.into_iter().max_by_key(|one| one.row.saved_at);
        self.journals.extend(latest);
        self.marks(&marks)?;
        self.values(values)
    }

    /// Adds the uses recorded in a frame.
    fn uses(&mut self, one: &Member) -> Result<(), ArchiveError> {
        let frame = self.frames.frame(one)?;
        let read = frame.and_then(|frame| uses::read(frame.content()).ok());
        for (prefix, one) in read.unwrap_or_default() {
            uses::add(&mut self.selected.uses, prefix, one);
        }
        Ok(())
    }

    /// Keeps the latest mark of each computation.
    fn marks(&mut self, marks: &[Member]) -> Result<(), ArchiveError> {
        let mut latest: HashMap<(Key, RunId), ((SystemTime, bool), Member)> = HashMap::new();
        for one in marks {
            let frame = self.frames.frame(one)?;
            let read = frame.and_then(|frame| Some(from_bytes::<Mark>(frame.content()).ok()?.0));
            let wants = self.of.filter.wants;
            let wanted = read.filter(|mark| wants.is_none_or(|wants| wants(Wanted::Mark(mark))));
            let Some(mark) = wanted else { continue };
            let known = latest.entry((mark.key, mark.run));
            let known = known.or_insert((mark.rank(), *one));
            if known.0 < mark.rank() {
                *known = (mark.rank(), *one);
            }
        }
        latest.values().for_each(|(_, one)| self.selected.keep(one));
        Ok(())
    }

    fn values(&mut self, members: Vec<Member>) -> Result<(), ArchiveError> {
        let Some(first) = members.first() else {
            return Ok(());
        };
        let prefix = first.row.prefix;
        let removed = self.of.removed;
        if removed.is_some_and(|removed| members.iter().any(|one| removed.has(one))) {
            self.taken_out.push(prefix);
            return Ok(());
        }
        let is_given_up = self.of.given_up.is_some_and(|up| up.has(prefix));
        let is_read = self.reads_all || members.len() > 1 || is_given_up;
        if !is_read {
            if self.of.is_taken(first) {
                self.selected.keep(first);
            }
            return Ok(());
        }
        let mut group = self.read(&members)?;
        // Entries in sources that stay need their contents, whether they count or not.
        let stays = group.entries.iter();
        let stays = stays.filter(|one| !self.of.is_taken(&one.member));
        self.needed.extend(stays.flat_map(|one| &one.contents));
        let kept = self.counting(&group, &members);
        for one in group.entries.iter().filter(|one| one.damaged) {
            let source = one.member.source;
            self.selected.damaged[source] |= !kept.contains(&one.member);
        }
        let filter = &self.of.filter;
        group.entries.retain(|one| {
            let counts = kept.contains(&one.member) && filter.classes.contains(&one.class);
            counts && filter.wants.is_none_or(|wants| wants(Wanted::Entry(one)))
        });
        let takes_states = filter.classes.contains(&Class::Scratch);
        group
            .states
            .retain(|one| takes_states && kept.contains(&one.member));
        if let Some(tell) = &mut self.tell {
            tell(&group, &self.selected.uses);
        }
        if let Some(up) = self.of.given_up {
            group.entries.retain(|one| !up.gives_up_entry(one));
            group
                .states
                .retain(|one| !up.gives_up(prefix, &one.app, Class::Scratch));
        }
        for one in &group.entries {
            self.needed.extend(&one.contents);
            self.selected.keep(&one.member);
        }
        group
            .states
            .iter()
            .for_each(|one| self.selected.keep(&one.member));
        Ok(())
    }

    /// The frames of a group that count.
    fn counting(&self, group: &Group, members: &[Member]) -> HashSet<Member> {
        let is_taken = |one: &Member| self.of.is_taken(one);
        let is_sealed = |one: &Member| self.of.sources[one.source].sealed;
        if !self.of.each_alone {
            return counting(group, is_taken, is_sealed);
        }
        let sources: HashSet<usize> = members.iter().map(|one| one.source).collect();
        let of_source = |source: usize| {
            counting(
                group,
                |one| is_taken(one) && one.source == source,
                is_sealed,
            )
        };
        sources.into_iter().flat_map(of_source).collect()
    }

    /// Reads the facts of frames; checks values if that may decide something. Keeps entries that can't be read
    /// since their provenance is missing.
    fn read(&mut self, members: &[Member]) -> Result<Group, ArchiveError> {
        let mut group = Group::default();
        let checked = members.len() > 1 || self.of.filter.wants.is_some();
        for one in members {
            let Some(frame) = self.frames.frame(one)? else {
                continue;
            };
            if one.row.kind() == Some(FrameKind::Scratch) {
                let state = scratch_body(&frame).ok();
                if let Some((body, value)) = state
                    && (!checked || is_sound(&value)?)
                {
                    group.states.push(ScratchState {
                        member: *one,
                        key: frame.header.key,
                        app: body.app,
                        bytes: frame.bytes(),
                    });
                }
                continue;
            }
            match self.frames.entry(one.source, frame)? {
                Some(entry) => group.entries.extend(Facts::of(one, &entry, checked)?),
                None if self.of.is_taken(one) && self.of.filter.wants.is_none() => {
                    self.selected.keep(one);
                }
                None => {}
            }
        }
        group
            .entries
            .sort_by_key(|one| Reverse(one.member.row.saved_at));
        group
            .states
            .sort_by_key(|one| Reverse(one.member.row.saved_at));
        Ok(group)
    }

    fn end(mut self) -> Result<Selected, ArchiveError> {
        let takes_all = self.of.filter.contents.is_none();
        for (key, one) in &self.contents {
            let kept = &mut self.selected.contents;
            if kept.contains_key(key) {
                continue;
            }
            let wants = self.of.filter.wants;
            let is_needed = takes_all || self.needed.contains(key);
            if !is_needed && !wants.is_some_and(|wants| wants(Wanted::Content(key))) {
                continue;
            }
            // Keeps the first whole copy. Copies in segments that are not taken are not relied on.
            match self.frames.frame(one)? {
                Some(frame) if is_sound(&frame.file_content())? => {
                    kept.insert(*key, frame.bytes());
                    self.selected.keep(one);
                }
                _ => self.selected.damaged[one.source] = true,
            }
        }
        let missing = self.needed.iter();
        let missing = missing.filter(|key| !self.selected.contents.contains_key(*key));
        self.selected.missing = missing.count();
        self.journals
            .sort_unstable_by_key(|one| Reverse(one.row.saved_at));
        if self.of.filter.journals {
            let latest = self.journals.iter().take(JOURNALS);
            latest.for_each(|one| self.selected.keep(one));
        }
        let taken_out = self.taken_out;
        let stays = |prefix: &u64| taken_out.binary_search(prefix).is_err();
        self.selected.uses.retain(|prefix, _| stays(prefix));
        Ok(self.selected)
    }
}

/// Of the frames in scope, those that are of use.
fn counting(
    group: &Group,
    in_scope: impl Fn(&Member) -> bool,
    is_sealed: impl Fn(&Member) -> bool,
) -> HashSet<Member> {
    let mut kept = HashSet::new();
    let keys = group.entries.iter().map(|one| one.key);
    let keys: HashSet<Key> = keys.chain(group.states.iter().map(|one| one.key)).collect();
    for key in keys {
        let of_key = || group.entries.iter().filter(|one| one.key == key);
        let is_on_medium = |one: &&Facts| one.precedence.has_results && is_sealed(&one.member);
        let on_medium: HashSet<RunId> = of_key()
            .filter(is_on_medium)
            .map(|one| one.precedence.run)
            .collect();
        let ranked = of_key().filter(|one| in_scope(&one.member)).map(|one| {
            let mut precedence = one.precedence;
            precedence.has_results |= on_medium.contains(&precedence.run);
            (precedence, one)
        });
        for computation in of_use(computations(ranked)) {
            for class in Class::ALL {
                let of_class = computation.frames.iter().filter(|one| one.class == class);
                kept.extend(covering(of_class.copied().collect()));
            }
        }
        let ended = of_key().map(|one| one.member.row.saved_at).max();
        let states = group.states.iter().filter(|one| one.key == key);
        let states = states.map(|one| one.member);
        let states = states.filter(|one| in_scope(one) && Some(one.row.saved_at) > ended);
        kept.extend(states.take(STATES));
    }
    kept
}

/// The useful computations of a key: the one that counts, and those whose results were not found. Their results may
/// be in a segment that is being written, and then one of these counts.
fn of_use<T>(all: Vec<Computation<T>>) -> impl Iterator<Item = Computation<T>> {
    let highest = all.first().map(|one| one.precedence);
    all.into_iter().filter(move |one| {
        let before = highest.filter(|highest| highest.has_results);
        let is_later = before.is_none_or(|before| one.precedence.made_at >= before.made_at);
        Some(one.precedence) == highest || !one.precedence.has_results && is_later
    })
}

/// Of several frames of one computation and class, as many as have all its values. The one with most values comes
/// first; if none has values, one is kept for its record.
fn covering(mut frames: Vec<&Facts>) -> Vec<Member> {
    frames.sort_by_key(|one| Reverse(one.sound.len()));
    let mut have: HashSet<&Arc<str>> = HashSet::new();
    let mut kept = Vec::new();
    for one in frames {
        let more = one.sound.iter().any(|name| !have.contains(name));
        if more || kept.is_empty() {
            have.extend(&one.sound);
            kept.push(one.member);
        }
    }
    kept
}
