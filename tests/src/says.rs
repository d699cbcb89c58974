//! What a text has to say.
//!
//! Other packages use this by `#[path]`, since nothing may depend on tests.

use std::fmt::{Debug, Display};

/// Says that a text, or an error with its causes, has this in it.
///
/// # Panics
/// If it has not.
#[track_caller]
pub fn says(text: &(impl Display + ?Sized), part: &str) {
    let text = format!("{text:#}");
    assert!(text.contains(part), "not in it: {part:?}\n{text}");
}

/// Says that one of these texts has this in it.
///
/// # Panics
/// If none has.
#[track_caller]
pub fn one_says(texts: &[impl AsRef<str> + Debug], part: &str) {
    let says = |text: &_| AsRef::<str>::as_ref(text).contains(part);
    assert!(texts.iter().any(says), "in none: {part:?}\n{texts:#?}");
}
