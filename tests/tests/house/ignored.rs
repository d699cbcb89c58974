//! A test that doesn't run is not a test.
//!
//! The one reason to ignore one is that it takes long; `./test --long` runs those. Any other reason
//! hides a failure for ever.

use super::none;
use super::repository::text_files;

const ALLOWED: &str = "#[ignore = \"long: ";

fn breaches(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate();
    let wrong = lines.filter(|(_, line)| {
        let line = line.trim_start();
        line.starts_with("#[ignore") && !line.starts_with(ALLOWED)
    });
    wrong
        .map(|(index, _)| {
            format!(
                "{path}:{} ignores a test; only {ALLOWED}...\"] may",
                index + 1
            )
        })
        .collect()
}

#[test]
fn only_long_tests_are_ignored() {
    let sources = text_files().iter().filter(|file| file.is(".rs"));
    none(
        &sources
            .flat_map(|file| breaches(&file.path, &file.text))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn an_ignored_test_is_noticed() {
    assert_eq!(
        breaches("a.rs", "    #[ignore = \"long: a soak\"]\n"),
        Vec::<String>::new()
    );
    assert_eq!(breaches("a.rs", "#[test]\n    #[ignore]\n").len(), 1);
    assert_eq!(breaches("a.rs", "#[ignore = \"flaky\"]\n").len(), 1);
}
