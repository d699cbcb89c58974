//! Texts for people: clean, short enough, with units.

use textwrap::{Options, WordSplitter};

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

/// As [`clean`] for JSON text, in JSON's own escapes.
pub fn escape_json(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        match is_unprintable(character) {
            true => clean.push_str(&format!("\\u{:04x}", u32::from(character))),
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

/// The text in lines of at most `columns`, broken at spaces where possible; lines after the
/// first are indented.
pub fn wrap(text: &str, columns: usize, indent: usize) -> Vec<String> {
    let indent = " ".repeat(if indent + 10 > columns { 0 } else { indent });
    let options = Options::new(columns).subsequent_indent(&indent);
    let options = options.word_splitter(WordSplitter::NoHyphenation);
    let lines = textwrap::wrap(text, options).into_iter();
    lines.map(|line| line.into_owned()).collect()
}

/// `1.5 MiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut size = bytes as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1023.95 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

/// `1.5 s`.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.1} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7200.0 => format!("{:.1} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} d", s / 86_400.0),
    }
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
        assert_eq!(escape_json("\u{9b}"), "\\u009b");
    }

    #[test]
    fn lines_break_at_spaces_and_lose_nothing() {
        let lines = wrap("one two three four five", 14, 2);
        assert_eq!(lines, ["one two three", "  four five"]);
        assert_eq!(wrap("abcdefghij", 4, 2), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("", 4, 2), [""]);
    }

    #[test]
    fn units() {
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size((1 << 20) - 1), "1.0 MiB");
        assert_eq!(size(u64::MAX), "16384.0 PiB");
        assert_eq!(duration(0.0015), "1.5 ms");
        assert_eq!(duration(90_000.0), "25.0 h");
        assert_eq!(type_name("alloc::vec::Vec<my::Type>"), "Vec<Type>");
    }
}
