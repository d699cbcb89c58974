//! The places at which the trait of a helper's name can stand.
//!
//! The compiler refuses the trait in an `impl` or a trait, and beside a module or a type of its name. Where the
//! name is a generic argument or begins a path, the trait would hide another item. An attribute gets only its item,
//! so this reads the item's file.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};

use crate::digest;

/// Whether a trait can stand beside the helper of this name; `false` if the file can't be read.
pub(crate) fn stands_free(name: &Ident) -> bool {
    // Tests of this crate have no files.
    let place = proc_macro::is_available().then(|| name.span().unwrap());
    let Some((place, path)) = place.and_then(|place| Some((place, place.local_file()?))) else {
        return false;
    };
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let is_module = |part: &std::ffi::OsStr| name == &part.to_string_lossy();
    let folder = path.parent().and_then(|folder| folder.file_name());
    let named_so = path.file_stem().is_some_and(is_module)
        || path.ends_with("mod.rs") && folder.is_some_and(is_module);
    let name = name.to_string();
    let tokens = marked(&text, place.line(), place.column(), &name);
    let is_free =
        |tokens: TokenStream| !hides(tokens.clone(), &name) && is_free(tokens, &name) == Some(true);
    !named_so && !OF_THE_LANGUAGE.contains(&&*name) && tokens.is_some_and(is_free)
}

/// Primitive types, and crates that the expansions of other macros name.
const OF_THE_LANGUAGE: [&str; 22] = [
    "alloc", "bool", "char", "core", "f16", "f32", "f64", "f128", "i8", "i16", "i32", "i64",
    "i128", "isize", "std", "str", "u8", "u16", "u32", "u64", "u128", "usize",
];

/// Whether a trait of this name would hide another item: in `Row<LIMIT>`, and in `name::of_a_crate`.
fn hides(tokens: TokenStream, name: &str) -> bool {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let sign = |at| digest::sign(&tokens, at);
    let is_unmatched = |bracket: char, places: &mut dyn Iterator<Item = usize>| {
        let mut depth = 0;
        for at in places.take_while(|at| sign(*at) != ';') {
            let is_arrow = sign(at) == '>' && matches!(sign(at.wrapping_sub(1)), '-' | '=');
            match sign(at) {
                _ if is_arrow => {}
                found if found == bracket && depth == 0 => return true,
                found if found == bracket => depth -= 1,
                '<' | '>' => depth += 1,
                _ => {}
            }
        }
        false
    };
    tokens.iter().enumerate().any(|(i, token)| match token {
        TokenTree::Group(group) => hides(group.stream(), name),
        TokenTree::Ident(word) if word == name => {
            let is_path = (sign(i + 1), sign(i + 2)) == (':', ':') && sign(i + 3) != '<';
            let is_in_list = matches!(sign(i.wrapping_sub(1)), '<' | ',' | '=')
                && matches!(sign(i + 1), '>' | ',');
            is_path
                || is_in_list
                    && is_unmatched('<', &mut (0..i).rev())
                    && is_unmatched('>', &mut (i + 1..tokens.len()))
        }
        _ => false,
    })
}

/// Put before the helper's name.
const MARK: &str = "__sde_mark";

/// The tokens of a file with a mark before the name at this line and column.
fn marked(text: &str, line: usize, column: usize, name: &str) -> Option<TokenStream> {
    let lines = text.split_inclusive('\n').take(line.checked_sub(1)?);
    let start: usize = lines.map(str::len).sum();
    let characters = text[start..].char_indices();
    let at = start + characters.map(|(at, _)| at).nth(column.checked_sub(1)?)?;
    let (before, after) = text.split_at(at);
    after
        .starts_with(name)
        .then(|| format!("{before} {MARK} {after}"))?
        .parse()
        .ok()
}

/// Whether the mark is only within modules and functions, and beside no module or type of this name: otherwise a
/// trait is refused. `None` if the mark is not among the tokens.
fn is_free(tokens: TokenStream, name: &str) -> Option<bool> {
    let mut found = None;
    let (mut is_alone, mut header) = (true, Vec::<String>::new());
    for token in tokens {
        let last = header.last().map_or("", String::as_str);
        let text = match &token {
            TokenTree::Group(group) => {
                let is_block = group.delimiter() == Delimiter::Brace;
                let bars = ["impl", "trait", "!", name];
                let is_plain = is_block && !header.iter().any(|word| bars.contains(&word.as_str()));
                found = found.or_else(|| Some(is_free(group.stream(), name)? && is_plain));
                let is_attribute = header.ends_with(&["#".to_owned(), "!".to_owned()]);
                let ends = is_block || last == "#" || is_attribute;
                if ends { ";" } else { "()" }.to_owned()
            }
            other => other.to_string(),
        };
        let kinds = ["mod", "struct", "enum", "union", "trait", "type"];
        is_alone &= text != name || !kinds.contains(&last);
        if text == MARK {
            found = Some(true);
        }
        header.push(text);
        if header.ends_with(&[";".to_owned()]) {
            header.clear();
        }
    }
    Some(found? && is_alone)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_trait_would_hide_generic_arguments_and_crates() {
        let hides = |text: &str| super::hides(text.parse().unwrap(), "N");
        for hidden in [
            "fn f(m: M<N>) {}",
            "fn f(x: f64) -> M<Box<dyn Fn(u8) -> u8>, N> {}",
            "fn f() { g::<N, { 3 }, Vec<Vec<u8>>>() }",
            "struct M<const K: usize = N>;",
            "x!(N::PI)",
            "use N::{a, b};",
        ] {
            assert!(hides(hidden), "{hidden}");
        }
        for other in [
            "const N: usize = 3; fn f() -> [f64; N] { N::<u8>() }",
            "fn f(x: f64) -> f64 { if x < N { a } else if N > x { m::N } else { M::<{ N }> } }",
            "fn f() { [x < 1, N, y]; (Vec::<u8>::new(), N, Vec::<u8>::new()) }",
            "fn f() { (a < b); g(N, |x| -> u8 { x }) }",
        ] {
            assert!(!hides(other), "{other}");
        }
    }

    /// A trait in an `impl` is refused, and beside a module of its name.
    #[test]
    fn what_stands_in_a_module_or_a_function_stands_free() {
        let stands_free = |text: &str| {
            let at = text.find("fn step").unwrap() + 3;
            let line = text[..at].matches('\n').count() + 1;
            let column = text[..at].chars().rev().take_while(|c| *c != '\n').count() + 1;
            let tokens = super::marked(text, line, column, "step").unwrap();
            super::is_free(tokens, "step").unwrap()
        };
        for free in [
            "#![allow(x)]\n//! é {\nfn step() {}",
            "use a::step as b; mod m { impl A { fn f() { } }\n#[x] /* é { */ pub fn step() {} }",
            "fn f(c: char) -> u8 { '{'; \"{\"; fn step() {} step() }",
            "x! {} mod a { fn step() {} } mod b { mod step {} }",
        ] {
            assert!(stands_free(free), "{free}");
        }
        for other in [
            "impl A<[f64; 3]> { fn step() {} }",
            "unsafe impl<const N: usize> T for [f64; N] { fn step() {} }",
            "pub trait T { fn step() {} }",
            "macro_rules! m { () => { fn step() {} } }",
            "m! { fn step() {} }",
            "m!(fn step() {});",
            "mod step { fn step() {} }",
            "fn step() {} mod step;",
            "struct step {} fn step() {}",
        ] {
            assert!(!stands_free(other), "{other}");
        }
        assert!(super::marked("fn a() {}", 1, 4, "step").is_none());
        assert!(super::marked("fn a() {}", 7, 4, "step").is_none());
    }
}
