//! What a preprocessor sees of a text: lines, and the directives that read files.

/// Lines as the preprocessor sees them: joined where one ends with a backslash, comments taken
/// out. With the number of the first line of each.
pub(super) fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let (mut number, mut first) = (1, 1);
    let mut quote = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some('\n')) => {
                chars.next();
                number += 1;
            }
            ('\\', Some('\r')) => {
                chars.next();
                if chars.next_if_eq(&'\n').is_some() {
                    number += 1;
                }
            }
            ('\\', Some(_)) if quote.is_some() => {
                line.push(c);
                line.extend(chars.next());
            }
            ('/', Some('/')) if quote.is_none() => {
                while chars.next_if(|next| *next != '\n').is_some() {}
            }
            ('/', Some('*')) if quote.is_none() => {
                chars.next();
                let mut last = ' ';
                for inner in chars.by_ref() {
                    number += usize::from(inner == '\n');
                    if (last, inner) == ('*', '/') {
                        break;
                    }
                    last = inner;
                }
                line.push(' ');
            }
            ('\n', _) => {
                lines.push((first, std::mem::take(&mut line)));
                number += 1;
                first = number;
                quote = None;
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
