//! Programs that are compiled, and the libraries that they load.

use super::*;

#[test]
fn shared_program_has_its_libraries_and_loader() {
    let room = Room::new();
    let program = room.read(&room.shell("tool"), &[], &[]).unwrap();
    assert_eq!(program.parts[0].name, "tool");
    assert!(
        names(&program).iter().any(|name| name.starts_with("ld-")),
        "{:?}",
        names(&program)
    );
    assert!(
        names(&program).iter().any(|name| name.contains("libc")),
        "{:?}",
        names(&program)
    );
    assert!(program.interpreters.is_empty());
    let mut paths: Vec<&Path> = program
        .parts
        .iter()
        .map(|part| part.path.as_path())
        .collect();
    paths.sort_unstable();
    paths.dedup();
    assert_eq!(paths.len(), program.parts.len());
}

#[test]
fn neither_elf_nor_script_is_refused() {
    let room = Room::new();
    for text in ["", "echo", "\x7fELF", "\x7fELF\x02\x01\x01", "\x7fELF\x09"] {
        let read = room.read(&room.script("tool", text), &[], &[]);
        assert!(
            matches!(read, Err(ProgramError::Format { .. })),
            "{text:?}: {read:?}"
        );
    }
}

/// A program that needs `libone.so`, of which there are two, in `a` and `b`.
fn with_library(room: &Room, arguments: &[&str]) -> Option<PathBuf> {
    room.compile(
        "a/libone.so",
        "int one() { return 0; }",
        &["-shared", "-fPIC"],
    )?;
    room.compile(
        "b/libone.so",
        "int one() { return 1 - 1; } int two() { return 2; }",
        &["-shared", "-fPIC"],
    )?;
    let folder = format!("-L{}", room.text("a"));
    let arguments = [&[folder.as_str(), "-lone"], arguments].concat();
    room.compile(
        "bin/tool",
        "int one(); int main() { return one(); }",
        &arguments,
    )
}

#[test]
fn library_path_decides_which_library_counts() {
    let room = Room::new();
    let Some(tool) = with_library(&room, &[]) else {
        return;
    };
    for folder in ["a", "b"] {
        let program = room
            .read(&tool, &[], &[("LD_LIBRARY_PATH", &room.text(folder))])
            .unwrap();
        let library = part(&program, "libone.so");
        assert_eq!(library.path, room.at(folder).join("libone.so"));
        let content = fs::read(&library.path).unwrap();
        assert_eq!(library.digest.as_bytes(), blake3::hash(&content).as_bytes());
        // An absolute folder counts by what it resolves.
        assert!(
            !names(&program)
                .iter()
                .any(|name| name.starts_with("relative"))
        );
    }
    let Err(ProgramError::Library { program, library }) = room.read(&tool, &[], &[]) else {
        panic!("{:?}", room.read(&tool, &[], &[]))
    };
    assert_eq!((program, library.as_str()), (tool.clone(), "libone.so"));
    // The caller's own library path is not the run's.
    let preload = room.text("b/libone.so");
    let both = [
        ("LD_PRELOAD", preload.as_str()),
        ("LD_LIBRARY_PATH", &room.text("a")),
    ];
    let program = room.read(&tool, &[], &both).unwrap();
    assert!(
        program
            .parts
            .iter()
            .any(|part| part.path == room.at("b/libone.so"))
    );
}

#[test]
fn library_path_that_looks_among_the_inputs_counts_as_it_is_written() {
    let room = Room::new();
    let tool = room.shell("tool");
    let read = |value: &str| {
        room.read(&tool, &[], &[("LD_LIBRARY_PATH", value)])
            .unwrap()
    };
    let plain = read("/none");
    assert_eq!(digests_of(&plain), digests_of(&read("")));
    for value in ["/none:", ":/none", "lib", "/none:lib", "$ORIGIN"] {
        let relative = read(value);
        part(&relative, "relative LD_LIBRARY_PATH");
        assert_ne!(
            digests_of(&relative),
            digests_of(&read(&format!("{value}:/other"))),
            "{value}"
        );
    }
}

#[test]
fn origin_is_where_links_lead() {
    let room = Room::new();
    let Some(tool) = with_library(&room, &["-Wl,-rpath,$ORIGIN/../a"]) else {
        return;
    };
    fs::create_dir_all(room.at("links/bin")).unwrap();
    // A folder that only a run that takes `$ORIGIN` for the link's folder would look in.
    symlink(room.at("b"), room.at("links/a")).unwrap();
    symlink(tool, room.at("links/bin/tool")).unwrap();
    let program = room.read(&room.at("links/bin/tool"), &[], &[]).unwrap();
    let library = &part(&program, "libone.so").path;
    assert_eq!(
        library.canonicalize().unwrap(),
        room.at("a/libone.so").canonicalize().unwrap()
    );
}

#[test]
fn static_program_has_no_libraries() {
    let room = Room::new();
    let source = "void _start() { for (;;); }";
    let Some(tool) = room.compile("tool", source, &["-static", "-nostdlib"]) else {
        return;
    };
    assert_eq!(names(&room.read(&tool, &[], &[]).unwrap()), ["tool"]);
}

#[test]
fn loader_that_fails_is_told_with_what_it_said() {
    let room = Room::new();
    let loader = room.script(
        "loader",
        "#!/bin/sh\necho \"no $1 for you: $CARGO_MANIFEST_DIR\" >&2\nexit 3\n",
    );
    let linker = format!("-Wl,--dynamic-linker={}", loader.display());
    let Some(tool) = room.compile("tool", "int main() { return 0; }", &[&linker]) else {
        return;
    };
    let said = room.read(&tool, &[], &[]).unwrap_err().to_string();
    assert!(
        said.contains("no --list for you") && said.contains("tool"),
        "{said}"
    );
    // A variable of the caller's, which Cargo sets.
    assert!(!said.contains(env!("CARGO_MANIFEST_DIR")), "{said}");
    room.script("loader", "#!/bin/sh\n");
    assert_eq!(
        names(&room.read(&tool, &[], &[]).unwrap()),
        ["tool", "loader"]
    );
    // What is not understood is no library that may be left out.
    room.script("loader", "#!/bin/sh\necho 'usage: loader'\n");
    let said = room.read(&tool, &[], &[]).unwrap_err().to_string();
    assert!(said.contains("usage: loader"), "{said}");
    fs::remove_file(&loader).unwrap();
    assert!(
        room.read(&tool, &[], &[])
            .unwrap_err()
            .to_string()
            .contains("loader")
    );
}

#[test]
fn privileged_program_is_refused() {
    let room = Room::new();
    let tool = room.shell("tool");
    for mode in [0o4755, 0o2755] {
        fs::set_permissions(&tool, fs::Permissions::from_mode(mode)).unwrap();
        assert!(
            matches!(
                room.read(&tool, &[], &[]),
                Err(ProgramError::Privileged { .. })
            ),
            "{mode:o}"
        );
    }
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    // Version 2 of a capability, all of whose sets are empty.
    let mut capability = [0_u8; 20];
    capability[3] = 2;
    match rustix::fs::setxattr(
        &tool,
        "security.capability",
        &capability,
        rustix::fs::XattrFlags::CREATE,
    ) {
        Ok(()) => assert!(matches!(
            room.read(&tool, &[], &[]),
            Err(ProgramError::Privileged { .. })
        )),
        Err(error) => println!("not tested: no right to set capabilities ({error})"),
    }
}

/// The headers of a program of 32 or 64 bits that names a loader, and no more.
fn elf(bits: usize, loader: &str) -> Vec<u8> {
    let (header, segment) = if bits == 64 { (64, 56) } else { (52, 32) };
    let word = |value: usize| value.to_le_bytes()[..bits / 8].to_vec();
    let zeros = |count: usize| vec![0; count];
    let magic = [0x7f, b'E', b'L', b'F', (bits / 32) as u8, 1, 1];
    // An executable for no machine in particular, whose segments follow the header.
    let kind = [2, 0, 0, 0, 1, 0, 0, 0];
    let sizes = [header as u8, 0, segment as u8, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    let name = word(header + segment);
    let length = word(loader.len() + 1);
    let (before, after) = if bits == 64 { (4, 8) } else { (0, 8) };
    let mut bytes = [
        &magic[..],
        &zeros(9),
        &kind,
        &word(0),
        &word(header),
        &word(0),
        &zeros(4),
        &sizes,
    ]
    .concat();
    assert_eq!(bytes.len(), header);
    bytes.extend(
        [
            &[3, 0, 0, 0][..],
            &zeros(before),
            &name,
            &word(0),
            &word(0),
            &length,
            &length,
        ]
        .concat(),
    );
    bytes.extend(zeros(after));
    assert_eq!(bytes.len(), header + segment);
    bytes.extend(loader.as_bytes());
    bytes.push(0);
    bytes
}

#[test]
fn loader_is_told_from_headers_of_32_and_64_bits() {
    let room = Room::new();
    // Whatever lies in its current folder, but for numbers, would be a line that is not understood.
    let loader = room.script(
        "loader",
        "#!/bin/sh\n/bin/ls -A | /bin/grep -v '^[0-9]*$'\nexit 0\n",
    );
    let long = format!("/{}", "x".repeat(4096));
    for bits in [32, 64] {
        let tool = room.script("tool", elf(bits, &room.text("loader")));
        let program = room.read(&tool, &[], &[]).unwrap();
        assert_eq!(names(&program), ["tool", "loader"]);
        assert_eq!(program.parts[1].path, loader);
        for refused in ["lib/loader", "", &long] {
            let tool = room.script("tool", elf(bits, refused));
            let read = room.read(&tool, &[], &[]);
            assert!(
                matches!(read, Err(ProgramError::Format { .. })),
                "{bits} {refused:.9}: {read:?}"
            );
        }
    }
}
