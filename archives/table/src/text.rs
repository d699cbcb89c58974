//! Texts for people: clean, and short enough.

/// The text with `\u{..}` in place of characters that a terminal obeys: control characters, and the
/// marks that reorder or hide the text around them.
pub fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        match is_unprintable(character) {
            true => clean.extend(character.escape_unicode()),
            false => clean.push(character),
        }
    }
    clean
}

/// Whether a terminal obeys the character, or does not show it.
pub fn is_unprintable(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// `1 entry`, `2 entries`.
pub fn count(number: usize, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    }
}

/// A Rust type without the modules of its parts.
pub fn type_name(full: &str) -> String {
    let is_name = |character: char| character.is_alphanumeric() || matches!(character, '_' | ':');
    let parts = full.split_inclusive(|character| !is_name(character));
    parts.filter_map(|part| part.rsplit("::").next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped() {
        assert_eq!(clean("a\u{1b}[2Jb\u{202e}c"), "a\\u{1b}[2Jb\\u{202e}c");
        assert_eq!(clean("Grüße, 水"), "Grüße, 水");
        assert_eq!(type_name("alloc::vec::Vec<my::Type>"), "Vec<Type>");
    }
}
