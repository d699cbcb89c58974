//! What we build on may be used under our own licence, comes from the public registry, and is not
//! among the crates we refuse.
//!
//! The rules are in `deny.toml`, in the words of cargo-deny, which reads the same file. This test
//! applies them so that nobody needs to install a tool that takes minutes to build;
//! `docs/decisions/0003-licences.md` has the reasons. An unknown word in the file is an
//! error, so that no rule is written that nothing applies.

use serde::Deserialize;
use spdx::{Expression, LicenseReq, ParseMode};

use super::metadata::{Package, metadata};
use super::none;
use super::repository::read;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Policy {
    licenses: Licences,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Licences {
    allow: Vec<String>,
    exceptions: Vec<LicenceException>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LicenceException {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Sources {
    #[serde(rename = "unknown-registry")]
    _unknown_registry: Deny,
    #[serde(rename = "unknown-git")]
    _unknown_git: Deny,
    allow_registry: Vec<String>,
}

/// The one level this check knows.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Deny {
    Deny,
}

fn policy() -> Policy {
    toml::from_str(&read("deny.toml")).unwrap_or_else(|why| panic!("deny.toml: {why}"))
}

fn licence_trouble(name: &str, licence: Option<&str>, policy: &Licences) -> Option<String> {
    let Some(licence) = licence else {
        return Some("declares no licence".to_owned());
    };
    // The old form `MIT/Apache-2.0` is still in use.
    let expression = match Expression::parse_mode(licence, ParseMode::LAX) {
        Ok(expression) => expression,
        Err(why) => {
            return Some(format!(
                "declares {licence:?}, which is no licence expression: {why}"
            ));
        }
    };
    let exceptions = policy
        .exceptions
        .iter()
        .filter(|exception| exception.name == name);
    let allowed: Vec<&String> = policy
        .allow
        .iter()
        .chain(exceptions.flat_map(|exception| &exception.allow))
        .collect();
    let is_allowed = |wanted: &LicenseReq| {
        allowed
            .iter()
            .any(|allowed| **allowed == wanted.to_string())
    };
    (!expression.evaluate(is_allowed))
        .then(|| format!("has the licence {licence}, which deny.toml does not allow"))
}

fn breaches(package: &Package, policy: &Policy) -> Vec<String> {
    let at = format!("{} {}", package.name, package.version);
    let mut found = Vec::new();
    if let Some(trouble) =
        licence_trouble(&package.name, package.license.as_deref(), &policy.licenses)
    {
        found.push(format!("{at} {trouble}"));
    }
    if let Some(ban) = policy.bans.deny.iter().find(|ban| ban.name == package.name) {
        found.push(format!(
            "{at} is banned: {}; `cargo tree -i {}` shows who wants it",
            ban.reason, package.name
        ));
    }
    let source = package
        .source
        .as_deref()
        .unwrap_or("a path outside the workspace");
    let address = source.trim_start_matches("registry+");
    if !policy
        .sources
        .allow_registry
        .iter()
        .any(|allowed| allowed == address)
    {
        found.push(format!(
            "{at} comes from {source}, not from a registry that deny.toml allows"
        ));
    }
    found
}

#[test]
fn dependencies_keep_to_deny_toml() {
    let policy = policy();
    none(
        metadata()
            .foreign()
            .flat_map(|package| breaches(package, &policy)),
    );
}

#[test]
fn no_exception_is_left_over() {
    let used = |name: &str| metadata().foreign().any(|package| package.name == name);
    let policy = policy();
    let stale = policy
        .licenses
        .exceptions
        .iter()
        .filter(|exception| !used(&exception.name));
    none(stale.map(|exception| format!("deny.toml excepts {}, which is gone", exception.name)));
}

#[test]
fn both_licence_texts_are_here() {
    assert!(read("LICENSE-MIT").contains("Permission is hereby granted, free of charge"));
    assert!(read("LICENSE-APACHE").contains("Version 2.0, January 2004"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_up() -> Policy {
        toml::from_str(
            r#"
            [licenses]
            allow = ["MIT", "Apache-2.0"]
            exceptions = [{ crate = "odd", allow = ["Zlib"] }]
            [bans]
            deny = [{ crate = "bad", reason = "made up" }]
            [sources]
            unknown-registry = "deny"
            unknown-git = "deny"
            allow-registry = ["https://example.org/index"]
            "#,
        )
        .expect("a made-up policy")
    }

    #[test]
    fn licence_expressions_are_weighed() {
        let trouble = |name: &str, licence| licence_trouble(name, licence, &made_up().licenses);
        for good in [
            "MIT",
            "MIT OR GPL-3.0-only",
            "MIT/Apache-2.0",
            "(MIT OR Zlib) AND Apache-2.0",
        ] {
            assert_eq!(trouble("any", Some(good)), None, "{good}");
        }
        for bad in [
            "GPL-3.0-only",
            "MIT AND GPL-3.0-only",
            "Zlib",
            "no such licence",
        ] {
            assert!(trouble("any", Some(bad)).is_some(), "{bad}");
        }
        assert_eq!(trouble("odd", Some("Zlib")), None);
        assert!(trouble("any", None).is_some());
    }

    #[test]
    fn bans_and_foreign_sources_are_noticed() {
        let package = |name: &str, source: Option<&str>| Package {
            id: String::new(),
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: Some("MIT".to_owned()),
            rust_version: None,
            source: source.map(str::to_owned),
            manifest_path: String::new(),
            dependencies: Vec::new(),
            targets: Vec::new(),
        };
        let registry = Some("registry+https://example.org/index");
        none(breaches(&package("good", registry), &made_up()));
        assert!(breaches(&package("bad", registry), &made_up())[0].contains("banned: made up"));
        assert_eq!(
            breaches(
                &package("good", Some("git+https://example.org/x")),
                &made_up()
            )
            .len(),
            1
        );
        assert_eq!(breaches(&package("good", None), &made_up()).len(), 1);
    }

    #[test]
    fn an_unknown_rule_is_an_error() {
        let text = "[licenses]\nallow = []\nexceptions = []\nprivate = 1\n";
        assert!(toml::from_str::<Policy>(text).is_err());
    }
}
