//! Finds the inputs, settings and parameters in which the ranks' calls of one app differ.

use crate::key::Digest;

/// One rank's inputs, settings and parameters of a run: each as text for messages, with its digest.
pub(crate) type RunInputs = Vec<(String, Digest)>;

/// The number of digits shown of a digest.
const SHOWN: usize = 12;

/// For each rank, the values that not all ranks give.
pub(super) fn differing(all: &[RunInputs]) -> Vec<String> {
    let everywhere = |one: &(String, Digest)| all.iter().all(|given| given.contains(one));
    let line = |(text, digest): &(String, Digest)| {
        let shown = crate::error::printable(text);
        let mut others = all.iter().flatten();
        // Two values that differ have one text.
        if others.any(|(other, of)| other == text && of != digest) {
            format!("{shown} (digest {})", &digest.to_string()[..SHOWN])
        } else {
            shown
        }
    };
    let lines = |given: &RunInputs| {
        let own = given.iter().filter(|one| !everywhere(one));
        own.map(line).collect::<Vec<_>>().join(", ")
    };
    all.iter().map(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(of: &[(&str, u8)]) -> RunInputs {
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
        let expected = [
            "y = 2, z = [0, … (digest 030303030303)",
            "y = 3, z = [0, … (digest 050505050505)",
            "y = 2, z = [0, … (digest 030303030303), more = 4",
        ];
        assert_eq!(differing(&ranks), expected);
    }
}
