//! Where rows put their outputs: no two runs may put files at one place, and none at the place of another's input.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::path::{Component, Path, PathBuf};

use sde::Key;
use sde_command::is_output;

use super::super::Exec;
use super::rows::{Rows, refused};
use crate::failure::Failure;

/// The rows that put something at a place, or below it.
#[derive(Default)]
struct There {
    rows: Vec<usize>,
    /// Whether the place is the beginning of what a pattern stands for.
    is_pattern: bool,
}

/// The keys of rows. A key costs reading the files of its row, so it is asked for only where places meet.
struct Keys<'a> {
    key: &'a dyn Fn(usize) -> Option<Key>,
    known: RefCell<HashMap<usize, Option<Key>>>,
}

impl Keys<'_> {
    /// Two of these rows whose runs differ. A row that is refused puts nothing anywhere.
    fn differ(&self, rows: impl Iterator<Item = usize> + Clone) -> Option<(usize, usize)> {
        rows.clone().nth(1)?;
        let key = |at| {
            let mut known = self.known.borrow_mut();
            *known.entry(at).or_insert_with(|| (self.key)(at))
        };
        let mut keyed = rows.filter_map(|at| Some((at, key(at)?)));
        let (first, of_first) = keyed.next()?;
        let (other, _) = keyed.find(|(_, of_other)| *of_other != of_first)?;
        Some((first, other))
    }
}

/// Refuses rows that put different files to one place, and a place that is an input's.
pub fn check(rows: &Rows, all: &[Exec], key: &dyn Fn(usize) -> Option<Key>) -> Result<(), Failure> {
    let mut places: BTreeMap<String, There> = BTreeMap::new();
    let mut patterns: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, one) in all.iter().enumerate() {
        one.places()?;
        for (place, is_pattern) in one.written() {
            let there = places.entry(place).or_default();
            there.is_pattern |= is_pattern;
            if there.rows.last() != Some(&at) {
                there.rows.push(at);
            }
        }
        for pattern in one.patterns() {
            patterns.entry(pattern).or_default().push(at);
        }
    }
    let here = plain("") + "/";
    let keys = Keys {
        key,
        known: RefCell::default(),
    };
    for (place, there) in &places {
        let own = there.rows.iter().copied();
        let pair = keys.differ(own.clone()).or_else(|| {
            let above = (Bound::Excluded(place), Bound::Unbounded);
            let mut meeting = places
                .range::<String, _>(above)
                .take_while(|(longer, _)| longer.starts_with(&**place))
                .filter(|(longer, _)| there.is_pattern || longer[place.len()..].starts_with('/'));
            meeting
                .find_map(|(_, theirs)| keys.differ(own.clone().chain(theirs.rows.iter().copied())))
        });
        if let Some((one, other)) = pair {
            let (first, second) = (
                rows.rows[one.min(other)].line,
                rows.rows[one.max(other)].line,
            );
            let why = format!(
                "its run and that of line {first} put their outputs at {place}; a {{column}} in -o, as in -o NAME={{column}}, \
                 gives each row a place of its own"
            );
            return Err(refused(&rows.name, second, &why));
        }
    }
    for (at, one) in all.iter().enumerate() {
        let folders = one.folders().map(|folder| (folder, true));
        let read = one.read().into_iter().map(|file| (file, false));
        for (input, is_folder) in read.chain(folders) {
            let below = |place: &str| {
                let rest = place.strip_prefix(&*input);
                rest.is_some_and(|rest| rest.is_empty() || is_folder && rest.starts_with('/'))
            };
            let from = places.range::<String, _>(&input..);
            let meant = from.take_while(|(place, _)| place.starts_with(&*input));
            let meant = meant.filter(|(place, _)| below(place));
            let mut writes: Vec<usize> =
                meant.flat_map(|(_, there)| &there.rows).copied().collect();
            // A place above may be a folder that holds it. A run leaves its own inputs there alone.
            let above = Path::new(&input).ancestors().skip(1);
            let above = above.filter_map(|above| places.get(above.to_str()?));
            let within = input.strip_prefix(&here);
            let stands = |pattern: &str| within.is_some_and(|it| is_output(pattern, it));
            let of_patterns = patterns.iter().filter(|(pattern, _)| stands(pattern));
            let others = above.map(|there| &there.rows);
            let others = others.chain(of_patterns.map(|(_, rows)| rows)).flatten();
            writes.extend(others.filter(|other| **other != at));
            // Its own is another input for the next process that comes to the row.
            let writer = match writes.contains(&at) {
                true => Some(at),
                false => keys
                    .differ(std::iter::once(at).chain(writes.iter().copied()))
                    .map(|(_, other)| other),
            };
            if let Some(writer) = writer {
                let line = rows.rows[writer].line;
                let why = format!(
                    "{input} is read, and is where the run of line {line} puts an output; -o NAME=PATH names another place"
                );
                return Err(refused(&rows.name, rows.rows[at].line, &why));
            }
        }
    }
    Ok(())
}

impl Exec {
    /// The places of outputs, and whether each is the beginning of a pattern's.
    pub fn written(&self) -> impl Iterator<Item = (String, bool)> {
        self.outputs().map(|(name, path)| {
            let name = name.strip_prefix('?').unwrap_or(name);
            let place = path.unwrap_or(name);
            let marks = path
                .is_none()
                .then(|| place.find(['*', '?', '[']))
                .flatten();
            match marks {
                None => (plain(place), false),
                Some(mark) => {
                    let (folder, rest) = match place[..mark].rsplit_once('/') {
                        Some((folder, rest)) => (plain(folder) + "/", rest),
                        None => (plain("") + "/", &place[..mark]),
                    };
                    (folder + rest, true)
                }
            }
        })
    }

    /// The patterns of outputs.
    fn patterns(&self) -> impl Iterator<Item = &str> {
        let patterns = self.outputs().filter(|(_, path)| path.is_none());
        let patterns = patterns.map(|(name, _)| name.strip_prefix('?').unwrap_or(name));
        patterns.filter(|name| name.contains(['*', '?', '[']))
    }

    /// Folders that may be read whole.
    fn folders(&self) -> impl Iterator<Item = String> {
        let uses = self.uses.iter().map(|used| used.trim_start_matches('?'));
        let trees = self.tree.iter().filter_map(|tree| tree.to_str());
        uses.chain(trees).map(plain)
    }

    /// What may be read of what lies here.
    fn read(&self) -> Vec<String> {
        let inputs = self.input.iter();
        let inputs = inputs.map(|input| match Path::new(input).exists() {
            true => &**input,
            false => input.rsplit_once('=').map_or(&**input, |(file, _)| file),
        });
        let own = self
            .outputs()
            .map(|(name, _)| plain(name.trim_start_matches('?')));
        let own: Vec<String> = own.collect();
        // An argument with the name of an output is that output.
        let words = self.line.iter().map(|word| plain(word));
        let words = words.filter(|word| !own.contains(word));
        let stdin = self.stdin.iter().filter_map(|path| path.to_str());
        let rows = self.each.iter().filter_map(|path| path.to_str());
        let files = inputs.chain(stdin).chain(rows);
        files.map(plain).chain(words).collect()
    }
}

/// The absolute path, without `.` and with `..` taken as text; what there is of it without links.
fn plain(path: &str) -> String {
    let mut all = PathBuf::new();
    let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let here = || std::env::current_dir().unwrap_or_default();
    let path = match path.as_os_str().is_empty() {
        true => here(),
        false => path,
    };
    for part in path.components() {
        match part {
            Component::ParentDir => drop(all.pop()),
            Component::CurDir => {}
            part => all.push(part),
        }
    }
    let real = all.ancestors().find_map(|above| {
        let rest = all.strip_prefix(above).ok()?;
        let above = std::fs::canonicalize(above).ok()?;
        Some(above.components().chain(rest.components()).collect())
    });
    let path: PathBuf = real.unwrap_or(all);
    path.to_string_lossy().into_owned()
}
