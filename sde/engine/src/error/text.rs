//! Text for messages: bounded, and without control characters.

use std::any::Any;

use crate::sync::BROKEN;

/// The longest name or path in a message.
const LONGEST: usize = 120;

/// The longest text from another rank, which contains names, paths and causes.
const LONGEST_TOLD: usize = 4000;

/// The text with control characters escaped, cut to a readable length.
pub(crate) fn printable(text: &str) -> String {
    escaped(text, LONGEST)
}

/// As [`printable`], for a whole message.
pub(crate) fn told(text: &str) -> String {
    escaped(text, LONGEST_TOLD)
}

fn escaped(text: &str, longest: usize) -> String {
    let mut out = String::with_capacity(text.len().min(longest + 4));
    for (count, c) in text.chars().enumerate() {
        if count == longest {
            out.push('…');
            break;
        }
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Implements `Debug` by `said`, with all causes, since `main` prints its error with `Debug`.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_as_said {
    ($($error:ty),+) => {$(
        impl ::std::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(&$crate::__private::said(self))
            }
        }
    )+};
}
pub(crate) use debug_as_said;

/// The whole chain of an error's messages, each once.
#[must_use]
pub fn said(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let text = source.to_string();
        if !said.contains(&text) {
            said.push_str(": ");
            said.push_str(&text);
        }
        next = source.source();
    }
    said
}

/// The names as a list, or "none".
pub(crate) fn join_names<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> String {
    const MANY: usize = 20;
    let names = names.into_iter().map(|name| printable(name.as_ref()));
    let names: Vec<_> = names.collect();
    match names.len() {
        0 => "none".to_owned(),
        1..=MANY => names.join(", "),
        all => format!("{} and {} more", names[..MANY].join(", "), all - MANY),
    }
}

/// What to write in place of an unknown name: those that may be meant, else all that are known.
pub(crate) fn advise(name: &str, known: &[String]) -> String {
    match close_names(name, known) {
        close if close.is_empty() => format!("it has: {}", join_names(known)),
        close => format!("did you mean: {}", join_names(close)),
    }
}

/// The names that may be meant by this one: similar in spelling or capitals, a part of it, or a longer name.
fn close_names<'n>(name: &str, names: &'n [String]) -> Vec<&'n str> {
    // No one types a longer name.
    if name.is_empty() || name.len() > LONGEST {
        return Vec::new();
    }
    let wanted = name.to_lowercase();
    let is_close = |other: &&str| {
        let other = other.to_lowercase();
        let (short, long) = match other.len() < wanted.len() {
            true => (&other, &wanted),
            false => (&wanted, &other),
        };
        // A letter or two are in many names.
        (short.len() > 2 && long.contains(short.as_str()))
            || edits(&wanted, &other) <= wanted.chars().count() / 3
    };
    let mut close: Vec<_> = names.iter().map(String::as_str).filter(is_close).collect();
    close.sort_unstable();
    close
}

/// The edit distance: the number of letters to insert, remove or change.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// The text of a panic, if it has one.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic_text(panic);
    let is_ours = text.is_some_and(|text| text.contains(BROKEN));
    debug_assert!(!is_ours, "{}", text.unwrap_or_default());
    printable(text.unwrap_or("with something that is no text"))
}

/// The text of a panic as it was written, if it has one.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> Option<&str> {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_long_text_is_cut() {
        assert_eq!(printable("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
        assert_eq!(printable(&"x".repeat(500)).chars().count(), LONGEST + 1);
        assert_eq!(told(&"x".repeat(500)).len(), 500);
        assert_eq!(told(&"x".repeat(5000)).chars().count(), LONGEST_TOLD + 1);
    }

    #[test]
    fn close_names_are_misspelt_or_parts() {
        let names = ["square", "guide.Total", "Rhf", "mean"].map(str::to_owned);
        let close = |name| close_names(name, &names);
        assert_eq!(close("sqaure"), ["square"]);
        assert_eq!(close("total"), ["guide.Total"]);
        assert_eq!(close("RHF"), ["Rhf"]);
        assert!(close("orbitals").is_empty() && close("").is_empty());
        assert_eq!(edits("kitten", "sitting"), 3);
    }

    #[test]
    fn no_names_are_called_none() {
        assert_eq!(join_names::<String>([]), "none");
        assert_eq!(join_names(["a", "b"]), "a, b");
    }
}
