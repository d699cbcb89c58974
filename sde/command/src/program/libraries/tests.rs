use super::*;

fn library(name: &str, path: &str) -> Line {
    Line::Library(Library {
        name: name.to_owned(),
        path: PathBuf::from(path),
    })
}

#[test]
fn lines_of_loaders_are_read() {
    let is = |line: &str, expected| assert_eq!(parse(line.as_bytes()), expected, "{line:?}");
    is(
        "\tlibm.so.6 => /lib/libm.so.6 (0x00007f)",
        library("libm.so.6", "/lib/libm.so.6"),
    );
    is(
        "\t/lib64/ld-linux.so.2 (0x00007f)",
        library("ld-linux.so.2", "/lib64/ld-linux.so.2"),
    );
    is(
        "\tlib => /a => b (0x1)/c (0x2) (0x00007f)",
        library("lib", "/a => b (0x1)/c (0x2)"),
    );
    is("\tlinux-vdso.so.1 (0x00007f)", Line::Skip);
    is("\tstatically linked", Line::Skip);
    is("", Line::Skip);
    is(
        "\tlibnone.so => not found",
        Line::Missing("libnone.so".to_owned()),
    );
    for unknown in [
        "\tlib => inputs/lib (0x1)",
        "\t./lib (0x1)",
        "\tlib => (0x1)",
        "/lib/libm.so.6",
        "usage",
    ] {
        is(unknown, Line::Unknown);
    }
}

#[test]
fn absent_library_is_told_from_other_failures() {
    let glibc = b"/bin/tool: error while loading shared libraries: libone.so: cannot open shared object file: No such file or directory\n";
    assert_eq!(absent(glibc).as_deref(), Some("libone.so"));
    let musl = b"Error loading shared library libone.so: No such file or directory (needed by /bin/tool)\n";
    assert_eq!(absent(musl).as_deref(), Some("libone.so"));
    assert_eq!(
        absent(b"error while loading shared libraries: libone.so: invalid ELF header"),
        None
    );
}

#[test]
#[ignore = "part of the test below"]
fn libraries_of_a_shell() {
    let shell = Path::new("/bin/sh");
    let head = std::fs::read(shell).unwrap();
    let loader = loader(shell, File::open(shell).unwrap(), &head);
    if let Some(loader) = loader.unwrap() {
        assert!(!list(&loader, shell, &[]).unwrap().is_empty());
    }
}

/// Nothing is made there that a kill would leave.
#[test]
fn libraries_are_told_where_no_temporary_folder_can_be_made() {
    let helper = "program::libraries::tests::libraries_of_a_shell";
    let mut command = Command::new(std::env::current_exe().unwrap());
    let command = command.args([helper, "--exact", "--ignored"]);
    let output = command.env("TMPDIR", "/proc/self/none").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("1 passed"), "{said}");
}
