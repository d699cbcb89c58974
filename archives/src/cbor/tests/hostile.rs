//! Forged bytes: decoding gives an error or a value, and no panic. `tests/decoder.rs` tests its memory, with an
//! allocator that counts.

use std::collections::BTreeMap;

use ciborium::Value as Cbor;
use sde::Storable;

use super::*;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Tree {
    Leaf,
    Named { name: String, of: Vec<Tree> },
    Pair(Box<(Tree, Option<Tree>)>),
    Numbers(#[serde(with = "sde::bulk")] Vec<f64>),
    Boxes(#[serde(with = "sde::bulk")] Vec<[f32; 3]>),
    Big(i128, u128, char, bool, f32),
    Map(BTreeMap<String, Vec<u8>>),
    Lists(Vec<Vec<Vec<u64>>>),
}

fn tree() -> Tree {
    let leaves = vec![
        Tree::Leaf,
        Tree::Numbers(vec![1.0, 2.0]),
        Tree::Boxes(vec![[1.0, 2.0, 3.0]]),
        Tree::Big(i128::MIN, u128::MAX, 'x', true, -2.5),
        Tree::Map(BTreeMap::from([("key".to_owned(), vec![1, 200])])),
        Tree::Lists(vec![vec![vec![1, 1000], vec![]]]),
    ];
    let (name, of) = ("tree".to_owned(), leaves);
    Tree::Pair(Box::new((Tree::Named { name, of }, Some(Tree::Leaf))))
}

/// Decodes as various types; a panic fails the test, since decoding reports it as an error.
fn try_all(bytes: &[u8]) {
    fn one<T: Storable>(bytes: &[u8]) {
        if let Err(why) = decode(bytes, &Codec::of::<T>()) {
            assert!(!why.contains("panicked"), "{why} for {bytes:02x?}");
            assert!(why.len() < 1000, "{why}");
        }
    }
    one::<Tree>(bytes);
    one::<Vec<f64>>(bytes);
    one::<Vec<[f64; 2]>>(bytes);
    one::<Vec<String>>(bytes);
    one::<BTreeMap<u64, Option<i128>>>(bytes);
    one::<Cbor>(bytes);
    one::<sde::Data>(bytes);
}

/// A xorshift generator: the same bytes in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn random_bytes_never_panic() {
    let mut random = Random(1);
    for _ in 0..20_000 {
        let length = random.next() % 64;
        let bytes: Vec<u8> = (0..length).map(|_| (random.next() >> 24) as u8).collect();
        try_all(&bytes);
    }
}

#[test]
fn mutated_bytes_never_panic() {
    let whole = to_bytes(&tree()).unwrap();
    assert_eq!(from_bytes::<Tree>(&whole).unwrap(), tree());
    let mut random = Random(2);
    for _ in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..=random.next() % 3 {
            let at = random.next() as usize % bytes.len();
            bytes[at] = (random.next() >> 24) as u8;
        }
        try_all(&bytes);
    }
    for end in 0..whole.len() {
        assert!(from_bytes::<Tree>(&whole[..end]).is_err());
    }
}
