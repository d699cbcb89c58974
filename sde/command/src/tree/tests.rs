use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use rustix::fs::{CWD, FileType, mknodat};
use tempfile::TempDir;

use super::*;

/// A folder with a tree `in` beside which `out` lies, and where it is copied to.
struct Trees(TempDir);

impl Trees {
    /// The tree holds a file, a folder with a file, and an empty folder.
    fn new() -> Self {
        let trees = Self(tempfile::tempdir().unwrap());
        for folder in ["in/folder", "in/empty", "out/folder"] {
            fs::create_dir_all(trees.at(folder)).unwrap();
        }
        for file in ["in/file", "in/folder/file", "out/file", "out/folder/file"] {
            trees.write(file, file);
        }
        trees
    }

    fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.at(name), text).unwrap();
        self.set_mode(name, 0o644);
    }

    fn set_mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.at(name), Permissions::from_mode(mode)).unwrap();
    }

    fn link(&self, name: &str, text: impl AsRef<Path>) {
        symlink(text, self.at(name)).unwrap();
    }

    fn digest(&self) -> Digest {
        digest(&self.at("in")).unwrap()
    }

    /// Copies to `far/copy`, from which relative links that leave would lead nowhere.
    fn copied(&self) -> PathBuf {
        let to = self.at("far/copy");
        fs::create_dir_all(self.at("far")).unwrap();
        copy(&self.at("in"), &to).unwrap();
        assert_eq!(digest(&to).unwrap(), self.digest());
        to
    }

    /// Both ways refuse the tree.
    fn error(&self) -> TreeError {
        let error = digest(&self.at("in")).unwrap_err();
        let copied = copy(&self.at("in"), &self.at("refused")).unwrap_err();
        assert_eq!(error.to_string(), copied.to_string());
        error
    }
}

fn is_link(path: PathBuf) -> bool {
    path.symlink_metadata().unwrap().is_symlink()
}

#[test]
fn all_that_counts_changes_the_digest() {
    let trees = Trees::new();
    trees.link("in/link", "file");
    let mut seen = vec![trees.digest()];
    let mut differs = |what: &str| {
        let now = trees.digest();
        assert!(!seen.contains(&now), "{what}");
        seen.push(now);
    };
    trees.write("in/file", "other");
    differs("content");
    trees.set_mode("in/file", 0o755);
    differs("mode of a file");
    trees.set_mode("in/folder", 0o700);
    differs("mode of a folder");
    trees.set_mode("in", 0o711);
    differs("mode of the root");
    fs::rename(trees.at("in/file"), trees.at("in/name")).unwrap();
    differs("name of a file");
    fs::rename(trees.at("in/folder"), trees.at("in/g")).unwrap();
    differs("name of a folder");
    fs::remove_dir(trees.at("in/empty")).unwrap();
    differs("empty folder");
    fs::rename(trees.at("in/g/file"), trees.at("in/file")).unwrap();
    differs("where a file is");
    fs::remove_file(trees.at("in/link")).unwrap();
    differs("link that is gone");
    trees.link("in/link", "./file");
    differs("text of a link");
}

#[test]
fn place_times_and_name_of_the_root_do_not_count() {
    let trees = Trees::new();
    let before = trees.digest();
    fs::File::open(trees.at("in/file"))
        .unwrap()
        .set_modified(std::time::UNIX_EPOCH)
        .unwrap();
    assert_eq!(trees.digest(), before);
    fs::rename(trees.at("in"), trees.at("elsewhere")).unwrap();
    assert_eq!(digest(&trees.at("elsewhere")).unwrap(), before);
    trees.link("in", "elsewhere");
    assert_eq!(trees.digest(), before);
}

#[test]
fn encoding_is_unambiguous_and_fixed() {
    // The end of a folder tells `a/b` from `a`, `b`, as two files of one folder.
    let trees = Trees::new();
    let one = trees.at("one");
    fs::create_dir_all(one.join("a/b")).unwrap();
    let other = trees.at("other");
    fs::create_dir_all(other.join("a")).unwrap();
    fs::create_dir_all(other.join("b")).unwrap();
    assert_ne!(digest(&one).unwrap(), digest(&other).unwrap());
    // A change of the encoding must change its first word.
    let fixed = trees.at("fixed");
    fs::create_dir_all(fixed.join("d")).unwrap();
    fs::write(fixed.join("f"), "text").unwrap();
    symlink("f", fixed.join("l")).unwrap();
    for (name, mode) in [("fixed", 0o755), ("fixed/d", 0o700), ("fixed/f", 0o640)] {
        trees.set_mode(name, mode);
    }
    let mut expected = blake3::Hasher::new();
    let text = |expected: &mut blake3::Hasher, text: &[u8]| {
        expected
            .update(&(text.len() as u64).to_le_bytes())
            .update(text);
    };
    let node = |expected: &mut blake3::Hasher, kind: &[u8], name: &[u8], mode: u32| {
        text(expected.update(kind), name);
        expected.update(&mode.to_le_bytes());
    };
    node(expected.update(b"sde tree 1"), b"d", b"", 0o755);
    node(&mut expected, b"d", b"d", 0o700);
    node(expected.update(b"e"), b"f", b"f", 0o640);
    text(
        expected
            .update(blake3::hash(b"text").as_bytes())
            .update(b"l"),
        b"l",
    );
    text(&mut expected, b"f");
    expected.update(b"e");
    assert_eq!(
        digest(&fixed).unwrap().as_bytes(),
        expected.finalize().as_bytes()
    );
}

#[test]
fn copy_holds_all_that_counts() {
    let trees = Trees::new();
    trees.set_mode("in/file", 0o751);
    trees.set_mode("in/folder", 0o550);
    trees.set_mode("in", 0o711);
    let strange = OsStr::from_bytes(b"in/\xff\n name");
    fs::write(trees.at(strange), "x").unwrap();
    let to = trees.copied();
    assert_eq!(
        fs::read_to_string(to.join("folder/file")).unwrap(),
        "in/folder/file"
    );
    assert!(to.join("empty").is_dir());
    let mode = |name| to.join(name).metadata().unwrap().mode() & 0o7777;
    assert_eq!(
        [mode("file"), mode("folder"), mode("")],
        [0o751, 0o550, 0o711]
    );
    trees.set_mode("far/copy/folder", 0o700);
}

#[test]
fn other_bits_are_not_copied() {
    let trees = Trees::new();
    trees.set_mode("in/file", 0o4755);
    assert_eq!(
        trees.copied().join("file").metadata().unwrap().mode() & 0o7777,
        0o755
    );
}

#[test]
fn copy_goes_nowhere_that_exists() {
    let trees = Trees::new();
    for there in ["out", "out/file"] {
        assert!(copy(&trees.at("in"), &trees.at(there)).is_err());
    }
    assert_eq!(
        fs::read_to_string(trees.at("out/file")).unwrap(),
        "out/file"
    );
}

#[test]
fn links_that_stay_are_text() {
    let trees = Trees::new();
    for (name, text) in [
        ("in/a", "folder/file"),
        ("in/folder/b", "../file"),
        ("in/c", "folder"),
        ("in/folder/d", ".."),
        ("in/folder/e", "../c/b"),
        ("in/f", "folder/../empty/./"),
        ("in/g", "."),
        ("in/nowhere", "none"),
        ("in/h", "file/none"),
        ("in/outside", "/none/none"),
    ] {
        trees.link(name, text);
    }
    let to = trees.copied();
    for name in [
        "a", "folder/b", "c", "folder/d", "folder/e", "f", "g", "nowhere", "h", "outside",
    ] {
        let text = fs::read_link(to.join(name)).unwrap();
        assert_eq!(text, fs::read_link(trees.at("in").join(name)).unwrap());
    }
    // The target counts where it is, and only there.
    let before = trees.digest();
    fs::remove_file(trees.at("in/nowhere")).unwrap();
    trees.link("in/nowhere", "other");
    assert_ne!(trees.digest(), before);
}

#[test]
fn links_that_leave_count_by_content() {
    let trees = Trees::new();
    trees.link("in/a", "../out/file");
    trees.link("in/b", trees.at("out/folder"));
    let to = trees.copied();
    assert!(!is_link(to.join("a")) && !is_link(to.join("b")));
    assert_eq!(
        fs::read_to_string(to.join("b/file")).unwrap(),
        "out/folder/file"
    );
    let before = trees.digest();
    trees.write("out/folder/file", "other");
    assert_ne!(trees.digest(), before);
    let before = trees.digest();
    trees.set_mode("out/file", 0o600);
    assert_ne!(trees.digest(), before);
}

#[test]
fn links_that_a_copy_would_leave_count_by_content() {
    let trees = Trees::new();
    // Absolute, out and in again, by a link that leaves, and to a folder whose name begins with the tree's.
    trees.link("in/absolute", trees.at("in/folder"));
    trees.link("in/again", "../in/file");
    trees.link("in/up", "folder/../../in/folder");
    trees.link("in/leaves", "../out");
    trees.link("in/through", "leaves/file");
    fs::create_dir(trees.at("in2")).unwrap();
    trees.write("in2/file", "in2");
    trees.link("in/second", "../in2");
    let to = trees.copied();
    for name in ["absolute", "again", "up", "leaves", "through", "second"] {
        assert!(!is_link(to.join(name)), "{name}");
    }
    assert_eq!(fs::read_to_string(to.join("through")).unwrap(), "out/file");
}

#[test]
fn links_in_a_followed_folder_stay_in_that_folder() {
    let trees = Trees::new();
    trees.link("in/b", "../out/folder");
    trees.link("out/folder/stays", "file");
    trees.link("out/folder/leaves", "../file");
    trees.link("out/folder/tree", "../../in/file");
    let to = trees.copied();
    assert!(is_link(to.join("b/stays")));
    assert_eq!(
        fs::read_to_string(to.join("b/stays")).unwrap(),
        "out/folder/file"
    );
    assert!(!is_link(to.join("b/leaves")) && !is_link(to.join("b/tree")));
    assert_eq!(fs::read_to_string(to.join("b/tree")).unwrap(), "in/file");
}

#[test]
fn cycles_are_refused() {
    for (name, text) in [
        ("in/folder/back", "../../in"),
        ("in/folder/back", "../../in/folder"),
        ("in/folder/back", "../../out"),
        ("in/folder/back", "../.."),
        ("in/folder/back", "back"),
    ] {
        let trees = Trees::new();
        trees.link("out/around", "../in");
        trees.link(name, text);
        let error = trees.error();
        assert!(
            matches!(&error, TreeError::Cycle { path } if path.starts_with(trees.at(name))),
            "{text}: {error}"
        );
    }
}

#[test]
fn copy_into_itself_ends() {
    let trees = Trees::new();
    let error = copy(&trees.at("in"), &trees.at("in/folder/copy")).unwrap_err();
    assert!(matches!(error, TreeError::Cycle { .. }), "{error}");
}

#[test]
fn devices_sockets_and_pipes_are_refused() {
    let trees = Trees::new();
    let special = trees.at("in/special");
    let refused = |name: &str| {
        let error = trees.error();
        assert!(
            matches!(&error, TreeError::Special { path } if *path == trees.at(name)),
            "{error}"
        );
        fs::remove_dir_all(trees.at("refused")).unwrap();
        fs::remove_file(trees.at(name)).unwrap();
    };
    mknodat(CWD, &special, FileType::Fifo, 0o600.into(), 0).unwrap();
    refused("in/special");
    let _socket = std::os::unix::net::UnixListener::bind(&special).unwrap();
    refused("in/special");
    trees.link("in/null", "/dev/null");
    refused("in/null");
}

#[test]
fn only_a_folder_has_a_tree() {
    let trees = Trees::new();
    assert!(matches!(
        digest(&trees.at("in/file")),
        Err(TreeError::NotAFolder { .. })
    ));
    assert!(matches!(
        digest(&trees.at("none")),
        Err(TreeError::Io { .. })
    ));
}

#[test]
fn deep_tree_does_not_use_up_the_stack() {
    let trees = Trees::new();
    let mut folder = trees.at("in");
    for _ in 0..1500 {
        folder.push("d");
    }
    fs::create_dir_all(&folder).unwrap();
    trees.copied();
}
