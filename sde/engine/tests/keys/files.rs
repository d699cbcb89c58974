//! Files enter by their content, paths by their name.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use sde::Fingerprint;
use sde::key::{FingerprintErrorKind, InputFile, commit};

use super::{differ, digest};

/// A directory of its own, removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!(
            "sde-keys-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_file_is_its_content() {
    let directory = Directory::new();
    let one = InputFile::new(directory.file("one.xyz", b"3\nwater"));
    let copy = InputFile::new(directory.file("copy.xyz", b"3\nwater"));
    let base = digest(&one);
    assert_eq!(base, digest(&copy));
    assert_ne!(digest(one.path()), digest(copy.path()));
    fs::write(one.path(), b"3\nwaves").unwrap();
    assert_ne!(base, digest(&one));
    // A path is a name: the edit does not show.
    assert_eq!(digest(one.path()), digest(one.path()));
}

#[test]
fn every_byte_of_a_large_file_counts() {
    let directory = Directory::new();
    let mut content = vec![7_u8; 600_000];
    let base = digest(&InputFile::new(directory.file("a", &content)));
    for place in [0, 262_143, 262_144, 599_999] {
        content[place] = 8;
        assert_ne!(
            base,
            digest(&InputFile::new(directory.file("b", &content))),
            "byte {place}"
        );
        content[place] = 7;
    }
    content.push(7);
    assert_ne!(base, digest(&InputFile::new(directory.file("b", &content))));
    let empty = InputFile::new(directory.file("empty", b""));
    differ(&empty, &InputFile::new(directory.file("b", b"\0")));
    assert_eq!(empty.content_digest().unwrap().0, 0);
}

#[derive(Fingerprint)]
struct Job {
    files: Vec<InputFile>,
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let directory = Directory::new();
    let good = InputFile::new(directory.file("good", b"x"));
    let missing = directory.0.join("missing.xyz");
    let job = Job {
        files: vec![good, InputFile::new(&missing)],
    };
    let error = commit(&job).unwrap_err();
    assert_eq!(error.path(), ".files[1]");
    assert!(format!("{error:#}").contains("missing.xyz"), "{error}");
    assert!(matches!(error.kind(), FingerprintErrorKind::File { file, .. } if *file == missing));
    // A directory is no file.
    assert!(commit(&InputFile::new(&directory.0)).is_err());
}

/// Found by a hostile program: keying a pipe waited for a writer, and keying `/dev/zero` never came to its end.
#[test]
fn what_is_no_regular_file_is_refused() {
    let dir = std::env::temp_dir();
    let pipe = dir.join(format!("sde-pipe-{}", std::process::id()));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for path in [&dir, &pipe, std::path::Path::new("/dev/zero")] {
        let error = sde::key::commit(&InputFile::new(path)).unwrap_err();
        assert!(format!("{error:#}").contains("no regular file"), "{error}");
    }
    std::fs::remove_file(pipe).unwrap();
}
