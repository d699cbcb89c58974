//! A test that doesn't run is not a test.
//!
//! A test may be ignored because it takes long, and `./test --long` runs those. It may be part of another one, which
//! starts it in a process of its own. Any other reason hides a failure for ever: what is known to fail says with
//! `should_panic(expected = ..)` how, and fails once it is mended.

use super::none;
use super::repository::text_files;

const ALLOWED: [&str; 2] = ["long: ", "part of "];

fn breaches(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate();
    let wrong = lines.filter(|(_, line)| {
        let line = line.trim_start();
        let reason = line.strip_prefix("#[ignore = \"").unwrap_or_default();
        line.starts_with("#[ignore") && !ALLOWED.iter().any(|why| reason.starts_with(why))
    });
    wrong
        .map(|(index, _)| {
            format!(
                "{path}:{} ignores a test; only for these reasons: {ALLOWED:?}",
                index + 1
            )
        })
        .collect()
}

#[test]
fn only_long_tests_are_ignored() {
    let sources = text_files().iter().filter(|file| file.is(".rs"));
    none(sources.flat_map(|file| breaches(&file.path, &file.text)));
}

#[test]
fn an_ignored_test_is_noticed() {
    none(breaches("a.rs", "    #[ignore = \"long: a soak\"]\n"));
    assert_eq!(breaches("a.rs", "#[test]\n    #[ignore]\n").len(), 1);
    assert_eq!(breaches("a.rs", "#[ignore = \"flaky\"]\n").len(), 1);
}
