mod libraries;
mod scripts;

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
    let script = room.script("tool", format!("#!{}\n", room.text("venv/bin/python")));
    let without = room.read(&script, &[], &[]).unwrap();
    assert!(
        names(&without)
            .iter()
            .all(|name| !name.ends_with("pyvenv.cfg"))
    );
    fs::write(room.at("venv/pyvenv.cfg"), "home = /usr/bin").unwrap();
    let one = room.read(&script, &[], &[]).unwrap();
    assert_eq!(
        part(&one, &room.text("venv/pyvenv.cfg")).path,
        room.at("venv/pyvenv.cfg")
    );
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
        &room.text("venv/pyvenv.cfg"),
    );
}
