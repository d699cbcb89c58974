//! The digest of the parts of a function's source that can change its result, and the words in it.
//!
//! It covers the tokens, since reformatting changes the text, and a new version of a library
//! changes a pretty-printed form. Comments are no tokens; documentation is left out.
//!
//! The words are all possible names: identifiers, and words in string literals, since
//! `"{scale}"` names a constant.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// BLAKE3 of the tokens.
pub(crate) fn of(tokens: TokenStream) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    walk(tokens, &mut |kind, text| put(&mut hasher, kind, text));
    *hasher.finalize().as_bytes()
}

/// Each word once, sorted, separated by blanks.
pub(crate) fn words(tokens: TokenStream) -> String {
    let mut words = BTreeSet::new();
    walk(tokens, &mut |_, text| {
        let parts = text.split(|c: char| !(c == '_' || c.is_alphanumeric()));
        words.extend(parts.map(str::to_owned));
    });
    words.remove("");
    words.into_iter().collect::<Vec<_>>().join(" ")
}

/// Gives the kind and the text of each token.
pub(crate) fn walk(tokens: TokenStream, put: &mut dyn FnMut(u8, &str)) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                match tokens.peek() {
                    Some(TokenTree::Group(group)) if is_doc(&group.stream()) => {
                        tokens.next();
                    }
                    _ => put(b'p', "#"),
                };
            }
            TokenTree::Punct(punct) => {
                let mut text = punct.as_char().to_string();
                // Two signs may be one operator or two:
                // `a && b` is not `a & &b`, but `a <-b` is `a < -b`.
                if punct.spacing() == Spacing::Joint
                    && let Some(TokenTree::Punct(next)) = tokens.peek()
                    && is_operator(punct.as_char(), next.as_char())
                {
                    text.push('~');
                }
                put(b'p', &text);
            }
            TokenTree::Ident(ident) => put(b'i', &ident.to_string()),
            TokenTree::Literal(literal) => put(b'l', &literal.to_string()),
            TokenTree::Group(group) => {
                let kind = match group.delimiter() {
                    Delimiter::Parenthesis => "(",
                    Delimiter::Brace => "{",
                    Delimiter::Bracket => "[",
                    Delimiter::None => "",
                };
                put(b'g', kind);
                walk(group.stream(), put);
                put(b'e', kind);
            }
        }
    }
}

/// The sign at this index; a blank if there is none.
pub(crate) fn sign(tokens: &[TokenTree], at: usize) -> char {
    match tokens.get(at) {
        Some(TokenTree::Punct(punct)) => punct.as_char(),
        _ => ' ',
    }
}

/// One token as kind, length, text, so that no two sequences look alike.
fn put(hasher: &mut blake3::Hasher, kind: u8, text: &str) {
    hasher.update(&[kind]);
    hasher.update(&(text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}

/// Whether `#` before this bracket's content is documentation.
pub(crate) fn is_doc(attribute: &TokenStream) -> bool {
    let first = attribute.clone().into_iter().next();
    matches!(first, Some(TokenTree::Ident(ident)) if ident == "doc")
}

/// Whether the two signs together are, or begin, an operator of their own.
fn is_operator(first: char, second: char) -> bool {
    matches!(
        (first, second),
        ('&', '&')
            | ('|', '|')
            | ('<', '<')
            | ('>', '>')
            | ('-', '>')
            | (':', ':')
            | ('.', '.')
            | ('=', '>')
            | (
                '=' | '!' | '<' | '>' | '+' | '-' | '*' | '/' | '%' | '^' | '&' | '|' | '.',
                '='
            )
    ) || first == '\''
}

#[cfg(test)]
mod tests {
    use super::of;

    fn digest(source: &str) -> [u8; 32] {
        of(source.parse().unwrap())
    }

    #[test]
    fn format_comments_and_documentation_do_not_count() {
        let plain = digest("fn f(x: f64) -> f64 { if x < -1.0 { g(x, 2) } else { x } }");
        let other = digest(
            "/// Says something.\n#[doc = \"and more\"]\nfn f( x : f64 )->f64{\n // why\n if x <-1.0 {g (x,2)} else {x}\n}",
        );
        assert_eq!(plain, other);
    }

    /// Results in stores are found by this digest, so it must never change.
    #[test]
    fn a_digest_is_what_it_was() {
        let source = "fn f(x: f64, #[allow(unused)] name: &str) -> Result<f64, E> { \
            /// Documentation.\n let y = [x, -1.5e-3]; g(&y, 'a', \"text\").map(|v| *v + 2.0) }";
        let hex: String = digest(source)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            hex,
            "431f4e497d2afe485ecffb55b363e1a96a8e91492eb20dae3f5e19393624abf0"
        );
    }

    #[test]
    fn words_are_names_wherever_they_stand() {
        let source = "/// of twice\nfn f(x: f64) -> String { r#try(x.cube()); m!(a::scale); format!(\"{LIMIT} in_text\") }";
        let words = super::words(source.parse().unwrap());
        let expected = "LIMIT String a cube f f64 fn format in_text m r scale try x";
        assert_eq!(words, expected);
    }

    #[test]
    fn every_edit_counts() {
        let sources = [
            "fn f(x: f64) -> f64 { x + 1.0 }",
            "fn f(x: f64) -> f64 { x - 1.0 }",
            "fn f(x: f64) -> f64 { x + 1.00 }",
            "fn f(x: f32) -> f64 { x + 1.0 }",
            "fn f(y: f64) -> f64 { y + 1.0 }",
            "fn f<T>(x: f64) -> f64 { x + 1.0 }",
            "fn f(x: f64) -> f64 { (x + 1.0) }",
            "fn f(x: f64) -> f64 { { x } + 1.0 }",
            "#[inline] fn f(x: f64) -> f64 { x + 1.0 }",
            "fn f(a: bool, b: bool) -> bool { a && b }",
            "fn f(a: bool, b: bool) -> bool { a & &b }",
        ];
        for (i, a) in sources.iter().enumerate() {
            for b in &sources[i + 1..] {
                assert_ne!(digest(a), digest(b), "{a} / {b}");
            }
        }
    }
}
