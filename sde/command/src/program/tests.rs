use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use tempfile::TempDir;

use super::*;

/// A folder for programs, and what reads them.
struct Room(TempDir);

type Environment<'a> = &'a [(&'a str, &'a str)];

fn owned(environment: Environment) -> Vec<(OsString, OsString)> {
    environment
        .iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

impl Room {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.at(name).into_os_string().into_string().unwrap()
    }

    fn script(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Another process writes it: a descriptor that a child of another test inherits would make it busy.
        let draft = self.at("draft");
        fs::write(&draft, text).unwrap();
        assert!(
            Command::new("cp")
                .arg("--remove-destination")
                .args([&draft, &path])
                .status()
                .unwrap()
                .success()
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// A shell of another name, and other bytes than `/bin/sh`.
    fn shell(&self, name: &str) -> PathBuf {
        let mut bytes = fs::read("/bin/sh").unwrap();
        bytes.extend(name.as_bytes());
        self.script(name, bytes)
    }

    /// Compiles C, unless there is no compiler here.
    fn compile(&self, name: &str, source: &str, arguments: &[&str]) -> Option<PathBuf> {
        let path = self.script(name, "");
        let file = self.at("source.c");
        fs::write(&file, source).unwrap();
        let compiler = Command::new("cc")
            .arg("-o")
            .arg(&path)
            .arg(&file)
            .args(arguments)
            .status();
        let Ok(status) = compiler else {
            println!("not tested: there is no `cc`");
            return None;
        };
        assert!(status.success());
        Some(path)
    }

    fn read(
        &self,
        path: &Path,
        search: &[&str],
        environment: Environment,
    ) -> Result<Program, ProgramError> {
        let search = std::env::join_paths(search.iter().map(|name| self.at(name))).unwrap();
        read(
            path,
            &search,
            &owned(environment),
            &Digests::in_folder(None, false),
        )
    }

    /// What `readlink /proc/$$/exe` in a script prints: the interpreter that did run.
    fn ran(&self, program: &Program, environment: Environment) -> PathBuf {
        let environment = owned(environment);
        let output = Command::new(&program.path)
            .env_clear()
            .envs(environment.clone())
            .env("PATH", search_path(program, &environment).unwrap())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        PathBuf::from(OsStr::from_bytes(output.stdout.trim_ascii()))
    }
}

const TELLS: &str = "/bin/readlink /proc/$$/exe\n";

fn names(program: &Program) -> Vec<&str> {
    program
        .parts
        .iter()
        .map(|part| part.name.as_str())
        .collect()
}

fn digests_of(program: &Program) -> Vec<(&str, Digest)> {
    program
        .parts
        .iter()
        .map(|part| (part.name.as_str(), part.digest))
        .collect()
}

fn part<'a>(program: &'a Program, name: &str) -> &'a Part {
    let found = program.parts.iter().find(|part| part.name == name);
    found.unwrap_or_else(|| panic!("{name} is not in {:?}", names(program)))
}

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
fn edited_program_script_and_interpreter_have_other_digests() {
    let room = Room::new();
    let shell = room.shell("shell");
    let script = room.script("script", &format!("#!{}\n", shell.display()));
    let before = room.read(&script, &[], &[]).unwrap();
    assert_eq!(before.interpreters, [shell.clone()]);
    assert!(names(&before).iter().any(|name| name.contains("libc")));
    let bytes = fs::read(&shell).unwrap();
    fs::write(&shell, [&bytes[..], b"edited"].concat()).unwrap();
    let after = room.read(&script, &[], &[]).unwrap();
    let digest = |program: &Program, name| part(program, name).digest;
    assert_ne!(
        digest(&before, "interpreter shell"),
        digest(&after, "interpreter shell")
    );
    assert_eq!(digest(&before, "script"), digest(&after, "script"));
    room.script("script", &format!("#!{}\n#edited", shell.display()));
    let edited = room.read(&script, &[], &[]).unwrap();
    assert_ne!(digest(&edited, "script"), digest(&after, "script"));
}

#[test]
fn interpreter_has_the_name_of_its_file() {
    let room = Room::new();
    room.shell("shell1.2");
    symlink("shell1.2", room.at("shell")).unwrap();
    let script = room.script("script", &format!("#!{}\n", room.text("shell")));
    let program = room.read(&script, &[], &[]).unwrap();
    part(&program, "interpreter shell1.2");
    assert_eq!(program.interpreters, [room.at("shell")]);
}

#[test]
fn interpreter_of_env_is_the_first_in_the_callers_path_and_runs() {
    let room = Room::new();
    room.shell("a/shell");
    room.shell("b/shell");
    let script = room.script("bin/script", &format!("#!/usr/bin/env shell\n{TELLS}"));
    // One beside the script comes later in the run's PATH than the one that was identified.
    room.shell("bin/shell");
    for first in ["a", "b"] {
        let last = if first == "a" { "b" } else { "a" };
        let program = room.read(&script, &[first, last], &[]).unwrap();
        assert_eq!(program.interpreters, [room.at(first).join("shell")]);
        assert_eq!(room.ran(&program, &[]), room.at(first).join("shell"));
        part(&program, "interpreter env");
    }
    // Earlier in PATH than before.
    let before = room.read(&script, &["c", "a"], &[]).unwrap();
    room.shell("c/shell");
    let after = room.read(&script, &["c", "a"], &[]).unwrap();
    assert_ne!(digests_of(&before), digests_of(&after));
}

#[test]
fn interpreter_of_env_with_arguments_runs() {
    let room = Room::new();
    room.shell("a/shell");
    let script = room.script("script", &format!("#!/usr/bin/env -S shell -e\n{TELLS}"));
    let program = room.read(&script, &["a"], &[]).unwrap();
    assert_eq!(room.ran(&program, &[]), room.at("a/shell"));
}

#[test]
fn declared_path_decides_over_the_callers() {
    let room = Room::new();
    room.shell("a/shell");
    room.shell("b/shell");
    let script = room.script("script", &format!("#!/usr/bin/env shell\n{TELLS}"));
    let path = format!("{}:{}", room.text("b"), room.text("a"));
    let environment = [("PATH", path.as_str())];
    let program = room.read(&script, &["a"], &environment).unwrap();
    assert_eq!(program.interpreters, [room.at("b/shell")]);
    assert_eq!(room.ran(&program, &environment), room.at("b/shell"));
    assert_eq!(
        search_path(&program, &owned(&environment)).unwrap(),
        OsStr::new(&path)
    );
}

#[test]
fn declared_path_that_first_looks_in_the_run_is_refused() {
    let room = Room::new();
    room.shell("a/shell");
    let script = room.script("script", "#!/usr/bin/env shell\n");
    for path in [
        format!(":{}", room.text("a")),
        format!("bin:{}", room.text("a")),
    ] {
        let read = room.read(&script, &[], &[("PATH", &path)]);
        assert!(
            matches!(read, Err(ProgramError::Hidden { .. })),
            "{path}: {read:?}"
        );
    }
    let path = format!("{}:", room.text("a"));
    room.read(&script, &[], &[("PATH", &path)]).unwrap();
}

#[test]
fn chain_of_interpreters_is_followed() {
    let room = Room::new();
    room.shell("deep/shell");
    room.script("a/middle", "#!/usr/bin/env shell\n");
    let script = room.script("script", "#!/usr/bin/env middle\n");
    let program = room.read(&script, &["a", "deep"], &[]).unwrap();
    assert_eq!(
        program.interpreters,
        [room.at("a/middle"), room.at("deep/shell")]
    );
    part(&program, "interpreter middle");
    part(&program, "interpreter shell");
    // In the run, the folder of `middle` comes first, so another shell in it would run.
    room.shell("a/shell");
    let read = room.read(&script, &["deep", "a"], &[]);
    assert!(matches!(read, Err(ProgramError::Hidden { .. })), "{read:?}");
}

#[test]
fn chain_that_is_too_deep_or_a_circle_is_refused() {
    let room = Room::new();
    let mut before = room.shell("0");
    for depth in 1..=5 {
        let line = format!("#!{}\n", before.display());
        before = room.script(&depth.to_string(), &line);
    }
    assert_eq!(
        room.read(&room.at("4"), &[], &[])
            .unwrap()
            .interpreters
            .len(),
        4
    );
    assert!(matches!(
        room.read(&room.at("5"), &[], &[]),
        Err(ProgramError::Deep { .. })
    ));
    let circle = room.script("circle", &format!("#!{}\n", room.text("circle")));
    assert!(matches!(
        room.read(&circle, &[], &[]),
        Err(ProgramError::Deep { .. })
    ));
}

#[test]
fn interpreter_that_is_absent_is_told_with_its_script() {
    let room = Room::new();
    for line in ["#!/none/shell\n", "#!/usr/bin/env none\n", "#!/bin/sh\r\n"] {
        let script = room.script("script", line);
        let said = room.read(&script, &["a"], &[]).unwrap_err().to_string();
        assert!(
            said.contains("not there") && said.contains("script"),
            "{said}"
        );
    }
    assert!(
        room.read(&room.at("script"), &[], &[])
            .unwrap_err()
            .to_string()
            .contains(r"/bin/sh\r")
    );
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

#[test]
fn path_of_a_run_begins_with_interpreter_and_program() {
    let program = Program {
        path: PathBuf::from("/p/bin/tool"),
        parts: Vec::new(),
        interpreters: vec![PathBuf::from("/i/a"), PathBuf::from("/j/b")],
    };
    assert_eq!(
        search_path(&program, &[]).unwrap(),
        "/i:/j:/p/bin:/usr/local/bin:/usr/bin:/bin"
    );
    let colon = Program {
        path: PathBuf::from("/p:q/tool"),
        ..program
    };
    assert!(matches!(
        search_path(&colon, &[]),
        Err(ProgramError::Colon { .. })
    ));
    let declared = owned(&[("PATH", "/a"), ("PATH", "/b")]);
    assert_eq!(search_path(&colon, &declared).unwrap(), "/b");
}

#[test]
fn settings_of_a_virtual_environment_count() {
    let room = Room::new();
    room.shell("python");
    fs::create_dir_all(room.at("venv/bin")).unwrap();
    symlink(room.at("python"), room.at("venv/bin/python")).unwrap();
    let script = room.script("tool", &format!("#!{}\n", room.text("venv/bin/python")));
    let without = room.read(&script, &[], &[]).unwrap();
    assert!(!names(&without).contains(&"pyvenv.cfg"));
    fs::write(room.at("venv/pyvenv.cfg"), "home = /usr/bin").unwrap();
    let one = room.read(&script, &[], &[]).unwrap();
    assert_eq!(part(&one, "pyvenv.cfg").path, room.at("venv/pyvenv.cfg"));
    fs::write(room.at("venv/pyvenv.cfg"), "home = /opt/bin").unwrap();
    let other = room.read(&script, &[], &[]).unwrap();
    assert_ne!(digests_of(&one), digests_of(&other));
    // A link from elsewhere into the environment.
    symlink(
        room.script("venv/bin/tool", "#!/bin/sh\n"),
        room.at("linked"),
    )
    .unwrap();
    part(
        &room.read(&room.at("linked"), &[], &[]).unwrap(),
        "pyvenv.cfg",
    );
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
    let loader = room.script("loader", "#!/bin/sh\necho \"no $1 for you\" >&2\nexit 3\n");
    let linker = format!("-Wl,--dynamic-linker={}", loader.display());
    let Some(tool) = room.compile("tool", "int main() { return 0; }", &[&linker]) else {
        return;
    };
    let said = room.read(&tool, &[], &[]).unwrap_err().to_string();
    assert!(
        said.contains("no --list for you") && said.contains("tool"),
        "{said}"
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

/// Prints what reading costs, warm: `cargo test --release -p sde-command -- --ignored --nocapture cost`.
#[test]
#[ignore = "a measurement"]
fn cost() {
    let name = std::env::var_os("PROGRAM").unwrap_or_else(|| "git".into());
    let path = find(&name, Path::new("/"), &std::env::var_os("PATH").unwrap()).unwrap();
    let environment: Vec<_> = std::env::vars_os()
        .filter(|(name, _)| name == "LD_LIBRARY_PATH")
        .collect();
    let mut best = std::time::Duration::MAX;
    for _ in 0..50 {
        let start = std::time::Instant::now();
        let program = read(
            &path,
            OsStr::new("/usr/bin"),
            &environment,
            &Digests::new(false),
        )
        .unwrap();
        best = best.min(start.elapsed());
        println!("{:?} {:?}", start.elapsed(), program.parts.len());
    }
    println!("best: {best:?}");
}
