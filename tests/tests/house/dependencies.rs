//! Every crate we build on is there for a reason that is written down.

use std::collections::BTreeSet;

use super::metadata::metadata;
use super::none;
use super::repository::read;

const PAGE: &str = "docs/decisions/dependencies.md";

/// The crates the page has a row for: rows start with the name in backticks.
fn listed(page: &str) -> BTreeSet<&str> {
    page.lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name)
        .collect()
}

fn breaches(used: &BTreeSet<&str>, page: &str) -> Vec<String> {
    let listed = listed(page);
    let missing = used
        .difference(&listed)
        .map(|name| format!("{PAGE} has no row for {name}: say why it is there"));
    let stale = listed
        .difference(used)
        .map(|name| format!("{PAGE} has a row for {name}, which nothing uses"));
    missing.chain(stale).collect()
}

#[test]
fn every_direct_dependency_has_its_reason() {
    let dependencies = metadata()
        .members()
        .flat_map(|package| &package.dependencies);
    let foreign = dependencies.filter(|dependency| dependency.path.is_none());
    none(breaches(
        &foreign.map(|dependency| dependency.name.as_str()).collect(),
        &read(PAGE),
    ));
}

#[test]
fn a_missing_and_a_stale_row_are_noticed() {
    let page = "| crate | why |\n|---|---|\n| `one` | because |\n";
    none(breaches(&BTreeSet::from(["one"]), page));
    assert_eq!(breaches(&BTreeSet::from(["one", "two"]), page).len(), 1);
    assert_eq!(breaches(&BTreeSet::new(), page).len(), 1);
}
