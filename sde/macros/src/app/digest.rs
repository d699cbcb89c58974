//! The digest of a function's source, as far as it can change what it computes.
//!
//! It is taken over the tokens: not over the text, which reformatting changes, and
//! not over a pretty-printed form, which a new version of a library changes.
//! Comments are no tokens; documentation is, and is left out.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// BLAKE3 of the tokens.
pub(super) fn of(tokens: TokenStream) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    walk(tokens, &mut hasher);
    *hasher.finalize().as_bytes()
}

fn walk(tokens: TokenStream, hasher: &mut blake3::Hasher) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                match tokens.peek() {
                    Some(TokenTree::Group(group)) if is_doc(&group.stream()) => {
                        tokens.next();
                    }
                    _ => put(hasher, b'p', "#"),
                };
            }
            TokenTree::Punct(punct) => {
                let mut text = punct.as_char().to_string();
                // Two signs are one operator, or two, by what they mean together:
                // `a && b` is not `a & &b`, but `a <-b` is `a < -b`.
                if punct.spacing() == Spacing::Joint
                    && let Some(TokenTree::Punct(next)) = tokens.peek()
                    && is_operator(punct.as_char(), next.as_char())
                {
                    text.push('~');
                }
                put(hasher, b'p', &text);
            }
            TokenTree::Ident(ident) => put(hasher, b'i', &ident.to_string()),
            TokenTree::Literal(literal) => put(hasher, b'l', &literal.to_string()),
            TokenTree::Group(group) => {
                let kind = match group.delimiter() {
                    Delimiter::Parenthesis => "(",
                    Delimiter::Brace => "{",
                    Delimiter::Bracket => "[",
                    Delimiter::None => "",
                };
                put(hasher, b'g', kind);
                walk(group.stream(), hasher);
                put(hasher, b'e', kind);
            }
        }
    }
}

/// One token: kind, length, text; so that no two sequences look alike.
fn put(hasher: &mut blake3::Hasher, kind: u8, text: &str) {
    hasher.update(&[kind]);
    hasher.update(&(text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}

/// Whether `#` before this bracket's content is documentation.
fn is_doc(attribute: &TokenStream) -> bool {
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

    /// What was remembered of a function is found by this for as long as there are stores.
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
