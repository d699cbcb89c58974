//! The oldest Rust we support is stated once, and what we build on agrees.
//!
//! `./test` also builds with that Rust, where rustup can get it; this catches a dependency that
//! would not build there before anyone tries.

use super::metadata::metadata;
use super::none;
use super::repository::{read, root};

/// `1.88` and `1.88.0` as numbers.
fn version(text: &str) -> Vec<u32> {
    let mut parts: Vec<u32> = text
        .split('.')
        .map(|part| {
            part.parse()
                .unwrap_or_else(|_| panic!("{text:?} is no Rust version"))
        })
        .collect();
    parts.resize(3, 0);
    parts
}

fn ours() -> String {
    let manifest: toml::Table = read("Cargo.toml").parse().expect("Cargo.toml is TOML");
    let version = &manifest["workspace"]["package"]["rust-version"];
    version
        .as_str()
        .expect("the workspace states its rust-version")
        .to_owned()
}

fn breach(name: &str, wanted: Option<&str>, ours: &str) -> Option<String> {
    let wanted = wanted?;
    (version(wanted) > version(ours))
        .then(|| format!("{name} wants Rust {wanted}, and we promise {ours}"))
}

#[test]
fn dependencies_build_with_our_oldest_rust() {
    let ours = ours();
    let check = metadata().foreign().filter_map(|package| {
        breach(
            &format!("{} {}", package.name, package.version),
            package.rust_version.as_deref(),
            &ours,
        )
    });
    none(&check.collect::<Vec<_>>());
}

#[test]
fn every_package_takes_it_from_the_workspace() {
    let ours = ours();
    let other = metadata()
        .members()
        .filter(|package| package.rust_version.as_deref() != Some(ours.as_str()));
    none(
        &other
            .map(|package| format!("{} needs rust-version.workspace = true", package.name))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn the_readme_states_it() {
    // Until there is a README, nothing is promised.
    if root().join("README.md").exists() {
        let wanted = format!("{} or newer", ours());
        assert!(
            read("README.md").contains(&wanted),
            "README.md must say {wanted:?}, as Cargo.toml does"
        );
    }
}

#[test]
fn a_newer_rust_is_noticed() {
    assert_eq!(breach("a", Some("1.88"), "1.88"), None);
    assert_eq!(breach("a", Some("1.9.1"), "1.88"), None);
    assert_eq!(breach("a", None, "1.88"), None);
    assert!(breach("a", Some("1.88.1"), "1.88").is_some());
    assert!(breach("a", Some("2.0"), "1.88").is_some());
}
