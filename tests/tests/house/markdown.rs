//! A Markdown file as the document rules need it: headings, links and code.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::repository::line_of;

/// A fenced or indented block of code.
pub struct Code {
    pub line: usize,
    /// What stands after the opening fence, such as `rust,no_run`; `None` for an indented block.
    pub info: Option<String>,
}

/// A link or an image.
pub struct Link {
    pub line: usize,
    pub target: String,
}

#[derive(Default)]
pub struct Document {
    /// The anchors that other documents can point to.
    pub anchors: Vec<String>,
    pub links: Vec<Link>,
    pub code: Vec<Code>,
}

impl Document {
    pub fn parse(text: &str) -> Self {
        let mut document = Self::default();
        let mut heading: Option<String> = None;
        let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES;
        for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
            let line = line_of(text, range.start);
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::Text(words) | Event::Code(words) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&words);
                    }
                }
                Event::End(TagEnd::Heading(_)) => {
                    let words = heading.take().unwrap_or_default();
                    document.add_anchor(&words);
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    document.links.push(Link {
                        line,
                        target: dest_url.into_string(),
                    });
                }
                Event::Start(Tag::CodeBlock(kind)) => {
                    let info = match kind {
                        CodeBlockKind::Fenced(info) => Some(info.into_string()),
                        CodeBlockKind::Indented => None,
                    };
                    document.code.push(Code { line, info });
                }
                _ => {}
            }
        }
        document
    }

    /// As the usual viewers make anchors: lower case, punctuation gone, blanks to hyphens, and a
    /// number behind a heading that comes again.
    fn add_anchor(&mut self, heading: &str) {
        let mut anchor = String::new();
        for letter in heading.trim().chars() {
            match letter {
                ' ' => anchor.push('-'),
                '-' | '_' => anchor.push(letter),
                _ if letter.is_alphanumeric() => anchor.extend(letter.to_lowercase()),
                _ => {}
            }
        }
        let plain = anchor.clone();
        let mut number = 0;
        while self.anchors.contains(&anchor) {
            number += 1;
            anchor = format!("{plain}-{number}");
        }
        self.anchors.push(anchor);
    }
}

impl Code {
    /// Whether rustdoc takes it for Rust, which it does unless another language is named.
    pub fn is_rust(&self) -> bool {
        let Some(info) = &self.info else { return true };
        let own = [
            "",
            "rust",
            "no_run",
            "should_panic",
            "compile_fail",
            "ignore",
        ];
        own.contains(&self.words().next().unwrap_or_default()) || info.contains("edition20")
    }

    /// The words of the info string.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.info.as_deref().unwrap_or_default().split([',', ' '])
    }
}

#[test]
fn headings_become_anchors() {
    let document = Document::parse("# One `run`, two!\n\n## A-b_c\n\n## A-b_c\n");
    assert_eq!(document.anchors, ["one-run-two", "a-b_c", "a-b_c-1"]);
}

#[test]
fn links_are_found_and_those_in_code_are_not() {
    let document = Document::parse(
        "a\n[b](c.md#d) ![e](f.png) `[g](h)`\n\n```text\n[i](j)\n```\n[k]\n\n[k]: l.md\n",
    );
    let targets: Vec<&str> = document
        .links
        .iter()
        .map(|link| link.target.as_str())
        .collect();
    assert_eq!(targets, ["c.md#d", "f.png", "l.md"]);
    assert_eq!(document.links[0].line, 2);
}

#[test]
fn rust_is_told_from_other_code() {
    let is_rust = |text: &str| Document::parse(text).code[0].is_rust();
    assert!(is_rust("```rust\nlet a = 1;\n```"));
    assert!(is_rust("```no_run\nlet a = 1;\n```"));
    assert!(is_rust("```\nlet a = 1;\n```"));
    assert!(is_rust("para\n\n    indented();\n"));
    assert!(!is_rust("```sh\nls\n```"));
    assert!(!is_rust("```text\nls\n```"));
}
