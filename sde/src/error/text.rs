//! Text for messages: bounded, and without control characters.

/// Names and paths in messages are cut here.
const LONGEST: usize = 120;

/// The text with control characters escaped, cut to a readable length.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(LONGEST + 4));
    for (count, c) in text.chars().enumerate() {
        if count == LONGEST {
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

/// A list of names, or the word for there being none.
pub(crate) fn join_names(names: &[String]) -> String {
    const MANY: usize = 20;
    if names.is_empty() {
        return "none".to_owned();
    }
    let mut out = names
        .iter()
        .take(MANY)
        .map(|name| printable(name))
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > MANY {
        out.push_str(&format!(" and {} more", names.len() - MANY));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_long_text_is_cut() {
        assert_eq!(printable("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
        assert_eq!(printable(&"x".repeat(500)).chars().count(), LONGEST + 1);
    }

    #[test]
    fn no_names_are_called_none() {
        assert_eq!(join_names(&[]), "none");
        assert_eq!(join_names(&["a".into(), "b".into()]), "a, b");
    }
}
