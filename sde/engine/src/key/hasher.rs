//! A hasher for maps whose keys are digests: they are uniform already, so hashing is a copy.

use std::hash::{BuildHasherDefault, Hasher};

/// Takes the 8 bytes that a [`Key`](super::Key) or a [`Digest`](super::Digest) feeds it.
///
/// Other input is mixed in weakly: use this hasher for maps keyed by digests only.
#[derive(Debug, Default, Clone, Copy)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0.rotate_left(5) ^ u64::from(*byte)).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
    }
}

/// Makes [`KeyHasher`]s.
///
/// ```
/// use std::collections::HashMap;
/// use sde::key::{BuildKeyHasher, Key};
/// let mut entries: HashMap<Key, &str, BuildKeyHasher> = HashMap::default();
/// entries.insert(Key::from_bytes([7; 32]), "seven");
/// assert_eq!(entries.get(&Key::from_bytes([7; 32])), Some(&"seven"));
/// ```
pub type BuildKeyHasher = BuildHasherDefault<KeyHasher>;
