//! In what ranks differ that run one app, and do not give it the same.

use std::collections::HashSet;

use super::gather::parts;
use crate::key::Digest;

/// What a rank gives the app: as a person reads it, and what tells it from all else.
pub(crate) type Given = Vec<(String, Digest)>;

/// So much of a digest is shown.
const SHOWN: usize = 12;

pub(super) fn to_bytes(given: &Given) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (text, digest) in given {
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(digest.as_bytes());
        bytes.extend(text.as_bytes());
    }
    bytes
}

/// What came of [`to_bytes`] on another rank; ends where it makes no sense.
fn from_bytes(mut bytes: &[u8]) -> Given {
    let mut given = Vec::new();
    while let Some((text, digest, rest)) = first(bytes) {
        given.push((text, digest));
        bytes = rest;
    }
    given
}

fn first(bytes: &[u8]) -> Option<(String, Digest, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (digest, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (text, rest) = rest.split_at_checked(length)?;
    let text = crate::error::printable(&String::from_utf8_lossy(text)).to_string();
    Some((text, Digest::from_bytes(*digest), rest))
}

/// For each rank what it gives that not all others give.
pub(super) fn differing(all: &[u8], counts: &[usize]) -> Vec<String> {
    let all: Vec<Given> = parts(all, counts).map(from_bytes).collect();
    let everywhere = |one: &(String, Digest)| all.iter().all(|given| given.contains(one));
    let own = |given: &Given| {
        given
            .iter()
            .filter(|one| !everywhere(one))
            .cloned()
            .collect()
    };
    let own: Vec<Given> = all.iter().map(own).collect();
    let digests = |shown: &str| -> usize {
        let of_text = own.iter().flatten().filter(|(text, _)| text == shown);
        of_text
            .map(|(_, digest)| digest)
            .collect::<HashSet<_>>()
            .len()
    };
    let line = |(text, digest): &(String, Digest)| match digests(text) {
        // Others are shown alike.
        2.. => format!("{text} (digest {})", &digest.to_string()[..SHOWN]),
        _ => text.clone(),
    };
    let lines = own
        .iter()
        .map(|given| given.iter().map(line).collect::<Vec<_>>());
    lines.map(|lines| lines.join(", ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(of: &[(&str, u8)]) -> Given {
        let one =
            |(text, digest): &(&str, u8)| ((*text).to_owned(), Digest::from_bytes([*digest; 32]));
        of.iter().map(one).collect()
    }

    #[test]
    fn what_all_give_is_left_out_and_what_looks_alike_is_told_apart() {
        let ranks = [
            given(&[("x = 1", 1), ("y = 2", 2), ("z = [0, …", 3)]),
            given(&[("x = 1", 1), ("y = 3", 4), ("z = [0, …", 5)]),
            given(&[
                ("x = 1", 1),
                ("y = 2", 2),
                ("z = [0, …", 3),
                ("more = 4", 6),
            ]),
        ];
        let bytes: Vec<Vec<u8>> = ranks.iter().map(to_bytes).collect();
        let counts: Vec<usize> = bytes.iter().map(Vec::len).collect();
        let told = differing(&bytes.concat(), &counts);
        let expected = [
            "y = 2, z = [0, … (digest 030303030303)",
            "y = 3, z = [0, … (digest 050505050505)",
            "y = 2, z = [0, … (digest 030303030303), more = 4",
        ];
        assert_eq!(told, expected);
        assert_eq!(differing(&bytes[0][..20], &[20]), [""]);
    }
}
