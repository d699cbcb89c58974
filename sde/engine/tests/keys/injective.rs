//! Two different values never have the same encoding.
//!
//! Random trees of every kind of item, over a small alphabet so that many are nearly alike, and each
//! against a neighbour that differs in one small edit. The digest of a tree must find the same tree,
//! or nothing.

use std::collections::{BTreeMap, HashMap};

use sde::Fingerprint;
use sde::key::{Digest, Encoder, FingerprintError};

use super::digest;

/// A value of any type. It writes what the type it stands for writes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Tree {
    Byte(u8),
    Short(u16),
    Signed(i32),
    Float(u64),
    Text(String),
    Unit,
    Bytes(Vec<u8>),
    Shorts(Vec<u16>),
    Texts(Vec<String>),
    Option(Option<Box<Tree>>),
    List(Vec<Tree>),
    Pair(Box<(Tree, Tree)>),
    Map(BTreeMap<Tree, Tree>),
    Structure(String, Vec<(String, Tree)>),
    /// Several items without a frame; never exactly one, which is that item.
    Items(Vec<Tree>),
}

impl Tree {
    /// The form in which a list of values that all are texts is a list of texts.
    fn plain(&self) -> Tree {
        let all = |list: &[Tree]| list.iter().map(Tree::plain).collect::<Vec<_>>();
        match self {
            Self::Texts(texts) if !texts.is_empty() => {
                Self::List(texts.iter().cloned().map(Self::Text).collect())
            }
            Self::List(list) => Self::List(all(list)),
            Self::Items(items) => Self::Items(all(items)),
            Self::Option(Some(inner)) => Self::Option(Some(Box::new(inner.plain()))),
            Self::Pair(pair) => Self::Pair(Box::new((pair.0.plain(), pair.1.plain()))),
            Self::Map(map) => Self::Map(
                map.iter()
                    .map(|(key, value)| (key.plain(), value.plain()))
                    .collect(),
            ),
            Self::Structure(name, fields) => {
                let plain = |(name, value): &(String, Tree)| (name.clone(), value.plain());
                Self::Structure(name.clone(), fields.iter().map(plain).collect())
            }
            other => other.clone(),
        }
    }
}

impl Fingerprint for Tree {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        match self {
            Self::Byte(value) => value.fingerprint(to),
            Self::Short(value) => value.fingerprint(to),
            Self::Signed(value) => value.fingerprint(to),
            Self::Float(bits) => f64::from_bits(*bits).fingerprint(to),
            Self::Text(text) => text.fingerprint(to),
            Self::Unit => ().fingerprint(to),
            Self::Bytes(list) => list.fingerprint(to),
            Self::Shorts(list) => list.fingerprint(to),
            Self::Texts(list) => list.fingerprint(to),
            Self::Option(option) => option.fingerprint(to),
            Self::List(list) => list.fingerprint(to),
            Self::Pair(pair) => pair.fingerprint(to),
            Self::Map(map) => map.fingerprint(to),
            Self::Structure(name, fields) => to.structure(name, |out| {
                fields
                    .iter()
                    .try_for_each(|(field, value)| out.field(field, value))
            }),
            Self::Items(items) => items.iter().try_for_each(|value| to.value(value)),
        }
    }
}

/// A small generator of random numbers (splitmix64): the same values on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> usize {
        (self.next() % bound) as usize
    }

    /// Mostly short; now and then around the length where a digest takes over, or far beyond.
    fn length(&mut self) -> usize {
        match self.below(400) {
            0 => 1000 + self.below(40),
            1 => 5000,
            _ => self.below(4),
        }
    }

    fn text(&mut self) -> String {
        const PIECES: [&str; 6] = ["", "a", "b", "ab", "\0", "1\u{30}"];
        (0..self.below(3)).map(|_| PIECES[self.below(6)]).collect()
    }

    fn bytes(&mut self) -> Vec<u8> {
        const BYTES: [u8; 8] = [0, 1, 2, 0x10, 0x31, 0x36, 0x37, 0xff];
        (0..self.length()).map(|_| BYTES[self.below(8)]).collect()
    }

    fn trees(&mut self, depth: u32) -> Vec<Tree> {
        (0..self.below(4)).map(|_| self.tree(depth)).collect()
    }

    fn tree(&mut self, depth: u32) -> Tree {
        let kinds = if depth == 0 { 9 } else { 15 };
        match self.below(kinds) {
            0 => Tree::Byte(self.below(3) as u8),
            1 => Tree::Short(self.below(3) as u16),
            2 => Tree::Signed(self.below(5) as i32 - 2),
            3 => Tree::Float(f64::to_bits([0.0, -0.0, 1.0, f64::NAN][self.below(4)])),
            4 => Tree::Text(self.text()),
            5 => Tree::Unit,
            6 => Tree::Bytes(self.bytes()),
            7 => Tree::Shorts(self.bytes().into_iter().map(u16::from).collect()),
            8 => Tree::Texts((0..self.length()).map(|_| self.text()).collect()),
            9 => Tree::Option((self.below(3) > 0).then(|| Box::new(self.tree(depth - 1)))),
            10 => Tree::List(self.trees(depth - 1)),
            11 => Tree::Pair(Box::new((self.tree(depth - 1), self.tree(depth - 1)))),
            12 => {
                let keys = self.trees(depth - 1);
                Tree::Map(
                    keys.into_iter()
                        .map(|key| (key, self.tree(depth - 1)))
                        .collect(),
                )
            }
            13 => {
                let fields = self.trees(depth - 1);
                let named = fields
                    .into_iter()
                    .map(|value| (self.text(), value))
                    .collect();
                Tree::Structure(self.text(), named)
            }
            _ => {
                let mut items = self.trees(depth - 1);
                if items.len() == 1 {
                    items.push(Tree::Unit);
                }
                Tree::Items(items)
            }
        }
    }

    /// The same tree but for one small edit, which may happen to change nothing.
    fn neighbour(&mut self, tree: &Tree) -> Tree {
        let mut tree = tree.clone();
        self.edit(&mut tree);
        tree
    }

    fn edit(&mut self, tree: &mut Tree) {
        match tree {
            Tree::List(list) | Tree::Items(list) if list.len() > 1 => {
                if self.below(3) == 0 && list.len() > 2 {
                    // Join two neighbours into one list.
                    let last = list.split_off(list.len() - 2);
                    list.push(Tree::List(last));
                } else {
                    let place = self.below(list.len() as u64);
                    self.edit(&mut list[place]);
                }
            }
            Tree::Pair(pair) => match self.below(3) {
                0 => {
                    let (first, second) = &mut **pair;
                    std::mem::swap(first, second);
                }
                1 => self.edit(&mut pair.0),
                _ => self.edit(&mut pair.1),
            },
            Tree::Option(Some(inner)) => self.edit(inner),
            Tree::Structure(name, fields) if !fields.is_empty() => {
                // Move a letter over the boundary between two names.
                match name.pop() {
                    Some(letter) => fields[0].0.insert(0, letter),
                    None => self.edit(&mut fields[0].1),
                }
            }
            Tree::Texts(texts) if texts.len() > 1 => {
                let letter = texts[0].pop().unwrap_or('a');
                texts[1].insert(0, letter);
            }
            Tree::Bytes(bytes) => {
                *tree = Tree::Shorts(bytes.iter().copied().map(u16::from).collect())
            }
            Tree::Byte(value) => *tree = Tree::Short(u16::from(*value)),
            Tree::Map(map) => *tree = Tree::List(map.keys().cloned().collect()),
            other => *other = Tree::List(vec![other.clone()]),
        }
    }
}

/// Tries `pairs` trees and their neighbours; gives how many different trees there were.
fn search(seed: u64, pairs: usize) -> usize {
    let mut random = Random(seed);
    let mut seen: HashMap<Digest, Tree> = HashMap::new();
    for _ in 0..pairs {
        let tree = random.tree(3);
        let neighbour = random.neighbour(&tree);
        for tree in [tree, neighbour] {
            match seen.get(&digest(&tree)) {
                Some(other) => {
                    assert_eq!(other.plain(), tree.plain(), "one digest for two values");
                }
                None => {
                    seen.insert(digest(&tree), tree);
                }
            }
        }
        // Bounded memory; neighbours are always compared with each other.
        if seen.len() > 200_000 {
            seen.clear();
        }
    }
    seen.len()
}

#[test]
fn different_values_have_different_digests() {
    let different = search(1, 20_000);
    // Else the test would show nothing.
    assert!(different > 10_000, "only {different} different values");
}

#[test]
#[ignore = "long: a million pairs"]
fn a_million_pairs_of_values_have_different_digests() {
    search(2, 1_000_000);
}
