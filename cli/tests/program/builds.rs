//! A store of builds, as the crate `sde-opencl` keeps one: what was given, what is readable, and how often it was used.

use std::path::{Path, PathBuf};

use sde::{
    App, AppError, AppInfo, Fingerprint, Handle, Inputs, Instance, Key, Parameter, ResultMap,
    ResultSpec, SavePolicy, Sde, inputs,
};
use sde_archives::{Retention, StoreOptions};

use super::kit::{Done, sde, sde_wide};

#[derive(Clone, Fingerprint)]
struct Build;

impl App for Build {
    fn info(&self) -> AppInfo {
        AppInfo::new("cli.Build", "1")
            .parameter(Parameter::new("name", String::new()).transparent())
            .result(ResultSpec::new::<Vec<u8>>("binary"))
            .result(ResultSpec::new::<String>("log"))
            .result(ResultSpec::new::<Vec<String>>("kernels"))
    }

    fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let kernels = vec!["product".to_owned(), "sum\u{1b}[2J".to_owned()];
        Ok(ResultMap::new()
            .with("binary", vec![7_u8; *inputs.get::<usize>("length")?])
            .with("log", "2 warnings:\nunused \u{1b}[2Jvariable\n".to_owned())
            .with("kernels", kernels))
    }
}

/// Two builds, of which the second is used twice, in a store that may have 1 MiB.
struct Cache {
    folder: tempfile::TempDir,
    keys: [Key; 2],
}

impl Cache {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let build = |length: usize| {
            let retention = Retention::new().capacity(1 << 20).results();
            let store = StoreOptions::new()
                .retention(retention)
                .open(folder.path())
                .unwrap();
            let sde = Sde::builder().store(store).save(SavePolicy::EveryResult);
            let sde = sde.build().unwrap();
            let app = Instance::new(Build).set("name", format!("product {length}"));
            let inputs = inputs! {
                device: "A Large Device".to_owned(),
                options: "-DTILE=8 -cl-mad-enable".to_owned(),
                length: length,
            };
            let key = sde.request(&app.unwrap(), &inputs).run().unwrap().key;
            sde.finish().unwrap();
            key
        };
        let keys = [300, 5000].map(build);
        build(5000);
        build(5000);
        Self { folder, keys }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn line(&self, command: &str, more: &[&str]) -> Vec<String> {
        let path = self.path().to_str().unwrap();
        let all = [command, path].into_iter().chain(more.iter().copied());
        all.map(str::to_owned).collect()
    }

    fn run(&self, command: &str, more: &[&str]) -> Done {
        sde(self.line(command, more))
    }
}

#[test]
fn ls_tells_of_inputs_and_uses() {
    let cache = Cache::new();
    let text = cache.run("ls", &["--sort", "size"]).well();
    let lines: Vec<&str> = text.lines().collect();
    for (line, name, key) in [
        (lines[1], "name=product 5000", cache.keys[1]),
        (lines[2], "name=product 300", cache.keys[0]),
    ] {
        for word in [
            name,
            &key.short(),
            "device=A Large Device",
            "options=-DTILE=8 -cl-mad-enable",
        ] {
            assert!(line.contains(word), "{word}: {text}");
        }
    }
    assert!(lines[1].contains("  2  20"), "two hits, and when: {text}");
    assert!(lines[2].ends_with('s'), "nothing after its cost: {text}");
    for columns in [60, 80, 132] {
        let text = sde_wide(columns, cache.line("ls", &[])).well();
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest.unwrap() <= columns, "{columns}:\n{text}");
        // What is the same in all lines tells the least.
        for part in ["APP", "KEY", "INPUTS", "  name=product 300 length=300 "] {
            assert!(text.contains(part), "{columns}: {part}\n{text}");
        }
    }
}

#[test]
fn ls_and_show_say_it_in_json_too() {
    let cache = Cache::new();
    let text = cache.run("ls", &["--json", "--sort", "size"]).well();
    let listed: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let shown = cache.run("show", &[&cache.keys[1].to_string(), "--json"]);
    let inputs = &listed["inputs"];
    assert_eq!(inputs["device"], "A Large Device");
    let got = (&inputs["length"], &listed["settings"]["name"]);
    assert_eq!(got, (&5000.into(), &"product 5000".into()));
    let other: serde_json::Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
    let got = (&other["hits"], &other["last_use"]);
    assert_eq!(got, (&0.into(), &().into()));
    for object in [&listed, &shown.json()] {
        assert_eq!(object["hits"], 2);
        assert!(object["last_use"].as_str().unwrap().ends_with('Z'));
    }
}

#[test]
fn show_has_short_texts_as_they_are() {
    let cache = Cache::new();
    let text = cache.run("show", &[&cache.keys[1].short()]).well();
    for part in [
        "used        2 times, last 20",
        "\n      2 warnings:\n      unused \\u{1b}[2Jvariable\n",
        ": product, sum\\u{1b}[2J\n",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let text = cache.run("show", &[&cache.keys[0].short()]).well();
    assert!(!text.contains("\nused"), "{text}");
}

fn segments(cache: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(cache.join("entries")).unwrap();
    files.map(|file| file.unwrap().path()).collect()
}

#[test]
fn verify_finds_a_flipped_byte_and_ls_says_of_which_entry_it_is() {
    let cache = Cache::new();
    assert!(cache.run("verify", &[]).well().starts_with("whole: "));
    let mut damaged = 0;
    for path in segments(cache.path()) {
        let mut bytes = std::fs::read(&path).unwrap();
        // In the log of the smaller one, which is in the body of its frame.
        let is_small = bytes.windows(11).any(|part| part == b"product 300");
        let log = bytes.windows(8).position(|part| part == b"warnings");
        if let (true, Some(at)) = (is_small, log) {
            bytes[at] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            damaged += 1;
        }
    }
    assert_eq!(damaged, 1);
    let of = format!("(entry {})", cache.keys[0].short());
    let done = cache.run("verify", &[]);
    assert_eq!(done.status, 1, "{}", done.out);
    assert!(done.out.contains(&of), "{}", done.out);
    let done = cache.run("ls", &[]);
    assert_eq!(done.status, 1, "{}", done.out);
    assert!(done.err.contains(&of), "{}", done.err);
    assert!(done.out.contains("product 5000"), "{}", done.out);
}

#[test]
fn gc_gives_up_the_result_that_was_used_longest_ago() {
    let cache = Cache::new();
    let limit = ["--results", "--capacity", "6K", "--grace", "0s", "--json"];
    let dry = cache.run("gc", &[&limit[..], &["-n"]].concat()).json();
    assert_eq!(dry["given_up"], 1, "{dry}");
    assert_eq!(cache.run("ls", &[]).well().lines().count(), 4);
    let done = cache.run("gc", &limit).json();
    assert_eq!(done["given_up"], 1, "{done}");
    let left = cache.run("ls", &[]).well();
    assert!(
        left.contains("product 5000") && !left.contains("product 300"),
        "{left}"
    );
    assert!(left.contains("  2  20"), "its uses are still known: {left}");
    cache.run("verify", &[]).well();
}

/// What `ccache -s` says.
#[test]
fn stats_begins_with_hits_time_and_room() {
    let cache = Cache::new();
    let object = cache.run("stats", &["--json"]).json();
    let total = &object["total"];
    let got = (&total["computed"], &total["loads"]);
    assert_eq!(got, (&2.into(), &2.into()));
    assert!(total["time_saved"].as_f64().unwrap() > 0.0);
    let bytes = |class: usize| object["classes"][class]["bytes"].as_u64().unwrap();
    let (allowed, used) = (&object["allowed"], bytes(0) + bytes(1) + bytes(2));
    let got = (&allowed["bytes"], &allowed["used"]);
    assert_eq!(got, (&(1 << 20).into(), &used.into()));
    let text = cache.run("stats", &[]).well();
    let lines: Vec<&str> = text.lines().collect();
    let hits = "hits      2 of 4 calls, 50.0 %: 0 in memory, 2 loaded, 0 from another thread";
    assert_eq!(
        lines[..2],
        [hits, "misses    2 computed; 0 more ended by an error"]
    );
    assert!(
        lines[2].starts_with("time      ") && lines[2].ends_with(" saved"),
        "{text}"
    );
    assert!(
        lines[3].ends_with(" of 1.0 MiB allowed for values"),
        "{text}"
    );
    // The environment says more than what a program told.
    let mut program = super::kit::program();
    program.args(cache.line("stats", &["--json"]));
    program.env("SDE_STORE_CAPACITY", "2G");
    let object = super::kit::done(program.output().unwrap()).json();
    assert_eq!(object["allowed"]["bytes"], 2_u64 << 30);
    assert_eq!(object["allowed"]["used"], bytes(1) + bytes(2));
}
