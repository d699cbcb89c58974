//! Texts for people: clean, short enough, with units.

use std::time::Duration;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The text with `\u{..}` in place of what a terminal would obey: control characters, and the
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

/// The same for JSON text, in JSON's own escapes.
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

/// Whether a terminal obeys it, or shows nothing or something else in its place.
pub fn is_unprintable(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// How many columns a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The text, if it takes no more columns than that; else as much as fits, and `…`.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut left = columns.saturating_sub(1);
    let mut cut = String::new();
    for character in text.chars() {
        let wide = character.width().unwrap_or(0);
        if wide > left {
            break;
        }
        left -= wide;
        cut.push(character);
    }
    if columns > 0 {
        cut.push('…');
    }
    cut
}

/// The text in lines of so many columns, broken at spaces where there are any; those after the
/// first are indented.
pub fn wrap(text: &str, columns: usize, indent: usize) -> Vec<String> {
    let indent = if indent + 10 > columns { 0 } else { indent };
    let mut lines = Vec::new();
    let mut rest = text;
    // An empty text is an empty line.
    while lines.is_empty() || !rest.is_empty() {
        let margin = if lines.is_empty() { 0 } else { indent };
        let room = columns.saturating_sub(margin).max(1);
        let (line, after) = split(rest, room);
        lines.push(format!("{}{line}", " ".repeat(margin)));
        rest = after;
    }
    lines
}

/// As much as fits, up to a space if there is one in the second half; and the rest.
fn split(text: &str, columns: usize) -> (&str, &str) {
    let mut taken = 0;
    let mut space = None;
    for (at, character) in text.char_indices() {
        let wide = character.width().unwrap_or(0);
        if taken + wide > columns && at > 0 {
            let end = space.filter(|space| *space > at / 2).unwrap_or(at);
            return (&text[..end], text[end..].trim_start());
        }
        if character == ' ' {
            space = Some(at);
        }
        taken += wide;
    }
    (text, "")
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
pub fn duration(took: Duration) -> String {
    let seconds = took.as_secs_f64();
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
    let mut short = String::new();
    let mut part = String::new();
    let mut characters = full.chars().peekable();
    while let Some(character) = characters.next() {
        if character.is_alphanumeric() || character == '_' {
            part.push(character);
        } else if character == ':' && characters.peek() == Some(&':') {
            characters.next();
            part.clear();
        } else {
            short.push_str(&part);
            part.clear();
            short.push(character);
        }
    }
    short + &part
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
    fn a_cut_text_fits() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdef", 5), "abcd…");
        assert_eq!(cut("水水水", 4), "水…");
        assert_eq!(cut("abc", 0), "");
    }

    #[test]
    fn lines_break_at_spaces_and_lose_nothing() {
        let lines = wrap("one two three four five", 14, 2);
        assert_eq!(lines, ["one two three", "  four five"]);
        assert_eq!(wrap("abcdefghij", 4, 0), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("", 4, 2), [""]);
    }

    #[test]
    fn units() {
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(1024), "1.0 KiB");
        assert_eq!(size(1 << 20), "1.0 MiB");
        assert_eq!(size((1 << 20) - 1), "1.0 MiB");
        assert_eq!(size(u64::MAX), "16384.0 PiB");
        assert_eq!(duration(Duration::from_micros(1500)), "1.5 ms");
        assert_eq!(duration(Duration::from_secs(90_000)), "25.0 h");
        assert_eq!(type_name("alloc::vec::Vec<my::Type>"), "Vec<Type>");
    }
}
