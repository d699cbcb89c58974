//! Nothing in the repository names the machine it was written on, and public documentation begins with a whole sentence.
//!
//! A path of somebody's home or the host of a mirror works for one person and misleads all others. In a list of items
//! a first sentence stands alone: one that leans on another item tells nothing there.

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

/// Beginnings of a first sentence that lean on another item, or lack an actor.
const FRAGMENTS: &[&str] = &["As ", "Like ", "The same", "Says ", "Has ", "How many "];

/// The public items whose documentation begins with a fragment.
fn fragments(path: &str, text: &str) -> Vec<String> {
    let (mut found, mut first) = (Vec::new(), None);
    for (number, line) in text.lines().map(str::trim_start).enumerate() {
        if let Some(words) = line.strip_prefix("/// ") {
            first.get_or_insert(words);
        } else if !line.starts_with("///") && !line.starts_with("#[") {
            let begins = |words: &&str| FRAGMENTS.iter().any(|one| words.starts_with(one));
            if let Some(words) = first
                .take()
                .filter(begins)
                .filter(|_| line.starts_with("pub "))
            {
                found.push(format!(
                    "{path}:{} is documented by {words:?}: name what it does or is",
                    number + 1
                ));
            }
        }
    }
    found
}

#[test]
fn first_sentences_of_public_items_stand_alone() {
    let is_library = |path: &str| {
        let packages = ["sde/", "archives/src/", "apps/src/", "apps/opencl/src/"];
        packages.iter().any(|package| path.starts_with(package)) && !path.contains("/tests/")
    };
    let sources = text_files()
        .iter()
        .filter(|file| file.is(".rs") && is_library(&file.path));
    none(sources.flat_map(|file| fragments(&file.path, &file.text)));
}

#[test]
fn a_fragment_is_noticed() {
    let text = "/// As [`a`], twice.\n#[must_use]\npub fn b() {}\n/// As before.\nfn c() {}\n/// Adds.\n///\n/// As `b`.\npub fn d() {}\n";
    let found = fragments("a.rs", text);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("a.rs:3 "));
}

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
