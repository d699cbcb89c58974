//! What is written in `docs/` is found, and its code compiles.
//!
//! Code in prose goes stale unless it is built. `tests/src/docs.rs` includes every document with
//! Rust in it, so that its blocks are doctests; these rules see to it that none is left out. A block
//! must name its language, since rustdoc takes one that doesn't for Rust.

use std::collections::{BTreeMap, BTreeSet};

use super::markdown::Document;
use super::none;
use super::repository::{read, text_files};

const INCLUDES: &str = "tests/src/docs.rs";
const INDEX: &str = "docs/decisions/README.md";

fn code_breaches(path: &str, text: &str, includes: &str) -> Vec<String> {
    let document = Document::parse(text);
    let mut found = Vec::new();
    for code in &document.code {
        let at = format!("{path}:{}", code.line);
        if code.words().next().is_none_or(str::is_empty) {
            found.push(format!("{at}: this code names no language; `text` is one"));
        } else if code.words().any(|word| word == "ignore") {
            found.push(format!(
                "{at}: ignored code goes stale; make it compile (`no_run` is allowed)"
            ));
        }
    }
    let included = includes.contains(&format!("../{path}\")"));
    if document.code.iter().any(|code| code.is_rust()) && !included {
        found.push(format!("{path} has Rust code; include it in {INCLUDES}"));
    }
    found
}

#[test]
fn code_in_documents_is_compiled() {
    let includes = read(INCLUDES);
    let documents = text_files().iter().filter(|file| file.is(".md"));
    none(documents.flat_map(|file| code_breaches(&file.path, &file.text, &includes)));
}

fn index_breaches<'a>(pages: impl IntoIterator<Item = &'a str>, index: &str) -> Vec<String> {
    let links = Document::parse(index).links;
    let missing = pages
        .into_iter()
        .filter(|page| !links.iter().any(|link| link.target == *page));
    missing
        .map(|page| format!("{INDEX} has no link to {page}"))
        .collect()
}

#[test]
fn every_decision_is_in_the_index() {
    let folder = INDEX.trim_end_matches("README.md");
    let pages = text_files()
        .iter()
        .filter(|file| file.path != INDEX && file.is(".md"));
    none(index_breaches(
        pages.filter_map(|file| file.path.strip_prefix(folder)),
        &read(INDEX),
    ));
}

/// What is wrong with the heading of a decision's page.
fn heading_breach(page: &str, text: &str) -> Option<String> {
    let number = page.get(..4)?;
    let heading = text.lines().next().unwrap_or_default();
    let named = heading
        .strip_prefix("# ")
        .and_then(|rest| rest.strip_prefix(number));
    match named.and_then(|rest| rest.strip_prefix(": ")) {
        Some(name) if !name.trim().is_empty() => None,
        _ => Some(format!(
            "docs/decisions/{page} begins with {heading:?}; its heading is \"# {number}: what it is about\""
        )),
    }
}

#[test]
fn decisions_have_headings_of_one_form() {
    let of = |text| heading_breach("0004-parallel.md", text);
    assert_eq!(of("# 0004: helpers\n"), None);
    for wrong in [
        "# 4. Helpers",
        "# 0005: lints",
        "# 0004:",
        "0004: helpers",
        "",
    ] {
        assert!(of(wrong).is_some(), "{wrong:?}");
    }
    let numbered = |page: &&str| page.starts_with(|letter: char| letter.is_ascii_digit());
    let pages = text_files().iter().filter_map(|file| {
        let page = file.path.strip_prefix("docs/decisions/")?;
        Some(page).filter(numbered).map(|page| (page, &file.text))
    });
    none(pages.filter_map(|(page, text)| heading_breach(page, text)));
}

const MAP: &str = "docs/architecture.md";

/// The modules of the engine that the page Architecture does not show: each is in the diagram, by
/// its name alone, and in the table, as code.
fn map_breaches<'a>(modules: impl Iterator<Item = &'a str>, map: &str) -> Vec<String> {
    let diagram = map
        .lines()
        .find(|line| line.starts_with("engine ──>"))
        .unwrap_or_default();
    let drawn: Vec<&str> = diagram
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    let mut found = Vec::new();
    for module in modules {
        if !drawn.contains(&module) {
            found.push(format!("{MAP}: the diagram lacks the module {module}"));
        }
        if !map.contains(&format!("| `{module}` |")) {
            found.push(format!("{MAP}: the table lacks the module {module}"));
        }
    }
    found
}

#[test]
fn every_module_of_the_engine_is_on_the_map() {
    let made_up = "engine ──> cache ──> key\n| `engine` | x |\n| `key` | y |\n";
    none(map_breaches(["engine", "key"].into_iter(), made_up));
    assert_eq!(map_breaches(["cache", "ke"].into_iter(), made_up).len(), 3);
    let modules: BTreeSet<&str> = text_files()
        .iter()
        .filter_map(|file| file.path.strip_prefix("sde/engine/src/"))
        .filter(|path| path.ends_with(".rs") && *path != "lib.rs")
        .filter_map(|path| path.split('/').next())
        .map(|first| first.trim_end_matches(".rs"))
        .collect();
    assert!(modules.contains("engine"), "{modules:?}");
    none(map_breaches(modules.into_iter(), &read(MAP)));
}

/// What always holds, by the page Architecture, and has no test, or one that is nowhere. `exists` is asked for a theme and a name.
fn invariant_breaches(map: &str, exists: &dyn Fn(&str, &str) -> bool) -> Vec<String> {
    let section = map
        .split("\n## ")
        .find(|part| part.starts_with("What always holds"));
    let mut found = Vec::new();
    for rule in section.unwrap_or_default().split("\n- ").skip(1) {
        let code = rule.split('`').skip(1).step_by(2);
        let is_test =
            |text: &&str| !text.contains(|c: char| !c.is_ascii_lowercase() && !"_:".contains(c));
        let tests: Vec<_> = code
            .filter(is_test)
            .filter_map(|text| text.split_once("::"))
            .collect();
        let start = rule.split('.').next().unwrap_or(rule);
        // `sde::open` is a name of ours.
        let tests = tests.iter().filter(|(theme, _)| *theme != "sde");
        if tests.clone().count() == 0 {
            found.push(format!("{MAP}: {start:?} names no test"));
        }
        let missing = tests.filter(|(theme, name)| !exists(theme, name));
        found.extend(
            missing.map(|(theme, name)| format!("{MAP}: there is no test {theme}::{name}")),
        );
    }
    found
}

#[test]
fn what_always_holds_is_tested() {
    let made_up = "# x\n\n## What always holds\n\n- One (`a.rs`; `a::b`).\n- Two (`a::c`).\n- Three `sde::x`.\n\n## y\n";
    let found = invariant_breaches(made_up, &|theme, name| (theme, name) == ("a", "b"));
    assert_eq!(found.len(), 2, "{found:?}");
    let exists = |theme: &str, name: &str| {
        text_files().iter().any(|file| {
            file.path.ends_with(&format!("/{theme}.rs"))
                && file.path.contains("tests/")
                && file.text.contains(&format!("fn {name}("))
        })
    };
    let map = read(MAP);
    assert!(map.contains("\n## What always holds\n"));
    none(invariant_breaches(&map, &exists));
}

#[test]
fn every_decision_says_what_was_rejected() {
    let mut found = Vec::new();
    for file in text_files() {
        let Some(page) = file.path.strip_prefix("docs/decisions/") else {
            continue;
        };
        if !page.starts_with(|letter: char| letter.is_ascii_digit()) {
            continue;
        }
        let anchors = Document::parse(&file.text).anchors;
        for section in ["context", "decision", "rejected", "consequences"] {
            if !anchors.iter().any(|anchor| anchor == section) {
                found.push(format!(
                    "{} has no section {section:?}; see {INDEX}",
                    file.path
                ));
            }
        }
    }
    none(found);
}

fn number_breaches<'a>(pages: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut found = Vec::new();
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for page in pages
        .into_iter()
        .filter(|page| page.starts_with(|letter: char| letter.is_ascii_digit()))
    {
        let number = page.split('-').next().unwrap_or(page);
        if let Some(other) = seen.insert(number, page) {
            found.push(format!(
                "docs/decisions: {other} and {page} have the same number"
            ));
        }
    }
    found
}

#[test]
fn every_decision_has_its_own_number() {
    let pages = text_files()
        .iter()
        .filter_map(|file| file.path.strip_prefix("docs/decisions/"));
    none(number_breaches(pages));
    none(number_breaches(["0001-a.md", "0002-b.md", "README.md"]));
    assert_eq!(number_breaches(["0001-a.md", "0001-b.md"]).len(), 1);
}

#[test]
fn code_that_is_not_compiled_is_noticed() {
    let rust = "```rust\nlet a = 1;\n```\n";
    let includes = "#[doc = include_str!(\"../../docs/a.md\")]";
    let of = |path: &str, text: &str| code_breaches(path, text, includes);
    none(of("docs/a.md", rust));
    assert_eq!(of("docs/b.md", rust).len(), 1);
    none(of("docs/b.md", "```sh\nls\n```\n"));
    assert_eq!(of("docs/a.md", "```\nls\n```\n").len(), 1);
    assert_eq!(of("docs/a.md", "```rust,ignore\nx\n```\n").len(), 1);
}

#[test]
fn a_page_without_a_link_is_noticed() {
    let index = "[one](0001-one.md)";
    none(index_breaches(["0001-one.md"], index));
    let got = index_breaches(["0001-one.md", "0002-two.md"], index).len();
    assert_eq!(got, 1);
}
