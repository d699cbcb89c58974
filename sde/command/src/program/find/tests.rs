use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

fn make(path: &Path, mode: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "").unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn search(folders: &[&Path]) -> OsString {
    std::env::join_paths(folders).unwrap()
}

#[test]
fn first_executable_regular_file_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("a/tool")).unwrap();
    make(&at("b/tool"), 0o644);
    make(&at("c/tool"), 0o755);
    make(&at("d/tool"), 0o755);
    let folders = ["none", "a", "b", "c", "d"].map(at);
    let found = |from: usize, to| {
        let folders: Vec<&Path> = folders[from..to].iter().map(PathBuf::as_path).collect();
        find(OsStr::new("tool"), Path::new("/"), &search(&folders))
    };
    assert_eq!(found(0, 5).unwrap(), at("c/tool"));
    assert_eq!(found(4, 5).unwrap(), at("d/tool"));
    assert!(
        matches!(found(0, 3), Err(ProgramError::NotExecutable { path }) if path == at("b/tool"))
    );
    let Err(ProgramError::NotFound { name, searched }) = found(0, 2) else {
        panic!("found a folder")
    };
    assert_eq!(
        (name, searched),
        ("tool".into(), search(&[&at("none"), &at("a")]))
    );
}

#[test]
fn name_with_a_slash_is_relative_to_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    make(&folder.path().join("bin/tool"), 0o755);
    make(&folder.path().join("bin/text"), 0o644);
    let found = |name: &str| find(OsStr::new(name), folder.path(), OsStr::new("/usr/bin"));
    assert_eq!(found("bin/tool").unwrap(), folder.path().join("bin/tool"));
    assert_eq!(found("./bin/tool").unwrap(), folder.path().join("bin/tool"));
    assert!(matches!(
        found("bin/text"),
        Err(ProgramError::NotExecutable { .. })
    ));
    assert!(matches!(found("./bin"), Err(ProgramError::NotAFile { .. })));
    assert!(matches!(
        found("./none"),
        Err(ProgramError::NotFound { .. })
    ));
}

#[test]
fn links_are_not_resolved() {
    let folder = tempfile::tempdir().unwrap();
    make(&folder.path().join("tool-1.2"), 0o755);
    std::os::unix::fs::symlink("tool-1.2", folder.path().join("tool")).unwrap();
    let found = find(
        OsStr::new("tool"),
        Path::new("/"),
        folder.path().as_os_str(),
    )
    .unwrap();
    assert_eq!(found, folder.path().join("tool"));
}

#[test]
fn relative_and_empty_entries_are_relative_to_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    make(&folder.path().join("tool"), 0o755);
    make(&folder.path().join("bin/other"), 0o755);
    let found =
        |name: &str, search: &str| find(OsStr::new(name), folder.path(), OsStr::new(search));
    assert_eq!(found("tool", "/none:").unwrap(), folder.path().join("tool"));
    assert_eq!(
        found("other", "bin").unwrap(),
        folder.path().join("bin/other")
    );
    assert!(matches!(
        found("", "bin:"),
        Err(ProgramError::NotFound { .. })
    ));
    // Of a run, whose folder is not known, only absolute entries count.
    let absolute = |search: &str| find_absolute(OsStr::new("sh"), OsStr::new(search));
    assert!(matches!(
        absolute("bin:"),
        Err(ProgramError::NotFound { .. })
    ));
    assert_eq!(absolute("bin:/bin").unwrap(), Path::new("/bin/sh"));
}
