//! Results as files: their bytes are those that were saved.

use super::kit::{Sample, program, says};

fn bytes(sample: &Sample, arguments: &[&str]) -> Vec<u8> {
    let key = sample.keys.solver.to_string();
    let arguments = [&[&*key], arguments, &["-o", "-"]].concat();
    let output = program()
        .args(sample.line("export", &arguments))
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{err}");
    output.stdout
}

const POSITIONS: [f64; 6] = [0.0, 1.0, 2.0, 4.0, f64::NAN, -0.0];

#[test]
fn an_array_as_npy_is_what_numpy_wants() {
    let sample = Sample::new();
    let file = bytes(&sample, &["positions", "--format", "npy"]);
    assert!(file.starts_with(b"\x93NUMPY\x01\x00"));
    let header = u16::from_le_bytes([file[8], file[9]]) as usize;
    let data = &file[10 + header..];
    let header = std::str::from_utf8(&file[10..10 + header]).unwrap();
    says(&header, "'descr': '<f8'");
    says(&header, "'shape': (2,3,)");
    assert!(header.contains("'fortran_order': False") && header.ends_with('\n'));
    assert_eq!((file.len() - data.len()) % 64, 0);
    let expected: Vec<u8> = POSITIONS.iter().flat_map(|x| x.to_le_bytes()).collect();
    assert_eq!(data, expected, "to the bit");
}

#[test]
fn all_arrays_are_in_an_npz() {
    let sample = Sample::new();
    let file = bytes(&sample, &["--format", "npz"]);
    assert!(file.starts_with(b"PK"));
    for name in ["positions.npy", "guess.npy", "report.weights.npy"] {
        let is_there = file.windows(name.len()).any(|part| part == name.as_bytes());
        assert!(is_there, "{name}");
    }
}

#[test]
fn json_says_what_json_can_say() {
    let sample = Sample::new();
    let all = bytes(&sample, &["--format", "json"]);
    let all: serde_json::Value = serde_json::from_slice(&all).unwrap();
    assert_eq!(all["positions"]["shape"], serde_json::json!([2, 3]));
    assert_eq!(all["positions"]["data"][4], "NaN");
    assert_eq!(all["guess"], serde_json::json!([1.0, 2.0, 4.0]));
    assert_eq!(all["report"]["weights"], serde_json::json!([0.5, 1.5]));
    assert_eq!(all["report"]["steps"], serde_json::Value::Null);
}

#[test]
fn cbor_is_as_it_was_stored() {
    let sample = Sample::new();
    let one = bytes(&sample, &["guess", "--format", "cbor"]);
    let mut expected = vec![0xd8, 86, 0x58, 24];
    expected.extend([1.0_f64, 2.0, 4.0].iter().flat_map(|x| x.to_le_bytes()));
    assert_eq!(one, expected);
    let all = bytes(&sample, &["--format", "cbor"]);
    assert_eq!(all[0], 0xa3, "a map of three");
}

/// It was status 0, as if nothing were missing.
#[test]
fn what_is_left_out_is_told() {
    let sample = Sample::new();
    let key = sample.keys.solver.to_string();
    let export = |key: &str, name: &[&str]| {
        let arguments = [&[key], name, &["--format", "json", "-o", "-"]].concat();
        sample.run("export", &arguments)
    };
    let all = export(&key, &[]);
    assert_eq!(all.status, 0, "{}", all.err);
    says(&all.err, "not saved: trace");
    assert_eq!(export(&key, &["guess"]).err, "");

    let invalid = export(&sample.keys.invalid.to_string(), &[]);
    assert_eq!(invalid.status, 1);
    assert_eq!(invalid.json()["result"], 7.25);
    says(&invalid.err, "not to be used");
    says(&invalid.err, "bad memory in node 7");

    sample.run("gc", &["--capacity", "0"]).well();
    let part = export(&key, &[]);
    assert_eq!(part.status, 1);
    says(&part.err, "does not have them: guess;");
    assert_eq!(part.json().as_object().unwrap().len(), 2);
    export(&key, &["positions"]).well();
}

#[test]
fn a_file_is_whole_or_not_there() {
    let sample = Sample::new();
    let key = sample.keys.solver.to_string();
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("guess.npy");
    let run = |more: &[&str]| {
        let to = to.to_str().unwrap();
        let arguments = [&[&*key], more, &["--format", "npy", "-o", to]].concat();
        sample.run("export", &arguments)
    };
    let several = run(&[]);
    assert_eq!(several.status, 2);
    says(&several.err, "there are several");
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    run(&["guess"]).well();
    let again = run(&["guess"]);
    assert_eq!(again.status, 2);
    says(&again.err, "--force");
    run(&["guess", "--force"]).well();
    assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    let unknown = run(&["nothing"]);
    says(&unknown.err, "the entry has: positions, guess");
}

/// Root lost a device of the whole machine to a rename.
#[test]
#[cfg(unix)]
fn only_a_regular_file_is_replaced() {
    let sample = Sample::new();
    let key = sample.keys.small.to_string();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("file"), "before").unwrap();
    std::fs::create_dir(at("directory")).unwrap();
    std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
    std::os::unix::fs::symlink(at("nowhere"), at("dangling")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(at("pipe"))
        .status();
    assert!(made.unwrap().success());
    let export = |name: &str| {
        let to = at(name);
        let to = to.to_str().unwrap();
        let arguments = [&*key, "--format", "json", "--force", "-o", to];
        sample.run("export", &arguments)
    };
    for name in ["directory", "link", "dangling", "pipe"] {
        let kind = || at(name).symlink_metadata().unwrap().file_type();
        let before = kind();
        let done = export(name);
        assert_eq!(done.status, 2, "{name}: {}", done.err);
        says(&done.err, "no regular file");
        assert_eq!(kind(), before, "{name}");
    }
    assert_eq!(std::fs::read(at("file")).unwrap(), b"before");
    export("file").well();
    assert_ne!(std::fs::read(at("file")).unwrap(), b"before");
    assert_eq!(folder.path().read_dir().unwrap().count(), 5);
}

/// Has names that lead elsewhere when they are unpacked, and that are one name then.
#[derive(sde::Fingerprint)]
struct Climber;

impl sde::App for Climber {
    fn info(&self) -> sde::AppInfo {
        let numbers = sde::ResultSpec::new::<Vec<f64>>;
        sde::AppInfo::new("cli.climber", "1")
            .result(numbers("../up\u{1b}[2J"))
            .result(numbers("a/b"))
            .result(numbers("a_b"))
    }
    fn run(&self, _: &sde::Handle, _: &sde::Inputs) -> Result<sde::ResultMap, sde::AppError> {
        let numbers = || vec![1.0_f64];
        Ok(sde::ResultMap::new()
            .with("../up\u{1b}[2J", numbers())
            .with("a/b", numbers())
            .with("a_b", numbers()))
    }
}

#[test]
fn the_names_in_an_npz_are_safe_to_unpack() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let engine = super::kit::engine(&path);
    let run = engine.request(&Climber, &sde::inputs! {}).run().unwrap();
    engine.finish().unwrap();
    drop(engine);
    let output = program()
        .args(["export", path.to_str().unwrap(), &run.key.to_string()])
        .args(["--format", "npz", "-o", "-"])
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{err}");
    let has = |name: &str| {
        let mut parts = output.stdout.windows(name.len());
        parts.any(|part| part == name.as_bytes())
    };
    for name in ["_.._up_[2J.npy", "a_b.npy", "a_b_2.npy"] {
        assert!(has(name), "{name}");
    }
    assert!(!has("../") && !has("\u{1b}") && !has("a/b"));
}

#[sde::app(name = "cli.written", version = "1")]
fn written(to: &std::path::Path) -> std::io::Result<sde::OutputFile> {
    std::fs::write(to, "\0 a file \u{1b}\n")?;
    sde::OutputFile::new(to)
}

#[sde::app(name = "cli.text", version = "1")]
fn text(words: u32) -> String {
    "word ".repeat(words as usize)
}

#[sde::app(name = "cli.bytes", version = "1")]
fn some_bytes(count: u32) -> Vec<u8> {
    (0..count).map(|n| n as u8).collect()
}

#[test]
fn output_files_bytes_and_texts_come_out_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let (store, to) = (dir.path().join("store"), dir.path().join("written"));
    let sde = super::kit::engine(&store);
    let key = |outcome: Result<sde::Outcome, sde::Error>| outcome.unwrap().key.to_string();
    let given = sde::inputs! { to: to.clone() };
    let keys = [
        key(sde.request(&written, &given).run()),
        key(sde
            .request(&text, &sde::inputs! { words: 20_000_u32 })
            .run()),
        key(sde
            .request(&some_bytes, &sde::inputs! { count: 300_u32 })
            .run()),
    ];
    drop(sde);
    std::fs::remove_file(&to).unwrap();
    let expected = [
        b"\0 a file \x1b\n".to_vec(),
        "word ".repeat(20_000).into_bytes(),
        (0..300_u32).map(|n| n as u8).collect(),
    ];
    for (key, expected) in keys.iter().zip(expected) {
        let mut export = program();
        export.arg("export").arg(&store).arg(key);
        let output = export
            .args(["--format", "raw", "-o", "-"])
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{err}");
        assert!(output.stdout == expected, "{key}");
    }
    let verified = program().arg("verify").arg(&store).output().unwrap();
    assert_eq!(verified.status.code(), Some(0));
}

#[test]
fn what_has_no_bytes_of_its_own_is_not_written_raw() {
    let sample = Sample::new();
    let key = sample.keys.solver.to_string();
    for name in ["positions", "report"] {
        let arguments = [&*key, name, "--format", "raw", "-o", "-"];
        let line = sample.line("export", &arguments);
        let output = program().args(line).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
    }
    let numbered = ["--format", "raw", "--file", "7"];
    let label = sample.run("export", &[&[&*key, "report"], &numbered[..]].concat());
    assert_eq!(label.status, 2);
    says(&label.err, "no output files");
}

/// A part was unknown, though `table` has a column of that name.
#[test]
fn a_part_of_a_result_is_named_as_in_tables() {
    let sample = Sample::new();
    let label = bytes(&sample, &["report.label"]);
    assert_eq!(label, b"a label");
    let weights = bytes(&sample, &["report.weights", "--format", "json"]);
    assert_eq!(weights, b"[0.5,1.5]\n");
    let array = bytes(&sample, &["report.weights", "--format", "npy"]);
    assert!(array.starts_with(b"\x93NUMPY"));
    let key = sample.keys.solver.to_string();
    for (name, more, said) in [
        ("report.weights", &[][..], "which format?"),
        ("report.nothing", &[], "it has: weights, label, steps"),
        ("guess.x", &["--json"], "no part \"x\""),
        ("nothing.label", &[], "the entry has: positions, guess"),
        (
            "report.label",
            &["--format", "cbor"],
            "not stored by itself",
        ),
        ("report.label", &["--file", "1"], "--file is for"),
    ] {
        let done = sample.run("export", &[&[&*key, name], more].concat());
        assert_eq!(done.status, 2, "{name}: {}", done.out);
        says(&done.err, said);
    }
}

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Logged {
    energy: f64,
    log: sde::OutputFile,
}

#[sde::app(name = "cli.logged", version = "1")]
fn logged(to: &std::path::Path) -> std::io::Result<Logged> {
    std::fs::write(to, "step 1\n")?;
    let log = sde::OutputFile::new(to)?;
    Ok(Logged { energy: 1.5, log })
}

#[test]
fn an_output_file_in_a_struct_is_reached_by_its_field() {
    let dir = tempfile::tempdir().unwrap();
    let (store, to) = (dir.path().join("store"), dir.path().join("log"));
    let sde = super::kit::engine(&store);
    let given = sde::inputs! { to: to.clone() };
    let key = sde.request(&logged, &given).run().unwrap().key;
    drop(sde);
    std::fs::remove_file(&to).unwrap();
    let export = |more: &[&str]| {
        let key = key.short();
        let words = ["export", store.to_str().unwrap(), &key];
        super::kit::sde([&words[..], more].concat())
    };
    for more in [&["result.log"][..], &["result.log", "--format", "raw"], &[]] {
        assert_eq!(export(more).well(), "step 1\n");
    }
    assert_eq!(export(&["result.energy", "--json"]).well(), "1.5\n");
    let wrong = export(&["result", "--file", "2"]);
    assert_eq!(wrong.status, 2);
    says(
        &wrong.err,
        "it has one output file, which is written without --file",
    );
}
