//! How drivers part a text of options that has quotes or backslashes.
//!
//! PoCL 3.1 takes quotes between `"`, and a backslash and a `'` for what they are. Mesa's Clover reads as a shell does.
//! Its Rusticl parts at every `"`, and elsewhere at blanks that are spaces. Others part at all blanks.

use super::{is_blank, joined};

/// The options that each of these sees, that of PoCL first. Nothing if one of them sees no options, or if there are blanks
/// that are no spaces.
pub(super) fn all(text: &str) -> Option<Vec<Vec<String>>> {
    if text.contains(|c: char| is_blank(c) && c != ' ') {
        return None;
    }
    let blanks = text.split(' ').filter(|word| !word.is_empty());
    let all = [
        words(text)?,
        by_shell(text)?,
        at_each_quote(text),
        blanks.map(str::to_owned).collect(),
    ];
    all.into_iter().map(|words| joined(words).ok()).collect()
}

/// The options for a driver that parts them at the blanks outside of quotes.
pub(super) fn by_quotes(text: &str) -> Option<Vec<String>> {
    joined(words(text)?).ok()
}

/// The words of a text: blanks between `"` do not part them, and the quotes are taken away. Nothing if one is not closed.
pub(super) fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    for c in text.chars() {
        match c {
            '"' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            c if is_blank(c) && !is_quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    (!is_quoted).then_some(words)
}

/// The same with `'` too, and with backslashes that take away the meaning of what follows, but for those between `'`.
fn by_shell(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => word.get_or_insert_default().push(chars.next()?),
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if is_blank(c) => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// Each `"` ends a word; what is between two of them is one.
fn at_each_quote(text: &str) -> Vec<String> {
    let parts = text.split('"').enumerate();
    let words = parts.flat_map(|(number, part)| match number % 2 {
        0 => part.split(' ').collect(),
        _ => vec![part],
    });
    words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}
