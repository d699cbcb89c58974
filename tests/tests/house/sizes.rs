//! No file grows without notice.
//!
//! We aim at 300 lines and look again at 500: a file that long has mostly taken on a second job. One
//! that has to be longer is listed here with its reason. Data belongs in fixtures, not in sources.

use super::none;
use super::repository::text_files;

const LIMIT: usize = 500;

/// Files that may be longer, each with its reason.
const LONG: &[(&str, &str)] = &[];

fn breaches<'a>(
    files: impl Iterator<Item = (&'a str, usize)>,
    long: &[(&str, &str)],
) -> Vec<String> {
    let mut found = Vec::new();
    let mut still_long = Vec::new();
    for (path, lines) in files.filter(|(_, lines)| *lines > LIMIT) {
        if long.iter().any(|(listed, _)| *listed == path) {
            still_long.push(path);
        } else {
            found.push(format!("{path} has {lines} lines, {LIMIT} are the limit: split it, or list it with a reason"));
        }
    }
    let no_longer = long
        .iter()
        .filter(|(listed, _)| !still_long.contains(listed));
    found.extend(
        no_longer.map(|(path, _)| format!("{path} is not long any more: take it out of LONG")),
    );
    found
}

#[test]
fn sources_stay_short() {
    let sources = text_files().iter().filter(|file| file.is(".rs"));
    none(breaches(
        sources.map(|file| (file.path.as_str(), file.text.lines().count())),
        LONG,
    ));
}

#[test]
fn a_long_file_is_noticed_unless_listed() {
    let files = || [("a.rs", LIMIT), ("b.rs", LIMIT + 1)].into_iter();
    assert_eq!(breaches(files(), &[]).len(), 1);
    none(breaches(files(), &[("b.rs", "made up")]));
    assert_eq!(
        breaches(files(), &[("b.rs", "made up"), ("a.rs", "made up")]).len(),
        1
    );
}
