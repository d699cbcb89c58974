//! What a preprocessor sees of a text: lines, and the directives that read files.

/// Calls a function with each line that may matter as the preprocessor sees it, with the number of its first line: joined where
/// one ends with a backslash, comments taken out. Those that are no directive and have neither `__` nor `.i` in them are left out.
/// And with what it has that compilers read in different ways, if it matters where a comment or a line ends.
///
/// It goes by bytes, and keeps one line at a time: headers have megabytes.
///
/// # Errors
/// What the function gives.
pub(super) fn each_line<E>(
    text: &str,
    mut call: impl FnMut(usize, &str, Option<&'static str>) -> Result<(), E>,
) -> Result<(), E> {
    // A mark of the byte order stands before the text, and compilers pass over it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut cursor = Cursor {
        bytes: text.as_bytes(),
        at: 0,
        number: 1,
        doubt: None,
    };
    let mut line = Vec::new();
    loop {
        let first = cursor.number;
        line.clear();
        let is_end = cursor.line(&mut line);
        let doubt = cursor.doubt.take();
        if doubt.is_some() || may_matter(&line) {
            // It is a text without some of its bytes, all of them characters.
            call(first, &String::from_utf8_lossy(&line), doubt)?;
        }
        if is_end {
            return Ok(());
        }
    }
}

fn may_matter(line: &[u8]) -> bool {
    let first = line
        .iter()
        .find(|byte| !byte.is_ascii_whitespace() && **byte != 0xb);
    matches!(first, Some(b'#' | b'%')) || line.windows(2).any(|two| two == b"__" || two == b".i")
}

/// Whether a line has a directive of an assembler that reads a file.
pub(super) fn reads_by_assembly(line: &str) -> bool {
    let names = |word: &str| {
        let mut places = line.match_indices(word);
        places.any(|(at, _)| {
            !line[at + word.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
        })
    };
    names(".incbin") || names(".include")
}

/// A place in a text, of which lines that end with a backslash are joined, which comes before all else. Blanks may
/// follow the backslash, as Clang has it.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    number: usize,
    /// What the line has that compilers read in different ways.
    doubt: Option<&'static str>,
}

impl Cursor<'_> {
    /// Appends the rest of a line without its comments. Gives whether it is the last.
    fn line(&mut self, line: &mut Vec<u8>) -> bool {
        let mut quote = None;
        while let Some(byte) = self.next() {
            match (byte, quote) {
                (b'\n', _) => return false,
                (b'\\', Some(_)) => {
                    line.push(byte);
                    if self.peek() != Some(b'\n') {
                        line.extend(self.next());
                    }
                }
                (b'/', None) if self.peek() == Some(b'/') => {
                    while self.peek().is_some_and(|byte| byte != b'\n') {
                        self.next();
                    }
                }
                (b'/', None) if self.peek() == Some(b'*') => {
                    self.next();
                    let begun = self.number;
                    self.comment();
                    // To some the text of `#error` is no text of theirs, and the comment ends with the line.
                    if self.number > begun && is_message(line) {
                        self.doubt = Some("a comment that begins in a message");
                    }
                    line.push(b' ');
                }
                _ => {
                    match quote {
                        Some(open) if open == byte => quote = None,
                        None if matches!(byte, b'"' | b'\'') => {
                            self.doubt = self.doubt.or_else(|| of_cpp(line, byte));
                            quote = Some(byte);
                        }
                        _ => {}
                    }
                    line.push(byte);
                }
            }
        }
        true
    }

    /// Goes on behind a comment.
    fn comment(&mut self) {
        let mut last = 0;
        while let Some(byte) = self.next() {
            if (last, byte) == (b'*', b'/') {
                return;
            }
            last = byte;
        }
    }

    /// The next byte, and the place after it. Each of the three ends of a line is one `\n`.
    fn next(&mut self) -> Option<u8> {
        self.join();
        let byte = *self.bytes.get(self.at)?;
        match line_end(&self.bytes[self.at..]) {
            0 => {
                self.at += 1;
                Some(byte)
            }
            length => {
                self.at += length;
                self.number += 1;
                Some(b'\n')
            }
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.join();
        let byte = *self.bytes.get(self.at)?;
        Some(if byte == b'\r' { b'\n' } else { byte })
    }

    /// Goes to the next line if this one ends here with a backslash.
    fn join(&mut self) {
        while self.bytes.get(self.at) == Some(&b'\\') {
            let rest = &self.bytes[self.at + 1..];
            let blanks = rest
                .iter()
                .take_while(|byte| matches!(byte, b' ' | b'\t' | 0xb | 0xc));
            let blanks = blanks.count();
            match line_end(&rest[blanks..]) {
                0 => return,
                length => {
                    self.at += 1 + blanks + length;
                    self.number += 1;
                }
            }
        }
    }
}

/// Whether it is a directive of which what follows is for people.
fn is_message(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    directive(&line).is_some_and(|rest| rest.starts_with("error") || rest.starts_with("warning"))
}

/// How long the end of a line is that these bytes begin with: 0 if they begin with none.
fn line_end(bytes: &[u8]) -> usize {
    match bytes {
        [b'\r', b'\n', ..] => 2,
        [b'\r' | b'\n', ..] => 1,
        _ => 0,
    }
}

/// What C++ reads in another way than C, where a quote opens behind these bytes: raw strings, which go over lines, and
/// marks between digits.
fn of_cpp(line: &[u8], quote: u8) -> Option<&'static str> {
    let of_a_word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    let length = line.iter().rev().take_while(of_a_word).count();
    let word = &line[line.len() - length..];
    match (quote, word) {
        (b'"', [.., b'R']) if word.len() <= 3 => Some("a raw string"),
        (b'\'', [b'0'..=b'9', ..]) => Some("a mark between digits"),
        _ => None,
    }
}

/// The line of the first thing by which a directive or the end of a line can be written for some compilers and not
/// for others, and what it is.
pub(super) fn ambiguous(text: &str) -> Option<(usize, &'static str)> {
    let all = [
        ("??=", "a trigraph"),
        ("??/", "a trigraph"),
        ("\0", "a null byte"),
        ("\n\r", "a line feed before a carriage return"),
    ];
    let first = |(one, what): &(&str, &'static str)| {
        // The two ends of lines in a text that was put together are read as they are by all.
        let mut places = text.match_indices(one);
        let (at, _) = places.find(|(at, _)| !text[*at..].starts_with("\n\r\n"))?;
        Some((at, *what))
    };
    let (at, what) = all.iter().filter_map(first).min()?;
    Some((text[..at].split('\n').count(), what))
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

/// Whether what follows `#include` is a macro's to say.
pub(super) fn is_computed(what: &str) -> bool {
    what.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The name between quotes or angle brackets, and whether it is the latter. Nothing for one with a backslash, or with what was no text:
/// compilers look for another file than would be looked for here.
pub(super) fn file_name(what: &str) -> Option<(&str, bool)> {
    let (rest, close) = match what.strip_prefix('"') {
        Some(rest) => (rest, '"'),
        None => (what.strip_prefix('<')?, '>'),
    };
    let (name, _) = rest.split_once(close)?;
    let is_plain = !name.contains(['\\', '\u{fffd}']);
    is_plain.then_some((name, close == '>'))
}
