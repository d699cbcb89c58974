//! The module paths a Rust source names.
//!
//! The layer rule needs to know which modules a file uses, also by full path in an expression and
//! inside a macro's body. So this looks at tokens, not at syntax: any `crate::`, `self::`,
//! `super::`, `sde::` or `std::` starts a path. Comments and strings are no tokens of this kind, so
//! links in documentation are free. Code for tests alone is left out.
//!
//! `sde::` is the crate's name for itself, except in a file that has a module of that name.

use std::iter::Peekable;
use std::str::FromStr;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree, token_stream};

/// A path as written in full, with the line it is on.
#[derive(Debug, PartialEq, Eq)]
pub struct NamedPath {
    pub line: usize,
    /// From the crate's root, or starting with `std` for one of the standard library's.
    pub segments: Vec<String>,
    /// Whether it started with `$crate`: code that a macro puts into other crates.
    pub by_macro: bool,
}

/// What one source file names.
#[derive(Default)]
pub struct Source {
    pub paths: Vec<NamedPath>,
    /// Modules in files of their own that are there for tests alone.
    pub test_modules: Vec<Vec<String>>,
    /// What `use` gives another name: the paths, relative to the file's module.
    pub reexports: Vec<Vec<String>>,
    is_engine: bool,
    has_module_sde: bool,
}

/// Reads one file of the engine, the source of `module` (empty for the crate's root).
pub fn scan(text: &str, module: &[String]) -> Result<Source, String> {
    scan_of("sde-engine", text, module)
}

/// The same, of this crate: to others `sde` is a crate of its own.
pub fn scan_of(krate: &str, text: &str, module: &[String]) -> Result<Source, String> {
    let tokens = TokenStream::from_str(text).map_err(|why| why.to_string())?;
    let mut source = Source {
        is_engine: krate == "sde-engine",
        has_module_sde: declares_sde(tokens.clone()),
        ..Source::default()
    };
    source.scan(tokens, module);
    Ok(source)
}

type Tokens = Peekable<token_stream::IntoIter>;

impl Source {
    fn scan(&mut self, tokens: TokenStream, module: &[String]) {
        let mut tokens = tokens.into_iter().peekable();
        let mut before = String::new();
        while let Some(token) = tokens.next() {
            let now = token.to_string();
            match token {
                TokenTree::Punct(punct)
                    if punct.as_char() == '#' && self.attribute(&mut tokens, module) =>
                {
                    return;
                }
                TokenTree::Ident(_) if now == "mod" => self.module(&mut tokens, module),
                TokenTree::Ident(_) if now == "use" => self.reexport(tokens.clone()),
                TokenTree::Ident(ident)
                    if self.starts_a_path(&now, &before) && at_colons(&tokens) =>
                {
                    let start = step(module.to_vec(), &now);
                    let from = self.paths.len();
                    self.path(&mut tokens, start, ident.span().start().line);
                    self.paths[from..]
                        .iter_mut()
                        .for_each(|path| path.by_macro = before == "$");
                }
                // `pub(in crate::x)` gives something away; it uses nothing.
                TokenTree::Group(group) if before == "pub" && starts_with_in(&group) => {}
                TokenTree::Group(group) => self.scan(group.stream(), module),
                _ => {}
            }
            before = now;
        }
    }

    /// After a `#`. True if the whole file is for tests.
    fn attribute(&mut self, tokens: &mut Tokens, module: &[String]) -> bool {
        let inner =
            matches!(tokens.peek(), Some(TokenTree::Punct(punct)) if punct.as_char() == '!');
        if inner {
            tokens.next();
        }
        let Some(TokenTree::Group(group)) = tokens.peek() else {
            return false;
        };
        if !is_for_tests(group) {
            return false;
        }
        tokens.next();
        if !inner {
            self.skip_item(tokens, module);
        }
        inner
    }

    /// Passes over the item that follows, up to its body or its semicolon.
    fn skip_item(&mut self, tokens: &mut Tokens, module: &[String]) {
        let mut before = String::new();
        for token in tokens.by_ref() {
            let now = token.to_string();
            match token {
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return,
                TokenTree::Punct(punct) if punct.as_char() == ';' => return,
                TokenTree::Ident(_) if before == "mod" => {
                    self.test_modules.push(step(module.to_vec(), &now))
                }
                _ => {}
            }
            before = now;
        }
    }

    /// After `mod`: a body of its own is scanned as that module.
    fn module(&mut self, tokens: &mut Tokens, module: &[String]) {
        let Some(TokenTree::Ident(name)) = tokens.next() else {
            return;
        };
        if let Some(TokenTree::Group(group)) = tokens.peek() {
            let body = group.stream();
            tokens.next();
            self.scan(body, &step(module.to_vec(), &name.to_string()));
        }
    }

    /// After the first segment: the rest of a path, or of a tree of them in braces.
    fn path(&mut self, tokens: &mut Tokens, mut segments: Vec<String>, line: usize) {
        while at_colons(tokens) {
            tokens.nth(1);
            match tokens.peek() {
                Some(TokenTree::Ident(ident)) => {
                    segments = step(segments, &ident.to_string());
                    tokens.next();
                }
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                    let branches = group.stream();
                    tokens.next();
                    self.branches(branches, &segments);
                    return;
                }
                _ => break,
            }
        }
        self.paths.push(NamedPath {
            line,
            segments,
            by_macro: false,
        });
    }

    /// After `use`: notes what it names, and leaves the tokens to the ordinary scan.
    fn reexport(&mut self, tokens: Tokens) {
        let tree = tokens
            .take_while(|token| token.to_string() != ";")
            .collect();
        let mut inner = Self::default();
        inner.branches(tree, &[]);
        self.reexports
            .extend(inner.paths.into_iter().map(|path| path.segments));
    }

    fn starts_a_path(&self, word: &str, before: &str) -> bool {
        match word {
            "crate" | "self" | "super" | "std" => true,
            "sde" => self.is_engine && (before == ":" || !self.has_module_sde),
            _ => false,
        }
    }

    fn branches(&mut self, branches: TokenStream, prefix: &[String]) {
        let mut tokens = branches.into_iter().peekable();
        while let Some(token) = tokens.next() {
            let line = token.span().start().line;
            if let TokenTree::Ident(ident) = token {
                self.path(&mut tokens, step(prefix.to_vec(), &ident.to_string()), line);
            } else if matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '*') {
                self.paths.push(NamedPath {
                    line,
                    segments: prefix.to_vec(),
                    by_macro: false,
                });
            }
            // What is left of this branch (`as name`) names nothing of the crate.
            while tokens.next_if(|token| token.to_string() != ",").is_some() {}
            tokens.next();
        }
    }
}

fn declares_sde(tokens: TokenStream) -> bool {
    let words: Vec<String> = tokens.into_iter().map(|token| token.to_string()).collect();
    words
        .windows(2)
        .any(|pair| pair[0] == "mod" && pair[1] == "sde")
}

fn starts_with_in(visibility: &Group) -> bool {
    visibility
        .stream()
        .into_iter()
        .next()
        .is_some_and(|token| token.to_string() == "in")
}

/// One more segment on a path that is kept from the crate's root.
fn step(mut path: Vec<String>, segment: &str) -> Vec<String> {
    match segment {
        "crate" | "sde" => path.clear(),
        "std" => path = vec!["std".to_owned()],
        "self" => {}
        "super" => {
            path.pop();
        }
        name => path.push(name.to_owned()),
    }
    path
}

fn at_colons(tokens: &Tokens) -> bool {
    let mut ahead = tokens.clone();
    let mut colon =
        || matches!(ahead.next(), Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
    colon() && colon()
}

/// `[cfg(test)]`, or with more conditions that must all hold.
fn is_for_tests(attribute: &Group) -> bool {
    let words: Vec<String> = words(attribute.stream());
    words.first().is_some_and(|word| word == "cfg")
        && words.iter().any(|word| word == "test")
        && !words.iter().any(|word| word == "any" || word == "not")
}

fn words(tokens: TokenStream) -> Vec<String> {
    let mut found = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => found.push(ident.to_string()),
            TokenTree::Group(group) => found.extend(words(group.stream())),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str, module: &str) -> Vec<String> {
        let module: Vec<String> = module
            .split("::")
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect();
        let source = scan(text, &module).expect("made-up source is Rust");
        source
            .paths
            .iter()
            .map(|path| path.segments.join("::"))
            .collect()
    }

    macro_rules! names {
        ($($text:literal in $module:literal: $names:expr;)*) => {
            $(assert_eq!(named($text, $module), $names, "{}", $text);)*
        };
    }

    #[test]
    fn imports_are_paths_also_in_trees() {
        names! {
            "use crate::key::Key;" in "app": ["key::Key"];
            "use crate::{key::{Key, Digest as D}, error::*, app::{self}};" in "app": ["key::Key", "key::Digest", "error", "app"];
            "use sde::Sde; use ::sde::key;" in "app": ["Sde", "key"];
        }
    }

    #[test]
    fn a_module_called_sde_is_not_the_crate() {
        names! {
            "mod sde; pub use sde::Sde;" in "engine": [""; 0];
            "mod sde; use ::sde::key;" in "engine": ["key"];
        }
    }

    #[test]
    fn reexports_are_noted() {
        let source = scan(
            "pub use engine::{Sde, app::App as A}; pub use crate::key::Key;",
            &[],
        )
        .expect("Rust");
        let names: Vec<String> = source
            .reexports
            .iter()
            .map(|path| path.join("::"))
            .collect();
        assert_eq!(names, ["engine::Sde", "engine::app::App", "key::Key"]);
    }

    #[test]
    fn what_macros_put_elsewhere_is_marked() {
        let source = scan(
            "macro_rules! m { () => { $crate::App } } use crate::key;",
            &[],
        )
        .expect("Rust");
        assert!(source.paths[0].by_macro && !source.paths[1].by_macro);
    }

    #[test]
    fn relative_paths_are_followed() {
        names! {
            "use super::info::X;" in "app::slot": ["app::info::X"];
            "use super::super::engine::X;" in "app::slot": ["engine::X"];
            "use super::{super::engine::X, y};" in "app::slot": ["engine::X", "app::y"];
            "mod inner { use super::super::cache; }" in "app": ["cache"];
        }
    }

    #[test]
    fn expressions_types_and_macro_bodies_count() {
        names! {
            "fn f() -> crate::engine::Sde { g(crate::cache::new()) }" in "app": ["engine::Sde", "cache::new"];
            "macro_rules! m { () => { $crate::engine::go() } }" in "app": ["engine::go"];
            "fn f() { println!(\"{}\", crate::engine::X) }" in "app": ["engine::X"];
        }
    }

    #[test]
    fn comments_strings_and_visibility_name_nothing() {
        names! {
            "/// [`crate::engine`]\n// crate::engine::X\nconst A: &str = \"crate::engine::X\";" in "app": [""; 0];
            "pub(in crate::engine) fn f(self) { self.g() }" in "app": [""; 0];
        }
    }

    #[test]
    fn the_standard_library_is_told_apart() {
        names! {
            "use std::fs::File; fn f() { std::mem::drop(1) }" in "app": ["std::fs::File", "std::mem::drop"];
        }
    }

    #[test]
    fn code_for_tests_is_left_out() {
        names! {
            "#[cfg(test)] mod tests { use crate::engine; } use crate::key;" in "app": ["key"];
            "#[cfg(test)] use crate::engine; use crate::key;" in "app": ["key"];
            "#![cfg(test)] use crate::engine;" in "app": [""; 0];
            "#[cfg(not(test))] use crate::engine;" in "app": ["engine"];
        }
        let source = scan("#[cfg(test)] mod tests;", &["app".to_owned()]).expect("Rust");
        assert_eq!(source.test_modules, [["app", "tests"]]);
    }

    #[test]
    fn lines_are_those_of_the_source() {
        let source = scan("\n\nuse crate::{\n    key::Key,\n};", &[]).expect("Rust");
        assert_eq!(source.paths[0].line, 4);
    }
}
