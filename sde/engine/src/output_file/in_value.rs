//! The output files in a value of any type.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use super::{OutputFile, USED};
use crate::key::{BySerde, commit};
use crate::result_map::{Codec, ErasedValue};
use crate::sync::user_code;

/// The output files in a value: serde is shown all of it. Arrays of numbers have none, and in a program that uses no output files no
/// value has.
pub(crate) fn in_value(codec: &Codec, value: &ErasedValue) -> Vec<OutputFile> {
    if !USED.load(Ordering::Relaxed) || codec.bulk(value).is_some() {
        return Vec::new();
    }
    user_code("`Serialize`");
    // A value that can't be written is reported when it is saved.
    let show = || codec.show(value, &mut |value| drop(commit(&BySerde(value))));
    let (_, shown) = OutputFile::shown_in(|| catch_unwind(AssertUnwindSafe(show)));
    shown
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(serde::Serialize, serde::Deserialize)]
    enum Nested {
        Map(BTreeMap<u8, Option<OutputFile>>),
        Pair(f64, (String, Vec<OutputFile>)),
        Named { text: String, file: OutputFile },
        Flat(Flat),
    }

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Flat {
        #[serde(flatten)]
        file: OutputFile,
    }

    /// A store of others may say what a file's own never does: that it runs as its owner.
    #[test]
    fn a_stored_mode_is_taken_for_permissions_only() {
        let mut file = serde_json::to_value(OutputFile::new("Cargo.toml").unwrap()).unwrap();
        file["mode"] = 0o4755.into();
        let file: OutputFile = serde_json::from_value(file).unwrap();
        assert_eq!(file.mode(), 0o755);
    }

    #[test]
    fn files_are_found_wherever_serde_goes() {
        let file = OutputFile::new("Cargo.toml").unwrap();
        let map = BTreeMap::from([(1, None), (2, Some(file.clone()))]);
        let found = |value: Nested| {
            let codec = Codec::of::<Nested>();
            in_value(&codec, &ErasedValue::new(value)).len()
        };
        assert_eq!(found(Nested::Map(map)), 1);
        let two = vec![file.clone(), file.clone()];
        assert_eq!(found(Nested::Pair(0.5, (String::new(), two))), 2);
        let text = String::new();
        assert_eq!(
            found(Nested::Named {
                text,
                file: file.clone()
            }),
            1
        );
        assert_eq!(found(Nested::Flat(Flat { file })), 1);
        let numbers = ErasedValue::new(vec![1.0_f64]);
        assert!(in_value(&Codec::of::<Vec<f64>>(), &numbers).is_empty());
    }
}
