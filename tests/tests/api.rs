//! The public items of the crate `sde` with all features, one a line, are those of `docs/api.txt`.
//!
//! `./test` has rustdoc describe each crate, and names the folder in `SDE_API`; without it this is not run at all, see
//! `Cargo.toml`. `SDE_BLESS=1` writes the list anew. Its first line names the compiler: another prints other text.

#![allow(
    clippy::expect_used,
    missing_docs,
    reason = "a test that fails says where"
)]

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use public_api::{Builder, PublicApi};
use serde_json::Value as Json;

/// The crates whose items a user finds in `sde`, each after those that it is named in.
const CRATES: &[&str] = &[
    "sde",
    "sde_engine",
    "sde_arrays",
    "sde_command",
    "sde_archives",
    "sde_mpi",
    "sde_opencl",
    "sde_last_value",
    "sde_macros",
];

/// Where a user finds what is made elsewhere: `sde_engine` is `sde`, `sde_engine::error::Error` is `sde::Error`.
#[derive(Default)]
struct Places(BTreeMap<String, String>);

impl Places {
    fn add(&mut self, made: String, place: &str) {
        let place = self.of(place);
        let known = self.0.entry(made).or_insert_with(|| place.clone());
        if place.len() < known.len() {
            *known = place;
        }
    }

    /// Notes what a public module of a crate takes over from private modules and from other crates.
    fn add_module(&mut self, place: &str, described: &Json, id: &str) {
        let items = described["index"][id]["inner"]["module"]["items"].as_array();
        for id in items.expect("a module") {
            let item = &described["index"][id.to_string()];
            if item["visibility"] != "public" {
                continue;
            }
            let inner = &item["inner"];
            if inner["module"].is_object() {
                let name = item["name"].as_str().expect("a name");
                self.add_module(&format!("{place}::{name}"), described, &id.to_string());
            } else if let Some(source) = inner["use"]["source"].as_str() {
                let made = &described["paths"][inner["use"]["id"].to_string()]["path"];
                let made = made.as_array().into_iter().flatten();
                let made: Vec<_> = made.filter_map(Json::as_str).collect();
                let name = inner["use"]["name"].as_str().expect("a name");
                let place = match inner["use"]["is_glob"] == true {
                    true => place.to_owned(),
                    false => format!("{place}::{name}"),
                };
                for made in [source.to_owned(), made.join("::")] {
                    if CRATES.contains(&made.split("::").next().unwrap_or_default()) {
                        self.add(made, &place);
                    }
                }
            }
        }
    }

    /// Where a user finds what has this path: its longest part that was taken over decides.
    fn of(&self, path: &str) -> String {
        let ends = path.match_indices("::").map(|(at, _)| at);
        let ends: Vec<_> = ends.chain([path.len()]).collect();
        let taken = ends.into_iter().rev().find_map(|end| {
            let place = self.0.get(&path[..end])?;
            Some(format!("{place}{}", &path[end..]))
        });
        taken.unwrap_or_else(|| path.to_owned())
    }

    /// A line with each path in it replaced.
    fn line(&self, line: &str) -> String {
        let is_of_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let mut out = String::new();
        let mut rest = line;
        while let Some(start) = rest.find(is_of_path) {
            let end = rest[start..].find(|c| !is_of_path(c));
            let end = end.map_or(rest.len(), |length| start + length);
            let path = rest[start..end].trim_end_matches(':');
            out += &rest[..start];
            out += &short(self.of(path));
            rest = &rest[start + path.len()..];
            let colons = rest.len() - rest.trim_start_matches(':').len();
            out += &rest[..colons];
            rest = &rest[colons..];
        }
        out + rest
    }
}

/// A path without its modules, if every program knows the name.
fn short(path: String) -> String {
    const KNOWN: &[&str] = &[
        "alloc::borrow::Cow",
        "alloc::boxed::Box",
        "alloc::string::String",
        "alloc::sync::Arc",
        "alloc::vec::Vec",
        "core::clone::Clone",
        "core::cmp::Eq",
        "core::cmp::Ord",
        "core::cmp::PartialEq",
        "core::cmp::PartialOrd",
        "core::convert::AsRef",
        "core::convert::From",
        "core::convert::Into",
        "core::default::Default",
        "core::fmt::Debug",
        "core::fmt::Display",
        "core::hash::Hash",
        "core::iter::traits::collect::IntoIterator",
        "core::iter::traits::iterator::Iterator",
        "core::marker::Copy",
        "core::marker::Send",
        "core::marker::Sized",
        "core::marker::Sync",
        "core::ops::function::Fn",
        "core::ops::function::FnMut",
        "core::ops::function::FnOnce",
        "core::option::Option",
        "core::result::Result",
        "core::time::Duration",
        "std::path::Path",
        "std::path::PathBuf",
    ];
    match KNOWN.contains(&path.as_str()) {
        true => path.rsplit("::").next().unwrap_or_default().to_owned(),
        false => path,
    }
}

/// The items of a crate. What an `impl` of a trait has follows from the trait, and what is taken over is listed where
/// it is made.
fn lines(api: &PublicApi) -> Vec<String> {
    let of_trait = |line: &str| line.starts_with("impl") && line.contains(" for ");
    let items = || api.items().map(|item| (item, item.to_string()));
    let impls: HashSet<_> = items()
        .filter(|(_, line)| of_trait(line))
        .map(|(item, _)| item.id())
        .collect();
    items()
        .filter(|(item, _)| item.parent_id().is_none_or(|id| !impls.contains(&id)))
        .map(|(_, line)| line)
        .filter(|line| !line.starts_with("impl") || of_trait(line))
        .filter(|line| !line.starts_with("pub use ") && !line.contains("StructuralPartialEq"))
        .collect()
}

fn listed(folder: &Path) -> String {
    let file = |of| folder.join(format!("{of}.json"));
    let mut places = Places::default();
    // What a procedural macro is called has signs in it that no path has.
    places.add("sde_macros".to_owned(), "sde");
    for of in CRATES {
        let text = std::fs::read(file(of)).unwrap_or_else(|why| panic!("{of}: {why}"));
        let described: Json = serde_json::from_slice(&text).expect("a description");
        places.add_module(of, &described, &described["root"].to_string());
    }
    let mut found: Vec<String> = Vec::new();
    for of in CRATES {
        let api = Builder::from_rustdoc_json(file(of))
            .omit_blanket_impls(true)
            .omit_auto_trait_impls(true)
            .build()
            .expect("a description that `public-api` reads");
        for line in lines(&api) {
            let line = places.line(&line);
            // A crate whose items are taken over one by one has no place of its own.
            let is_place = *of == "sde" || line != format!("pub mod {of}");
            if is_place && !found.contains(&line) {
                found.push(line);
            }
        }
    }
    found.join("\n") + "\n"
}

#[test]
fn the_public_items_are_those_of_the_list() {
    let folder = std::env::var_os("SDE_API").expect("SDE_API names a folder of descriptions");
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/api.txt");
    let found = listed(&PathBuf::from(folder));
    if std::env::var_os("SDE_BLESS").is_some() {
        let compiler = std::env::var("SDE_API_OF").expect("SDE_API_OF names the compiler");
        std::fs::write(&list, format!("{compiler}\n{found}")).expect("written");
        return;
    }
    let expected = std::fs::read_to_string(&list).unwrap_or_default();
    let (_, expected) = expected.split_once('\n').unwrap_or_default();
    let only_in = |these: &str, those: &str, sign: char| {
        let those: HashSet<_> = those.lines().collect();
        let lines = these.lines().filter(|line| !those.contains(line));
        lines
            .map(|line| format!("{sign} {line}\n"))
            .collect::<String>()
    };
    let gone = only_in(expected, &found, '-');
    let new = only_in(&found, expected, '+');
    assert!(
        found == expected,
        "the public items have changed; `SDE_BLESS=1 ./test --only api` takes them into docs/api.txt\n{gone}{new}"
    );
}
