//! The house rules that a program can check.
//!
//! A rule that only a reviewer knows is broken within a month. Each module here states one rule,
//! applies it to the repository, and proves on made-up input that it would notice a breach. A
//! failure names the file and says what to do.

mod arrows;
mod circles;
mod dependencies;
mod documents;
mod ignored;
mod layer_lists;
mod layers;
mod licences;
mod links;
mod lints;
mod markdown;
mod metadata;
mod msrv;
mod paths;
mod repository;
mod sizes;
mod wording;

/// Fails with one line for each breach.
#[track_caller]
fn none<T: AsRef<str>>(breaches: impl IntoIterator<Item = T>) {
    let lines: Vec<_> = breaches.into_iter().collect();
    let breaches: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
    assert!(
        breaches.is_empty(),
        "{} breaches of a house rule:\n{}",
        breaches.len(),
        breaches.join("\n")
    );
}
