//! What `cargo metadata` says about the packages of the workspace and what they depend on.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::OnceLock;

use serde::Deserialize;

#[derive(Deserialize)]
pub struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
    resolve: Resolve,
}

#[derive(Deserialize)]
pub struct Package {
    pub id: String,
    pub name: String,
    pub version: String,
    pub license: Option<String>,
    pub rust_version: Option<String>,
    pub source: Option<String>,
    pub manifest_path: String,
    pub dependencies: Vec<Dependency>,
    pub targets: Vec<Target>,
}

#[derive(Deserialize)]
pub struct Dependency {
    pub name: String,
    /// Set for a dependency by path, which is to say inside the workspace.
    pub path: Option<String>,
}

#[derive(Deserialize)]
pub struct Target {
    pub kind: Vec<String>,
    pub src_path: String,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<NodeDependency>,
}

#[derive(Deserialize)]
struct NodeDependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    /// `None` for an ordinary dependency, else `dev` or `build`.
    kind: Option<String>,
}

/// The metadata with all features on, read once.
pub fn metadata() -> &'static Metadata {
    static METADATA: OnceLock<Metadata> = OnceLock::new();
    METADATA.get_or_init(|| {
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--all-features"])
            .current_dir(super::repository::root())
            .output()
            .expect("starting cargo");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "cargo metadata failed:\n{complaint}"
        );
        serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON of version 1")
    })
}

impl Metadata {
    /// The packages of this workspace.
    pub fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages
            .iter()
            .filter(|package| self.workspace_members.contains(&package.id))
    }

    /// The packages that come from elsewhere.
    pub fn foreign(&self) -> impl Iterator<Item = &Package> {
        self.packages
            .iter()
            .filter(|package| !self.workspace_members.contains(&package.id))
    }

    /// The names of everything a package is built with, its dependencies' dependencies included;
    /// what only its tests use is left out.
    pub fn built_with(&self, name: &str) -> BTreeSet<&str> {
        let names: BTreeMap<&str, &str> = self
            .packages
            .iter()
            .map(|package| (package.id.as_str(), package.name.as_str()))
            .collect();
        let nodes: BTreeMap<&str, &Node> = self
            .resolve
            .nodes
            .iter()
            .map(|node| (node.id.as_str(), node))
            .collect();
        let first = self
            .members()
            .find(|package| package.name == name)
            .expect("a package of the workspace");
        let (mut found, mut open) = (BTreeSet::new(), vec![first.id.as_str()]);
        while let Some(id) = open.pop() {
            for dependency in &nodes[id].deps {
                let only_for_tests = dependency
                    .dep_kinds
                    .iter()
                    .all(|kind| kind.kind.as_deref() == Some("dev"));
                if !only_for_tests && found.insert(names[dependency.pkg.as_str()]) {
                    open.push(&dependency.pkg);
                }
            }
        }
        found
    }
}

#[test]
fn the_workspace_is_told_from_the_rest() {
    assert!(metadata().members().any(|package| package.name == "sde"));
    assert!(metadata().foreign().any(|package| package.name == "blake3"));
    assert!(!metadata().foreign().any(|package| package.name == "sde"));
}

#[test]
fn indirect_dependencies_count_and_those_of_tests_do_not() {
    let sde = metadata().built_with("sde-engine");
    assert!(sde.contains("quote"), "by way of sde-macros");
    assert!(
        !metadata().built_with("sde-tests").contains("spdx"),
        "only the tests here use it"
    );
}
