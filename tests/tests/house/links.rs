//! Links between documents lead somewhere: to a file that exists, and to a heading it has.
//!
//! Links to the web are not followed, since a test must not need a network.

use std::collections::BTreeMap;

use super::markdown::Document;
use super::none;
use super::repository::{root, text_files};

/// `from`'s folder with the relative `target` applied; `None` if that leads out of the repository.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

fn breaches(documents: &BTreeMap<&str, Document>, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (path, document) in documents {
        for link in &document.links {
            let target = link.target.as_str();
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let aim = if file.is_empty() {
                Some((*path).to_owned())
            } else {
                resolve(path, file)
            };
            let trouble = match &aim {
                Some(aim) if !exists(aim) => format!("there is no {aim}"),
                Some(aim) => match documents.get(aim.as_str()) {
                    Some(other)
                        if !anchor.is_empty()
                            && !other.anchors.iter().any(|known| known == anchor) =>
                    {
                        format!("{aim} has no heading for #{anchor}")
                    }
                    _ => continue,
                },
                None => "it leads out of the repository".to_owned(),
            };
            found.push(format!("{path}:{} links to {target}: {trouble}", link.line));
        }
    }
    found
}

#[test]
fn links_lead_somewhere() {
    let markdown = text_files().iter().filter(|file| file.is(".md"));
    let documents = markdown
        .map(|file| (file.path.as_str(), Document::parse(&file.text)))
        .collect();
    none(breaches(&documents, &|path| root().join(path).exists()));
}

#[test]
fn a_dead_link_is_noticed() {
    let check = |text: &str| {
        let other = Document::parse("# Here\n");
        let documents =
            BTreeMap::from([("docs/a.md", Document::parse(text)), ("docs/b.md", other)]);
        breaches(&documents, &|path| {
            path == "docs/b.md" || path == "docs/a.md" || path == "README"
        })
    };
    for good in [
        "[x](b.md)",
        "[x](b.md#here)",
        "[x](../README)",
        "# Me\n[x](#me)",
        "[x](https://example.org/#y)",
    ] {
        assert_eq!(check(good), Vec::<String>::new(), "{good}");
    }
    for bad in [
        "[x](c.md)",
        "[x](b.md#there)",
        "[x](#me)",
        "[x](../../README)",
        "[x](../b.md)",
    ] {
        assert_eq!(check(bad).len(), 1, "{bad}");
    }
}
