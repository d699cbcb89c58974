//! Taking the digests of inputs out of the list that they were encoded to.
//!
//! A run that misses keeps the digest of each input in its record. The inputs were encoded for the key just before, and
//! long ones were hashed then. A gigabyte must not be hashed twice, nor a file read twice: it may have changed in
//! between. The list has a tag, a length and the digest of both. Scalars and short texts are hashed from their place in
//! the list. Only other short values are encoded again, to find where the next input begins.

use super::commitment::{Commitment, commit};
use super::fingerprint::Fingerprint;
use super::spill::digest_of;
use super::tag::item;

/// The lengths of a digest, and of the marker of a long value or a file: tag, length, digest.
const DIGEST: usize = 32;
const MARKER: usize = 1 + 8 + DIGEST;

/// The inputs of a run as they were encoded, taken from the front one by one.
#[derive(Debug)]
pub struct EncodedCursor<'a>(&'a [u8]);

impl<'a> EncodedCursor<'a> {
    pub(crate) fn new(encoded: &'a [u8]) -> Self {
        Self(encoded)
    }

    /// The digest of the next input, which has this name and value. It is computed if the list does not have it: the
    /// whole list is longer than 1 KiB, or the value has changed.
    ///
    /// A value that can't be encoded any more (such as a file that is gone) gives zeros.
    pub(crate) fn digest<T: Fingerprint>(&mut self, name: &str, value: &T) -> [u8; DIGEST] {
        let rest = after_name(self.0, name).unwrap_or_default();
        if let Some((digest, rest)) = known(rest).or_else(|| of_scalar::<T>(rest)) {
            self.0 = rest;
            return digest;
        }
        let Ok(commitment) = commit(value) else {
            self.0 = &[];
            return [0; DIGEST];
        };
        self.0 = match &commitment {
            Commitment::Inline(bytes) => rest.strip_prefix(&**bytes).unwrap_or_default(),
            Commitment::Digest { .. } => &[],
        };
        *commitment.digest().as_bytes()
    }
}

/// The list after the name, if the next item has that name. Names of 128 bytes and more are not looked for.
fn after_name<'a>(list: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let length = u8::try_from(name.len())
        .ok()
        .filter(|length| *length < 0x80)?;
    let list = list.strip_prefix(&[item::NAMED, length])?;
    list.strip_prefix(name.as_bytes())
}

/// The digest of the next value, if that is long or a file, and the list after it.
fn known(list: &[u8]) -> Option<([u8; DIGEST], &[u8])> {
    let (marker, rest) = list.split_at_checked(MARKER)?;
    let digest = match marker[0] {
        item::COLLAPSED => marker[MARKER - DIGEST..].try_into().ok()?,
        item::FILE => *digest_of(marker).as_bytes(),
        _ => return None,
    };
    Some((digest, rest))
}

/// The digest of the next value, if that is a scalar or a short text, whose length is known, and the list after it.
fn of_scalar<T: Fingerprint>(list: &[u8]) -> Option<([u8; DIGEST], &[u8])> {
    let length = match list {
        [item::TEXT, length @ ..0x80, ..] => 2 + usize::from(*length),
        _ => T::scalar().map(|_| T::bound())?,
    };
    let (encoded, rest) = list.split_at_checked(length)?;
    Some((*digest_of(encoded).as_bytes(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Encoder, FingerprintError, InputFile, with_encoder};

    /// Counts how often it is encoded.
    struct Long(std::cell::Cell<u32>, f64);

    impl Fingerprint for Long {
        fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
            self.0.set(self.0.get() + 1);
            vec![self.1; 200].fingerprint(to)
        }
    }

    fn digest<T: Fingerprint + ?Sized>(value: &T) -> [u8; 32] {
        *commit(value).unwrap().digest().as_bytes()
    }

    #[test]
    fn long_values_are_encoded_once_wherever_they_stand() {
        let long = [1.0, 2.0].map(|x| Long(std::cell::Cell::new(0), x));
        let list = with_encoder(|to| {
            to.named("first", &long[0])?;
            to.named("label", "x")?;
            to.named("second", &long[1])?;
            to.named("number", &3_u64)?;
            Ok::<_, FingerprintError>(to.finish()?.to_vec())
        });
        let list = list.unwrap();
        let mut cursor = EncodedCursor::new(&list);
        let first = cursor.digest("first", &long[0]);
        let label = cursor.digest("label", &"x");
        let second = cursor.digest("second", &long[1]);
        let number = cursor.digest("number", &3_u64);
        assert_eq!(long.each_ref().map(|long| long.0.get()), [1, 1]);
        assert_eq!([first, second], long.each_ref().map(digest));
        assert_eq!([label, number], [digest("x"), digest(&3_u64)]);
    }

    /// The digest is that of the content read for the key.
    #[test]
    fn a_file_is_read_once() {
        let path = std::env::temp_dir().join(format!("sde-listed-{}", std::process::id()));
        std::fs::write(&path, "as it was").unwrap();
        let file = InputFile::new(&path);
        let before = digest(&file);
        let list = with_encoder(|to| {
            to.named("file", &file)?;
            to.named("number", &3_u64)?;
            Ok::<_, FingerprintError>(to.finish()?.to_vec())
        });
        std::fs::remove_file(&path).unwrap();
        let list = list.unwrap();
        let mut cursor = EncodedCursor::new(&list);
        assert_eq!(cursor.digest("file", &file), before);
        assert_eq!(cursor.0.len(), list.len() - 6 - MARKER);
        assert_eq!(cursor.digest("number", &3_u64), digest(&3_u64));
        assert!(cursor.0.is_empty());
    }

    #[test]
    fn what_the_list_does_not_say_is_computed() {
        let long = vec![1.0; 200];
        for list in [
            &[][..],
            &[item::COLLAPSED_ROOT; 41],
            &[item::NAMED, 1, b'x'],
        ] {
            assert_eq!(EncodedCursor::new(list).digest("x", &long), digest(&long));
        }
        // An input of another name, and so of another value.
        let list = with_encoder(|to| {
            to.named("y", &vec![2.0; 200])?;
            Ok::<_, FingerprintError>(to.finish()?.to_vec())
        });
        assert_eq!(
            EncodedCursor::new(&list.unwrap()).digest("x", &long),
            digest(&long)
        );
    }
}
