//! What the compiler says of apps that can't be, as a person reads it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library that this test is linked with, or one that was built after it.
fn library(folder: &Path) -> PathBuf {
    let is_library = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("libsde-") && name.ends_with(".rlib"))
    };
    let files = folder.read_dir().expect("a folder").flatten();
    let libraries = files.map(|file| file.path()).filter(is_library);
    let built = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).ok();
    libraries.max_by_key(built).expect("a library")
}

/// What the compiler says of a program, if it says no.
fn refusal(program: &str) -> Option<String> {
    let test = std::env::current_exe().expect("a path");
    let folder = test.parent().expect("a folder");
    let scratch = tempfile::tempdir().expect("a folder");
    let source = scratch.path().join("program.rs");
    std::fs::write(&source, program).expect("written");
    let [mut search, mut link] = ["dependency=", "sde="].map(OsString::from);
    search.push(folder);
    link.push(library(folder));
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "lib",
            "--emit",
            "metadata",
            "--out-dir",
        ])
        .arg(scratch.path())
        .arg("-L")
        .arg(search)
        .arg("--extern")
        .arg(link)
        .arg(&source)
        .output()
        .expect("a compiler");
    let said = String::from_utf8(output.stderr).expect("text");
    (!output.status.success()).then_some(said)
}

/// Found by using it: what the compiler said of a function that failed with a text did not lead to
/// `AppError::message`.
#[test]
fn what_an_app_can_not_fail_with() {
    let app = |error: &str| {
        let body = "if x < 0.0 { Err(Default::default()) } else { Ok(x) }";
        format!("#[sde::app]\npub fn root(x: f64) -> Result<f64, {error}> {{ {body} }}")
    };
    assert_eq!(refusal(&app("String")), None);
    let said = refusal(&app("()")).expect("refused");
    for part in [
        "`()` can't be the error of an app",
        "return `Result<_, sde::AppError>`",
        "sde::AppError::message(",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// A `Result` under an alias was taken for a value, so its errors were remembered.
#[test]
fn what_an_app_can_not_return() {
    let app = |returns: &str| {
        format!(
            "type Answer<T = f64> = Result<T, sde::AppError>;\n\
             #[sde::app]\npub fn root(x: f64) -> {returns} {{ Ok(x.sqrt()).into() }}"
        )
    };
    assert_eq!(refusal(&app("Result<f64, sde::AppError>")), None);
    for alias in ["Answer", "Answer<f64>", "sde::Value<Answer>"] {
        let said = refusal(&app(alias)).expect("refused");
        let first = said.lines().next().unwrap_or_default();
        assert!(first.contains("a `Result` under another name"), "{said}");
        assert!(said.contains("write `Result<T, E>` out"), "{said}");
    }
}

#[test]
fn what_can_not_be_a_helper() {
    let said = refusal("#[sde::helper]\npub mod part {}").expect("refused");
    assert!(said.contains("mark each of an `impl`"), "{said}");
}
