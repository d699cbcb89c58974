//! Words that can make a program read a file or the time, wherever they stand: in code, in a string, in a comment.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::cacheable::NotCacheable;

/// The effect of a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    /// It expands to the time.
    Time,
    /// It reads a file, or names one in a way of its own.
    File,
    /// It passes a text to an assembler, which reads a file if quotes in the text name one.
    Assembly,
}

const WORDS: [(&str, Does); 10] = [
    ("__DATE__", Does::Time),
    ("__TIME__", Does::Time),
    ("__TIMESTAMP__", Does::Time),
    ("__has_include", Does::File),
    ("__has_include_next", Does::File),
    ("__has_embed", Does::File),
    ("_Pragma", Does::File),
    ("asm", Does::Assembly),
    ("__asm", Does::Assembly),
    ("__asm__", Does::Assembly),
];

/// A word of C++ that no macro can put together.
const IMPORT: &str = "import";

/// The words of one program: of its options, its source and all that it includes.
#[derive(Default)]
pub(super) struct Words {
    /// For each kind, the place and the name of its first word.
    time: Option<(String, &'static str)>,
    file: Option<(String, &'static str)>,
    assembly: Option<(String, &'static str)>,
    /// Words that are part of one of [`WORDS`].
    pieces: BTreeSet<Vec<u8>>,
    /// Whether a macro may paste pieces together.
    pastes: bool,
    /// Whether a text may make an assembler read a file: it has quotes, as names of files do, or the directive itself.
    names_files: bool,
}

impl Words {
    /// Notes the words of a text whose lines are joined.
    pub(super) fn add(&mut self, at: &str, text: &[u8]) {
        self.pastes |= has(text, b"##") || has(text, b"%:%:");
        self.names_files |=
            text.contains(&b'\\') || has(text, b"R\"") || has(text, b".inc") || makes_texts(text);
        let mut rest = text;
        while let Some(begin) = rest.iter().position(|byte| is_of_word(*byte)) {
            rest = &rest[begin..];
            let (word, behind) = rest.split_at(word_length(rest));
            self.word(at, word);
            rest = behind;
        }
    }

    fn word(&mut self, at: &str, word: &[u8]) {
        for (danger, does) in WORDS {
            if word != danger.as_bytes() {
                if has(danger.as_bytes(), word) && !self.pieces.contains(word) {
                    self.pieces.insert(word.to_owned());
                }
                continue;
            }
            let first = match does {
                Does::Time => &mut self.time,
                Does::File => &mut self.file,
                Does::Assembly => &mut self.assembly,
            };
            first.get_or_insert_with(|| (at.to_owned(), danger));
        }
        if word == IMPORT.as_bytes() {
            let first = || (at.to_owned(), IMPORT);
            self.file.get_or_insert_with(first);
        }
    }

    /// Whether another build may see another time.
    pub(super) fn time(&self) -> Option<NotCacheable> {
        let pasted = || self.pasted(|does| does == Does::Time);
        let (at, word) = self.time.clone().or_else(pasted)?;
        let why = format!("has {word}, which is another from one build to the next");
        Some(NotCacheable::Reads { at, why })
    }

    /// Whether the program may read a file that is not followed.
    pub(super) fn file(&self) -> Option<NotCacheable> {
        let pasted =
            || self.pasted(|does| does == Does::File || does == Does::Assembly && self.names_files);
        let assembly = || self.assembly.clone().filter(|_| self.names_files);
        let (at, word) = self.file.clone().or_else(assembly).or_else(pasted)?;
        let why = format!("has {word}, by which it may read a file");
        Some(NotCacheable::Reads { at, why })
    }

    /// A word that macros may paste together from the pieces.
    fn pasted(&self, is_meant: impl Fn(Does) -> bool) -> Option<(String, &'static str)> {
        let meant = WORDS.into_iter().filter(|(_, does)| is_meant(*does));
        let mut words = meant.map(|(word, _)| word);
        let word = words.find(|word| self.pastes && self.is_of_pieces(word.as_bytes()))?;
        Some(("what a macro puts together".to_owned(), word))
    }

    fn is_of_pieces(&self, word: &[u8]) -> bool {
        let mut pieces = self.pieces.iter();
        word.is_empty()
            || pieces.any(|piece| {
                word.strip_prefix(&piece[..])
                    .is_some_and(|rest| self.is_of_pieces(rest))
            })
    }
}

pub(super) fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The length of the word at the start of a text.
pub(super) fn word_length(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_of_word(**byte)).count()
}

/// Whether a macro may turn its argument into a string, quotes and all: a `#` that begins no line and is no `##`.
fn makes_texts(text: &[u8]) -> bool {
    let of_line = |line: &[u8]| {
        let line = line.trim_ascii_start();
        let line = line.strip_prefix(b"#").unwrap_or(line);
        let mut marks = line.split(|byte| *byte != b'#');
        marks.any(|marks| !matches!(marks.len(), 0 | 2))
    };
    has(text, b"%:") || text.split(|byte| *byte == b'\n').any(of_line)
}

fn has(text: &[u8], what: &[u8]) -> bool {
    text.windows(what.len()).any(|part| part == what)
}

/// A text in which each line that ends with a backslash is joined with the next, as all compilers do first.
pub(super) fn joined(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'\\') {
        return Cow::Borrowed(text);
    }
    let mut joined = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, behind @ ..] = rest {
        rest = match rest {
            [b'\\', b'\n', behind @ ..] | [b'\\', b'\r', b'\n', behind @ ..] => behind,
            _ => {
                joined.push(*byte);
                behind
            }
        };
    }
    Cow::Owned(joined)
}

/// A construct at which compilers disagree about the lines of a text.
pub(super) fn unclear(text: &[u8]) -> Option<&'static str> {
    let is_late = |behind: &[u8]| {
        let blanks = behind
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t' | 0xb | 0xc));
        let blanks = blanks.count();
        blanks > 0 && matches!(behind.get(blanks), None | Some(b'\n' | b'\r'))
    };
    let mut places = text.iter().enumerate();
    places.find_map(|(at, byte)| match (byte, &text[at + 1..]) {
        (b'?', [b'?', b'=' | b'/', ..]) => Some("a trigraph"),
        (0, _) => Some("a null byte"),
        (b'\r', [b'\n', ..]) => None,
        (b'\r', _) => Some("a carriage return alone"),
        (b'\\', behind) if is_late(behind) => {
            Some("a blank between a backslash and the end of its line")
        }
        _ => None,
    })
}
