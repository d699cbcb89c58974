//! Nothing in the repository names the machine it was written on.
//!
//! A path of somebody's home or the host of a mirror works for one person and misleads all others.

use super::none;
use super::repository::{line_of, text_files};

/// Each with why it is not wanted. They are put together here so that this file passes its own rule.
const UNWANTED: &[(&str, &str)] = &[
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("/ro", "ot/"), "a path of one machine"),
    (concat!("/ho", "me/"), "a path of one machine"),
    (concat!("/tm", "p/tar", "get"), "a path of one machine"),
    (concat!("/tm", "p/br", "ief"), "a path of one machine"),
    (
        concat!("..", "/sha", "red"),
        "a folder outside the repository",
    ),
    (concat!("index.", "crates.io"), "a registry's host"),
    (concat!("static.", "crates.io"), "a registry's host"),
    (concat!("files.", "pythonhosted"), "a registry's host"),
    (concat!("pypi.", "org/simple"), "a registry's host"),
    (concat!("arti", "factory"), "a registry's host"),
];

fn breaches(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (unwanted, why) in UNWANTED {
        for (offset, _) in text.match_indices(unwanted) {
            found.push(format!(
                "{path}:{} has {unwanted:?}: {why}",
                line_of(text, offset)
            ));
        }
    }
    found
}

#[test]
fn no_file_names_this_machine() {
    none(
        text_files()
            .iter()
            .flat_map(|file| breaches(&file.path, &file.text)),
    );
}

#[test]
fn a_machine_path_is_noticed() {
    let text = concat!("one\nsee /wo", "rk/notes.md\n");
    let found = breaches("a.md", text);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("a.md:2 "));
    none(breaches("a.md", "framework/x"));
}
