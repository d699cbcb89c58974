//! Texts for people: short enough, with units.

pub use sde_table::text::{clean, count, is_unprintable, type_name};
use textwrap::{Options, WordSplitter};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped() {
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
    }
}
