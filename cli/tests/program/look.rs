//! What the commands say of a store that is whole, and how they say it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::kit::{Sample, program, says, sde, sde_wide};

const GUIDE: &str = include_str!("../../../docs/guide/05-program.md");

fn columns(text: &str) -> usize {
    // Only characters of one column are in the sample's texts.
    text.lines()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0)
}

#[test]
fn ls_has_a_line_for_each_entry() {
    let sample = Sample::new();
    let text = sample.run("ls", &[]).well();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("APP"), "{text}");
    let solver = lines
        .iter()
        .find(|line| line.starts_with("cli.Solver"))
        .unwrap();
    let key = sample.keys.solver.short();
    // The expendable result is not saved.
    for part in [" 2.0 ", &key, " order=4 tolerance=1e-9 ", " 3/4 "] {
        assert!(solver.contains(part), "{part}: {text}");
    }
    says(&text, "cli.iterate");
    says(&text, "unfinished");
    assert!(!text.contains(&sample.keys.invalid.short()), "{text}");
    let [count, failed, called] = lines[lines.len() - 3..] else {
        panic!("{text}")
    };
    assert!(count.starts_with("4 entries, "), "{text}");
    assert_eq!(called, "1 run that these called: --nested");
    let nested = sample.run("ls", &["--nested"]).well();
    says(&nested, "\n5 entries, ");
    assert!(!nested.contains("that these called"), "{nested}");
    // The unfinished one.
    assert_eq!(failed, "1 run failed: --failed");
    let all = sample.run("ls", &["--all"]).well();
    says(&all, "replaced");
    says(&all, "invalid");
}

#[test]
fn ls_shows_what_is_asked_for() {
    let sample = Sample::new();
    let keys = |arguments: &[&str]| -> BTreeSet<String> {
        let arguments = [arguments, &["--json"]].concat();
        let text = sample.run("ls", &arguments).well();
        let key = |line: &str| {
            let object: Value = serde_json::from_str(line).unwrap();
            object["key"].as_str().unwrap()[..12].to_owned()
        };
        text.lines().map(key).collect()
    };
    let of = |key: &[sde::Key]| key.iter().map(sde::Key::short).collect::<BTreeSet<_>>();
    let known = &sample.keys;
    let got = keys(&["--app", "cli.energy"]);
    assert_eq!(got, of(&[known.small, known.large]));
    assert_eq!(keys(&["--app", "cli.S*"]), of(&[known.solver]));
    assert_eq!(keys(&["--class", "intermediate"]), of(&[known.solver]));
    assert_eq!(keys(&["--class", "scratch"]).len(), 1);
    assert_eq!(keys(&["--since", "1h"]).len(), 5);
    assert_eq!(keys(&["--until", "1h"]).len(), 0);
    assert_eq!(keys(&["--until", "2020-01-01"]).len(), 0);
    assert_eq!(keys(&["--limit", "2"]).len(), 2);
    let got = keys(&["--sort", "size", "--limit", "1"]);
    assert_eq!(got, of(&[known.solver]));
}

#[test]
fn tables_fit() {
    let sample = Sample::new();
    let key = sample.keys.solver.to_string();
    for command in ["ls", "show", "explain", "verify", "stats", "diff"] {
        for width in [10, 40, 80, 200] {
            let arguments: &[&str] = match command {
                "show" | "explain" => &[&key],
                "diff" => &[sample.path.to_str().unwrap()],
                _ => &[],
            };
            let text = sde_wide(width, sample.line(command, arguments)).well();
            assert!(columns(&text) <= width, "{command} {width}:\n{text}");
        }
    }
    let narrow = sde_wide(40, sample.line("ls", &[])).well();
    assert!(narrow.contains(&sample.keys.solver.short()), "{narrow}");
    let wide = sde_wide(200, sample.line("ls", &[])).well();
    assert!(!wide.contains('…') && wide.contains("LAST USE"), "{wide}");
}

#[test]
fn show_has_all_of_the_record() {
    let sample = Sample::new();
    let text = sample.run("show", &[&sample.keys.solver.short()]).well();
    for part in [
        "app         cli.Solver, version 2.0",
        &format!("key         {}", sample.keys.solver),
        "order  4",
        "tolerance  1e-9",
        "threads  1",
        "slot \"inner\": cli.Inner, version 1",
        "damping  0.5",
        &format!("{} cli.energy", sample.keys.small.short()),
        "positions  Vec<[f64; 3]>, 58 B: [f64; 2 x 3] 0.0, 1.0, 2.0, 4.0, NaN, -0.0",
        "guess      Vec<f64> (intermediate), 28 B: [f64; 3] 1.0, 2.0, 4.0",
        "{weights: [f32; 2] 0.5, 1.5, label: \"a label\", steps: null}",
        "trace      not saved (expendable)",
        "saved       entries/",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    let energy = sample.run("show", &[&sample.keys.large.to_string()]).well();
    says(&energy, "basis   \"6-31G*\"");
    says(&energy, "cite        J. Irreproducible");
    says(&energy, "1 earlier computation of this key: --all");
    let invalid = sample
        .run("show", &[&sample.keys.invalid.to_string()])
        .well();
    says(&invalid, "bad memory in node 7");
}

#[test]
fn explain_names_what_differs() {
    let sample = Sample::new();
    let (small, large) = (sample.keys.small.to_string(), sample.keys.large.to_string());
    let text = sample.run("explain", &[&large, &small]).well();
    assert!(
        text.contains(r#"input "basis": "STO-3G" -> "6-31G*""#),
        "{text}"
    );
    let first = sample
        .run("explain", &[&sample.keys.solver.to_string()])
        .well();
    says(&first, "the first entry of its app");
    let nearest = sample.run("explain", &[&sample.keys.invalid.to_string(), "--json"]);
    let object = nearest.json();
    assert_eq!(object["differences"].as_array().unwrap().len(), 2);
    let again = sample.run("explain", &[&large]).well();
    says(&again, "the same run was computed again");
}

/// Found by using it: an edited app was compared with what it had made of other settings since the edit.
#[test]
fn explain_compares_with_the_run_before_the_edit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let engine = super::kit::engine(&path);
    let [_, _, key] = [("1", 4), ("2", 5), ("2", 4)].map(|(version, order)| {
        let app = super::kit::Solver { order, version };
        engine.request(&app, &::sde::inputs! {}).run().unwrap().key
    });
    drop(engine);
    let text = sde(["explain", path.to_str().unwrap(), &key.to_string()]).well();
    says(&text, "version: \"1\" -> \"2\"");
    assert!(!text.contains("order"), "{text}");
}

/// "The same run was computed again", it said.
#[test]
fn an_entry_compared_with_itself_is_the_same() {
    let sample = Sample::new();
    // The one has one computation, the other an earlier one.
    for key in [sample.keys.small, sample.keys.large] {
        let text = sample.run("explain", &[&key.to_string(), &key.short()]);
        let text = text.well();
        says(&text, "compared with itself");
        assert!(!text.contains("again"), "{text}");
    }
}

/// Each line was as long as the longest name.
#[test]
fn a_long_name_makes_no_other_line_longer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let engine = super::kit::engine(&path);
    long_name.call(&engine).unwrap();
    super::kit::energy.call(&engine, "STO-3G", 0).unwrap();
    engine.finish().unwrap();
    drop(engine);
    let text = sde(["ls", path.to_str().unwrap()]).well();
    let lines: Vec<&str> = text.lines().collect();
    let long = |line: &&&str| line.contains(LONG_NAME);
    assert_eq!(lines.iter().filter(long).count(), 1, "{text}");
    let others = lines.iter().filter(|line| !long(line));
    for line in others {
        assert!(line.len() < LONG_NAME.len(), "{text}");
        assert_eq!(line.trim_end(), *line);
    }
}

const LONG_NAME: &str = "cli.a_name_that_is_longer_than_a_person_would_ever_give_to_anything_at_all_\
                         and_a_file_may_have_one_of_a_million_characters_for_all_that_is_known";

#[sde::app(
    name = "cli.a_name_that_is_longer_than_a_person_would_ever_give_to_anything_at_all_\
            and_a_file_may_have_one_of_a_million_characters_for_all_that_is_known",
    version = "1"
)]
fn long_name() -> f64 {
    1.0
}

#[test]
fn json_can_be_read_and_says_what_is_documented() {
    let sample = Sample::new();
    let key = sample.keys.solver.to_string();
    let path = sample.path.to_str().unwrap();
    let members = |object: &Value| -> BTreeSet<String> {
        object.as_object().unwrap().keys().cloned().collect()
    };
    let documented = |command: &str| -> BTreeSet<String> {
        let (_, tables) = GUIDE.split_once("## JSON\n").unwrap();
        let begins = format!("| `{command}` | ");
        let row = tables.lines().find_map(|line| line.strip_prefix(&begins));
        // What is in parentheses is said of members, not one.
        let parts = row.unwrap().split('(');
        let outside = parts.map(|part| part.rsplit(')').next().unwrap());
        let names = outside.collect::<String>();
        names
            .split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    };
    for (command, arguments) in [
        ("ls", &["--limit", "1"][..]),
        ("table", &["--app", "cli.energy", "-n", "1"]),
        ("show", &[&*key]),
        ("explain", &[&*key]),
        ("verify", &[]),
        ("diff", &[path]),
        ("stats", &[]),
        ("gc", &["--dry-run"]),
        ("doctor", &[]),
    ] {
        let done = sample.run(command, &[arguments, &["--json"]].concat());
        assert_eq!(done.status, 0, "{command}: {}", done.err);
        let mut documented = documented(command);
        if command == "table" {
            documented.extend(["basis", "charge", "result"].map(str::to_owned));
        }
        assert_eq!(members(&done.json()), documented, "{command}");
    }
    let stats = sample.run("stats", &["--json"]).json();
    assert_eq!(stats["unfinished"], 1);
    assert_eq!(stats["invalidated"], 1);
    let last = &stats["programs"][0]["apps"];
    assert!(
        last.as_object().is_some_and(|apps| apps.len() > 1),
        "{last}"
    );
    let at = stats["generations"][0]["written_at"].as_str().unwrap();
    assert!(at.starts_with("20") && at.ends_with('Z'), "{at}");
    let shown = sample.run("show", &[&key, "--json"]).json();
    assert_eq!(shown["record"]["setup"]["slots"][0]["app"], "cli.Inner");
    assert_eq!(shown["results"][1]["short"], "[f64; 3] 1.0, 2.0, 4.0");
}

/// A terminal obeys some characters, whoever wrote them.
#[test]
fn no_control_character_of_a_store_is_printed() {
    let sample = Sample::new();
    let key = sample.keys.evil.to_string();
    for (command, arguments) in [
        ("ls", &[][..]),
        ("ls", &["--json"]),
        ("show", &[&*key]),
        ("show", &[&*key, "--json"]),
        ("explain", &[&*key]),
        ("stats", &[]),
        ("stats", &["--json"]),
        ("verify", &[]),
        ("export", &[&*key, "--format", "json", "-o", "-"]),
        (
            "export",
            &[&*key, "no\u{1b}[2J such", "--format", "json", "-o", "-"],
        ),
    ] {
        let done = sample.run(command, arguments);
        let is_bad = |c: &char| (c.is_control() && *c != '\n') || *c == '\u{202e}';
        for text in [&done.out, &done.err] {
            let got = text.chars().find(is_bad);
            assert_eq!(got, None, "{command} {arguments:?}:\n{text:?}");
        }
    }
}

#[test]
fn what_makes_no_sense_is_status_2() {
    let sample = Sample::new();
    let path = sample.path.to_str().unwrap();
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().to_str().unwrap();
    let file = &format!("{path}/FORMAT");
    for (arguments, said) in [
        (&[][..], "Usage: sde"),
        (&["fly"], "unrecognized subcommand 'fly'"),
        (&["veryfi"], "'verify'"),
        (&["ls"], "which store?"),
        (&["ls", path, "more"], "unexpected argument 'more'"),
        (&["ls", path, "--lmit", "2"], "'--limit'"),
        (&["ls", path, "--since", "soon"], "it is no time"),
        (&["ls", path, "--class", "gold"], "intermediate"),
        (&["ls", path, "-n", "many"], "invalid value 'many'"),
        (
            &["ls", path, "--app", "Nope"],
            "no app here is called \"Nope\"; there are: cli.Solver, cli.energy, cli.evil",
        ),
        (&["table", path, "--app", "Nope*"], "cli.Solver"),
        (
            &["ls", "/nowhere/at/all"],
            "there is nothing; name the directory",
        ),
        (&["ls", file], "it is a file; name the directory"),
        (&["ls", empty], "nothing of a store in it"),
        (&["gc", empty], "nothing of a store in it"),
        (
            &["show", "/nowhere/at/all"],
            "\"/nowhere/at/all\" is no directory",
        ),
        (
            &["gc", path, "--capacity", "much"],
            "--capacity is \"much\"",
        ),
        (&["show", path, "xyz"], "is not a key"),
        (&["show", path, "0123456789abcdef"], "no entry has a key"),
        (&["explain", path], "which entry?"),
        (&["diff", path], "two stores"),
        (
            &["export", path, "00", "--json", "-o", "x.npz"],
            "FILE ends in another format",
        ),
        (
            &["export", path, "00", "--json", "--format", "npz"],
            "cannot be used with",
        ),
        (
            &["export", path, "00", "--json", "--file", "7"],
            "--file is for --format raw",
        ),
        (&["verify", path, "-q", "--json"], "cannot be used with"),
        (
            &["doctor", "/nowhere/at/all"],
            "in /nowhere/at/all nothing can be tried: entity not found; name",
        ),
        (&["completions", "dos"], "zsh"),
    ] {
        let done = sde(arguments);
        assert_eq!(done.status, 2, "{arguments:?}: {}", done.out);
        assert_eq!(done.out, "", "{arguments:?}");
        assert!(done.err.contains(said), "{arguments:?}: {}", done.err);
    }
}

#[test]
fn every_command_has_help_and_its_line_in_the_guide() {
    let all = sde_wide(80, ["--help"]).well();
    let (_, commands) = all.split_once("Commands:\n").unwrap();
    let lines = commands.lines().take_while(|line| !line.is_empty());
    let names = lines.filter(|line| !line.starts_with("   "));
    let names: Vec<&str> = names
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.contains(&"ls") && names.len() > 10, "{all}");
    for name in names.into_iter().filter(|name| *name != "help") {
        let help = sde_wide(80, [name, "--help"]).well();
        says(&help, &format!("Usage: sde {name} "));
        // An ordinary terminal shows it as it is: it lost the ends of long lines.
        assert!(columns(&help) <= 80, "{help}");
        assert!(GUIDE.contains(&format!("\n| `sde {name} ")), "{name}");
    }
    assert!(sde(["--version"]).well().starts_with("sde 0."));
}

#[test]
fn a_shell_is_told_of_all_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = sde(["completions", shell]).well();
        for word in ["explain", "dry-run", "npz"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

/// `sde ls store | head` must not end in a backtrace.
#[test]
fn a_closed_pipe_ends_it_quietly() {
    let sample = Sample::new();
    let (path, key) = (sample.path.to_str().unwrap(), sample.keys.small.to_string());
    for line in [
        &["ls", path][..],
        &["table", path, "--app", "cli.energy"],
        &["table", path, "--app", "cli.energy", "--npz", "-"],
        &["show", path, &key],
        &["explain", path, &key],
        &["export", path, &key, "--json"],
        &["stats", path],
        &["verify", path],
        &["diff", path, path],
        &["gc", path, "-n"],
        &["doctor", path],
        &["completions", "bash"],
        &["completions", "elvish"],
    ] {
        let mut program = program();
        let (reader, writer) = std::io::pipe().unwrap();
        program.args(line).stdout(writer);
        // Closed before anything can be written.
        drop(reader);
        let output = program.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{line:?}");
        assert_eq!(output.status.code(), Some(0), "{line:?}");
    }
}

/// One file with the next version of the format, and a checksum that fits.
fn as_of_a_later_release(file: &std::path::Path) {
    let mut bytes = std::fs::read(file).unwrap();
    assert_eq!(bytes[8..12], [2, 0, 0, 0]);
    bytes[8] = 3;
    if bytes.starts_with(b"SDEstore") {
        let check = blake3::hash(&bytes[..48]);
        bytes[48..64].copy_from_slice(&check.as_bytes()[..16]);
    } else {
        let mut check = blake3::Hasher::new();
        let check = check.update(&bytes[..24]).update(&bytes[56..]).finalize();
        bytes[24..56].copy_from_slice(check.as_bytes());
    }
    std::fs::write(file, bytes).unwrap();
}

/// It was called damaged, and a sound disk was looked into.
#[test]
fn a_file_of_a_later_format_is_passed_over_and_told_of() {
    for kind in ["entries", "scratch", "manifest"] {
        let sample = Sample::new();
        let files = sample.files();
        let is_of_kind = |file: &&std::path::PathBuf| file.to_str().unwrap().contains(kind);
        let file = files.iter().rfind(is_of_kind).unwrap();
        as_of_a_later_release(file);
        let name = file.strip_prefix(&sample.path).unwrap().to_str().unwrap();
        let says = format!("{name} has format 3, which this program does not read");
        for command in ["ls", "stats", "verify"] {
            let done = sample.run(command, &[]);
            let said = done.out + &done.err;
            assert_eq!(done.status, 1, "{command}: {said}");
            assert!(said.contains(&says), "{command}: {said}");
            let said = said.replace("nothing damaged", "");
            assert!(
                !said.contains("damaged") && !said.contains("lost"),
                "{said}"
            );
        }
        let verify = sample.run("verify", &["--json"]).json();
        assert_eq!(verify["other_format"][0]["file"], name);
        assert_eq!(verify["other_format"][0]["format"], 3);
        assert_eq!(verify["damaged"].as_array().unwrap().len(), 0, "{verify}");
        let bytes = std::fs::read(file).unwrap();
        assert_eq!(sample.run("gc", &["--grace", "0s"]).status, 0);
        assert_eq!(std::fs::read(file).unwrap(), bytes, "gc leaves it as it is");
        // With a checksum that does not fit it is damage.
        let mut bytes = bytes;
        bytes[9] = 1;
        std::fs::write(file, bytes).unwrap();
        let verify = sample.run("verify", &["--json"]).json();
        assert_ne!(verify["damaged"].as_array().unwrap().len(), 0, "{name}");
    }
}

#[test]
fn a_later_format_is_told_from_damage() {
    let sample = Sample::new();
    std::fs::write(sample.path.join("FORMAT"), "SDE store, format 7\n").unwrap();
    for command in ["ls", "verify", "stats", "gc"] {
        let done = sample.run(command, &[]);
        assert_eq!(done.status, 2, "{}", done.out);
        says(&done.err, "it has format 7, this program reads format 2");
    }
}
