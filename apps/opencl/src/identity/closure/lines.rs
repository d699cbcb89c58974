//! What a preprocessor sees of a text: lines, and the directives that read files.

/// Lines as the preprocessor sees them: joined where one ends with a backslash, comments taken
/// out. With the number of the first line of each.
pub(super) fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut first = 1;
    let mut quote = None;
    // A mark of the byte order stands before the text, and compilers pass over it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut chars = joined(text).into_iter().peekable();
    while let Some((number, c)) = chars.next() {
        match (c, chars.peek().map(|(_, next)| *next)) {
            ('\n', _) => {
                lines.push((first, std::mem::take(&mut line)));
                first = number + 1;
                quote = None;
            }
            ('\\', Some(next)) if quote.is_some() && next != '\n' => {
                line.extend([c, next]);
                chars.next();
            }
            ('/', Some('/')) if quote.is_none() => {
                while chars.next_if(|(_, next)| *next != '\n').is_some() {}
            }
            ('/', Some('*')) if quote.is_none() => {
                chars.next();
                let mut last = ' ';
                for (_, inner) in chars.by_ref() {
                    if (last, inner) == ('*', '/') {
                        break;
                    }
                    last = inner;
                }
                line.push(' ');
            }
            _ => {
                match quote {
                    Some(open) if open == c => quote = None,
                    None if c == '"' || c == '\'' => quote = Some(c),
                    _ => {}
                }
                line.push(c);
            }
        }
    }
    lines.push((first, line));
    lines
}

/// What is left when lines that end with a backslash are joined, which comes before all else: each
/// character with the number of its line. Blanks may follow the backslash, as Clang has it.
fn joined(text: &str) -> Vec<(usize, char)> {
    const BLANKS: [char; 4] = [' ', '\t', '\u{b}', '\u{c}'];
    let mut chars = Vec::with_capacity(text.len());
    let mut number = 1;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let next_line = match c {
            '\\' => after_line_end(after.trim_start_matches(BLANKS)),
            _ => None,
        };
        rest = if let Some(next_line) = next_line {
            number += 1;
            next_line
        } else if let Some(next_line) = after_line_end(rest) {
            chars.push((number, '\n'));
            number += 1;
            next_line
        } else {
            chars.push((number, c));
            after
        };
    }
    chars
}

/// What follows, if it begins with one of the three ends of a line.
fn after_line_end(text: &str) -> Option<&str> {
    let after = text.strip_prefix("\r\n");
    after.or_else(|| text.strip_prefix(['\n', '\r']))
}

/// The line of the first trigraph by which a directive or the end of a line can be written. Whether it is
/// one depends on the compiler.
pub(super) fn trigraph(text: &str) -> Option<usize> {
    let at = ["??=", "??/"].iter().filter_map(|one| text.find(one)).min();
    at.map(|at| text[..at].split('\n').count())
}

/// What follows the `#` of a directive.
pub(super) fn directive(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let after = line.strip_prefix('#').or_else(|| line.strip_prefix("%:"));
    after.map(str::trim_start)
}

/// What a directive reads.
pub(super) enum Reads<'a> {
    /// What follows the name of the directive names a file, which is looked for as always.
    File(&'a str),
    /// A file that is looked for in a way of its own, or is not text.
    Unfollowed,
}

/// What an including directive reads; nothing if it is another one.
pub(super) fn read_by(directive: &str) -> Option<Reads<'_>> {
    let words = [
        ("include_next", false),
        ("include", true),
        ("import", true),
        ("embed", false),
    ];
    let after = |(word, is_followed)| Some((directive.strip_prefix(word)?, is_followed));
    let (after, is_followed) = words.into_iter().find_map(after)?;
    let is_word = after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    match (is_word, is_followed) {
        (true, _) => None,
        (false, true) => Some(Reads::File(after.trim())),
        (false, false) => Some(Reads::Unfollowed),
    }
}

/// The name between quotes or angle brackets, and whether it is the latter.
pub(super) fn file_name(what: &str) -> Option<(&str, bool)> {
    if let Some(rest) = what.strip_prefix('"') {
        return rest.split_once('"').map(|(name, _)| (name, false));
    }
    let rest = what.strip_prefix('<')?;
    rest.split_once('>').map(|(name, _)| (name, true))
}
