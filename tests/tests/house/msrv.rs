//! The oldest Rust we support is stated once. That we build with it, and what we build on does, is for Cargo to say:
//! `./test --only msrv`.

use super::metadata::metadata;
use super::none;
use super::repository::read;

fn ours() -> String {
    let manifest: toml::Table = read("Cargo.toml").parse().expect("Cargo.toml is TOML");
    let version = &manifest["workspace"]["package"]["rust-version"];
    version
        .as_str()
        .expect("the workspace states its rust-version")
        .to_owned()
}

#[test]
fn every_package_takes_it_from_the_workspace() {
    let ours = ours();
    let other = metadata()
        .members()
        .filter(|package| package.rust_version.as_deref() != Some(ours.as_str()));
    none(other.map(|package| format!("{} needs rust-version.workspace = true", package.name)));
}

#[test]
fn the_readme_states_it() {
    let wanted = format!("{} or newer", ours());
    assert!(
        read("README.md").contains(&wanted),
        "README.md must say {wanted:?}, as Cargo.toml does"
    );
}
