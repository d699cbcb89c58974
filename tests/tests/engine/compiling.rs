//! Programs that can't compile, and what the compiler says of them: `compile/*.rs` and, beside each, `*.stderr`.
//!
//! The first line names the mistake. The rest is compared where the compiler is the one that the text is of.
//! `SDE_BLESS=1` writes the texts anew.

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

fn rustc() -> Command {
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// The compiler, in a line.
fn version() -> String {
    let output = rustc().arg("--version").output().expect("a compiler");
    String::from_utf8(output.stdout).expect("text")
}

/// The first error of a program in this folder, with its place, if it does not compile.
fn refusal(folder: &Path, program: &str) -> Option<String> {
    let test = std::env::current_exe().expect("a path");
    let built = test.parent().expect("a folder");
    let scratch = tempfile::tempdir().expect("a folder");
    let [mut search, mut link] = ["dependency=", "sde="].map(OsString::from);
    search.push(built);
    link.push(library(built));
    let output = rustc()
        .current_dir(folder)
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "lib",
            "--emit",
            "metadata",
        ])
        .arg("--out-dir")
        .arg(scratch.path())
        .arg("-L")
        .arg(search)
        .arg("--extern")
        .arg(link)
        .arg(program)
        .output()
        .expect("a compiler");
    let said = String::from_utf8(output.stderr).expect("text");
    // What follows depends on what else was built.
    let is_of_the_mistake = |line: &&str| {
        let others = ["  = ", "   = ", "help", "note"];
        !line.is_empty() && !others.iter().any(|other| line.starts_with(other))
    };
    let lines = said.lines().take_while(is_of_the_mistake);
    // Which path a type is told by depends on that too.
    let shown = |line: &str| match line.starts_with("error") {
        true => line.replace("sde::Value", "Value"),
        false => line.to_owned(),
    };
    let lines = lines.map(|line| shown(line) + "\n");
    (!output.status.success()).then(|| lines.collect())
}

#[test]
fn what_does_not_compile_is_told_in_the_first_line() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engine/compile");
    let folder = folder.as_path();
    let files = folder.read_dir().expect("a folder").flatten();
    let names = files.map(|file| file.file_name().into_string().expect("a name"));
    let programs: Vec<_> = names.filter(|name| name.ends_with(".rs")).collect();
    assert!(programs.len() > 10, "{programs:?}");
    let version = version();
    let mut wrong = String::new();
    for program in &programs {
        let said = refusal(folder, program).unwrap_or_else(|| panic!("{program} compiles"));
        let text = folder.join(program).with_extension("stderr");
        if std::env::var_os("SDE_BLESS").is_some() {
            std::fs::write(&text, format!("{version}{said}")).expect("written");
            continue;
        }
        let expected = std::fs::read_to_string(&text).unwrap_or_default();
        let (of, expected) = expected.split_once('\n').unwrap_or_default();
        let is_equal = match of == version.trim_end() {
            true => said == expected,
            false => said.lines().next() == expected.lines().next(),
        };
        if !is_equal {
            wrong += &format!("{program}: expected\n{expected}\nfound\n{said}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
