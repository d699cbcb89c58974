//! The files of the repository, as the other rules see them.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A text file: its path from the root, with `/` between the parts, and what it holds.
pub struct TextFile {
    pub path: String,
    pub text: String,
}

impl TextFile {
    /// Whether the name ends in `extension` (given with its dot).
    pub fn is(&self, extension: &str) -> bool {
        self.path.ends_with(extension)
    }
}

/// The repository's root.
pub fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package
        .parent()
        .expect("the package tests/ lies in the root")
        .to_path_buf()
}

/// One file's text.
pub fn read(path: &str) -> String {
    let full = root().join(path);
    std::fs::read_to_string(&full).unwrap_or_else(|why| panic!("reading {path}: {why}"))
}

/// All text files, sorted by path. Git is not asked, so that this works in an unpacked archive too;
/// what a build leaves behind is left out by name.
pub fn text_files() -> &'static [TextFile] {
    static FILES: OnceLock<Vec<TextFile>> = OnceLock::new();
    FILES.get_or_init(|| {
        let mut files = Vec::new();
        collect(&root(), "", &mut files);
        files.sort_by(|a, b| a.path.cmp(&b.path));
        assert!(
            files.len() > 20,
            "the walk over the repository found only {} files",
            files.len()
        );
        files
    })
}

fn collect(dir: &Path, prefix: &str, files: &mut Vec<TextFile>) {
    for entry in
        std::fs::read_dir(dir).unwrap_or_else(|why| panic!("listing {}: {why}", dir.display()))
    {
        let entry = entry.expect("an entry of a folder just listed");
        let name = entry
            .file_name()
            .into_string()
            .expect("file names are UTF-8");
        let path = if prefix.is_empty() {
            name.clone()
        } else {
            format!("{prefix}/{name}")
        };
        let kind = entry.file_type().expect("the type of an entry just listed");
        if kind.is_dir() {
            if !is_left_out(&path, &name) {
                collect(&entry.path(), &path, files);
            }
        } else if kind.is_file() && !name.ends_with(".swp") {
            // A file may vanish while an editor saves it, and a binary one has no text.
            if let Ok(text) = std::fs::read_to_string(entry.path()) {
                files.push(TextFile { path, text });
            }
        }
    }
}

fn is_left_out(path: &str, name: &str) -> bool {
    path == "target" || name == ".git" || name == "proptest-regressions"
}

/// The number of the line that holds byte `offset`, from 1.
pub fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

#[test]
fn the_walk_finds_this_file_and_no_build_output() {
    let files = text_files();
    assert!(
        files
            .iter()
            .any(|file| file.path == "tests/tests/house/repository.rs")
    );
    assert!(
        !files
            .iter()
            .any(|file| file.path.starts_with("target/") || file.path.starts_with(".git/"))
    );
}

#[test]
fn lines_count_from_one() {
    assert_eq!(line_of("a\nb\n", 0), 1);
    assert_eq!(line_of("a\nb\n", 2), 2);
}
