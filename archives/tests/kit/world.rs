//! Files and directories in memory, and what of them a power failure leaves.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf};

use super::content::Content;
use super::random::Random;

/// What a name stands for: a number in [`World`].
pub(super) type Id = usize;

#[derive(Clone, Debug)]
pub(super) enum Node {
    File(Content),
    Dir(Dir),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Dir {
    pub(super) names: BTreeMap<OsString, Id>,
    /// What a name stood for since the last sync, the durable first.
    before: BTreeMap<OsString, Vec<Option<Id>>>,
}

impl Dir {
    fn set(&mut self, name: &OsStr, to: Option<Id>) {
        let before = self.names.get(name).copied();
        let list = self.before.entry(name.to_owned()).or_default();
        list.push(before);
        match to {
            Some(id) => self.names.insert(name.to_owned(), id),
            None => self.names.remove(name),
        };
    }

    pub(super) fn sync(&mut self) {
        self.before.clear();
    }

    /// Each name that was changed stands for anything that it stood for since the last sync,
    /// whatever became of the others.
    fn after_power_loss(&self, random: &mut Random) -> Self {
        let mut names = self.names.clone();
        // All, none, or any.
        let lost = random.pick(&[0, 1, 2]);
        for (name, before) in &self.before {
            let back = match lost {
                0 => continue,
                1 => before[0],
                _ => {
                    let now = self.names.get(name).copied();
                    let all: Vec<_> = before.iter().copied().chain([now]).collect();
                    random.pick(&all)
                }
            };
            match back {
                Some(id) => names.insert(name.clone(), id),
                None => names.remove(name),
            };
        }
        Self {
            names,
            before: BTreeMap::new(),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct World {
    nodes: Vec<Node>,
}

const ROOT: Id = 0;

impl World {
    pub(super) fn new() -> Self {
        Self {
            nodes: vec![Node::Dir(Dir::default())],
        }
    }

    pub(super) fn node(&mut self, id: Id) -> &mut Node {
        &mut self.nodes[id]
    }

    pub(super) fn file(&mut self, id: Id) -> &mut Content {
        match &mut self.nodes[id] {
            Node::File(content) => content,
            Node::Dir(_) => panic!("a directory was opened as a file"),
        }
    }

    pub(super) fn find(&self, path: &Path) -> io::Result<Option<Id>> {
        let mut at = ROOT;
        for part in path.components() {
            let Component::Normal(name) = part else {
                continue;
            };
            let Node::Dir(dir) = &self.nodes[at] else {
                return Err(io::ErrorKind::NotADirectory.into());
            };
            match dir.names.get(name) {
                Some(id) => at = *id,
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    pub(super) fn existing(&self, path: &Path) -> io::Result<Id> {
        self.find(path)?.ok_or(io::ErrorKind::NotFound.into())
    }

    pub(super) fn dir(&mut self, path: &Path) -> io::Result<&mut Dir> {
        let id = self.existing(path)?;
        match &mut self.nodes[id] {
            Node::Dir(dir) => Ok(dir),
            Node::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Makes a name that nobody has.
    pub(super) fn make(&mut self, path: &Path, node: Node) -> io::Result<Id> {
        let id = self.nodes.len();
        self.name(path, id)?;
        self.nodes.push(node);
        Ok(id)
    }

    pub(super) fn name(&mut self, path: &Path, id: Id) -> io::Result<()> {
        let (dir, name) = self.place(path)?;
        match dir.names.contains_key(name) {
            true => Err(io::ErrorKind::AlreadyExists.into()),
            false => {
                dir.set(name, Some(id));
                Ok(())
            }
        }
    }

    pub(super) fn unname(&mut self, path: &Path) -> io::Result<()> {
        let (dir, name) = self.place(path)?;
        match dir.names.contains_key(name) {
            false => Err(io::ErrorKind::NotFound.into()),
            true => {
                dir.set(name, None);
                Ok(())
            }
        }
    }

    fn place<'a>(&mut self, path: &'a Path) -> io::Result<(&mut Dir, &'a OsStr)> {
        let wrong = || io::Error::from(io::ErrorKind::InvalidInput);
        let name = path.file_name().ok_or_else(wrong)?;
        let dir = self.dir(path.parent().ok_or_else(wrong)?)?;
        Ok((dir, name))
    }

    /// How many bytes all files have that still have a name.
    pub(super) fn bytes(&self) -> u64 {
        let paths = self.files();
        let length = |(_, id): (PathBuf, Id)| match &self.nodes[id] {
            Node::File(content) => content.bytes.len() as u64,
            Node::Dir(_) => 0,
        };
        paths.into_iter().map(length).sum()
    }

    /// All files, by their paths.
    pub(super) fn files(&self) -> Vec<(PathBuf, Id)> {
        let mut files = Vec::new();
        let mut open = vec![(PathBuf::from("/"), ROOT)];
        while let Some((path, id)) = open.pop() {
            match &self.nodes[id] {
                Node::File(_) => files.push((path, id)),
                Node::Dir(dir) => {
                    let inside = dir.names.iter();
                    open.extend(inside.map(|(name, id)| (path.join(name), *id)));
                }
            }
        }
        files.sort();
        files
    }

    pub(super) fn after_power_loss(&self, random: &mut Random) -> Self {
        let nodes = self.nodes.iter().map(|node| match node {
            Node::File(content) => Node::File(content.after_power_loss(random)),
            Node::Dir(dir) => Node::Dir(dir.after_power_loss(random)),
        });
        Self {
            nodes: nodes.collect(),
        }
    }

    /// As if all of it had been on the medium from the first.
    pub(super) fn settle(&mut self) {
        for node in &mut self.nodes {
            match node {
                Node::File(content) => {
                    *content = Content::settled(std::mem::take(&mut content.bytes))
                }
                Node::Dir(dir) => dir.sync(),
            }
        }
    }
}
