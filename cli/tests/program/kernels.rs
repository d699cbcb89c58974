//! Kernel caches, as the crate `sde-opencl` makes them. This package knows nothing of that crate: the store
//! here has entries of the same form, and a test of that crate (`what_the_program_sde_reads_is_there`) holds
//! it to the form.

use std::path::{Path, PathBuf};

use sde::{
    App, AppError, AppInfo, Fingerprint, Handle, Inputs, Key, ResultMap, ResultSpec, SavePolicy,
    Sde, inputs,
};
use sde_archives::{DirStore, Options};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::kit::{Done, sde, sde_wide};

#[derive(Clone, Serialize, Deserialize)]
struct Device {
    platform: String,
    name: String,
    driver: String,
}

#[derive(Clone, Serialize, Deserialize)]
struct FullKey {
    device: Device,
    options: Vec<String>,
}

#[derive(Clone, Serialize, Deserialize)]
enum DeviceType {
    Gpu,
}

#[derive(Clone, Serialize, Deserialize)]
struct About {
    name: String,
    device_type: DeviceType,
    kernels: Vec<String>,
    launched: Vec<String>,
    log: String,
}

/// A program of so many bytes.
#[derive(Fingerprint)]
struct Binary {
    bytes: usize,
}

impl App for Binary {
    fn info(&self) -> AppInfo {
        AppInfo::new("sde_opencl.Binary", "1")
            .result(ResultSpec::new::<FullKey>("key"))
            .result(ResultSpec::new::<About>("about"))
            .result(ResultSpec::new::<Vec<u8>>("binary"))
    }

    fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let device = Device {
            platform: "Large Platform".to_owned(),
            name: inputs.get::<String>("device")?.clone(),
            driver: "7.1".to_owned(),
        };
        let about = About {
            name: format!("product {}", self.bytes),
            device_type: DeviceType::Gpu,
            kernels: vec!["product".to_owned(), "sum\u{1b}[2J".to_owned()],
            launched: vec!["product".to_owned()],
            log: "1 warning generated.".to_owned(),
        };
        let options = vec!["-DTILE=8".to_owned(), "-cl-mad-enable".to_owned()];
        Ok(ResultMap::new()
            .with("key", FullKey { device, options })
            .with("about", about)
            .with("binary", vec![7_u8; self.bytes]))
    }
}

struct Cache {
    folder: tempfile::TempDir,
    keys: Vec<Key>,
}

impl Cache {
    /// Two programs, of which the second is used twice.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("locks")).unwrap();
        let open = || Options::new().open(folder.path().join("store"));
        let run = |store: DirStore, bytes: usize| {
            let sde = Sde::builder().store(store).save(SavePolicy::EveryResult);
            let sde = sde.build().unwrap();
            let inputs = inputs! { device: "A Large Device".to_owned() };
            let key = sde.request(&Binary { bytes }, &inputs).run().unwrap().key;
            sde.finish().unwrap();
            key
        };
        let keys = [300, 5000].map(|bytes| run(open().unwrap(), bytes));
        for _ in 0..2 {
            run(open().unwrap(), 5000);
        }
        Self {
            folder,
            keys: keys.to_vec(),
        }
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
fn ls_tells_of_devices_kernels_and_uses() {
    let cache = Cache::new();
    let text = cache.run("ls", &["--sort", "size"]).well();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>(),
        [
            "PROGRAM", "KEY", "DEVICE", "DRIVER", "OPTIONS", "KERNELS", "SIZE", "BUILD", "HITS",
            "LAST", "USE", "(UTC)"
        ]
    );
    for (line, name, key) in [
        (lines[1], "product 5000", cache.keys[1]),
        (lines[2], "product 300", cache.keys[0]),
    ] {
        assert!(
            line.starts_with(name) && line.contains(&key.short()),
            "{text}"
        );
        for word in [
            "A Large Device",
            "Large Platform 7.1",
            "-DTILE=8 -cl-mad-enable",
            "product sum",
        ] {
            assert!(line.contains(word), "{word}: {text}");
        }
    }
    assert!(lines[1].contains("  2  20"), "two hits, and when: {text}");
    assert!(lines[2].trim_end().ends_with(" 0"), "{text}");
    assert!(lines[3].starts_with("2 programs, "), "{text}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn the_table_fits_the_terminal_and_keeps_what_matters() {
    let cache = Cache::new();
    for columns in [60, 80, 132] {
        let text = sde_wide(columns, cache.line("ls", &[])).well();
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest.unwrap() <= columns, "{columns}:\n{text}");
        for title in ["PROGRAM", "KEY", "SIZE", "BUILD"] {
            assert!(
                text.lines().next().unwrap().contains(title),
                "{columns}: {title}\n{text}"
            );
        }
    }
}

#[test]
fn ls_and_show_say_it_in_json_too() {
    let cache = Cache::new();
    let text = cache.run("ls", &["--json", "--sort", "size"]).well();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let shown = cache
        .run("show", &[&cache.keys[1].to_string(), "--json"])
        .json();
    assert_eq!(first["key"].as_str().unwrap(), cache.keys[1].to_string());
    for program in [&first["program"], &shown["program"]] {
        assert_eq!(program["name"], "product 5000");
        assert_eq!(program["device"], "A Large Device");
        assert_eq!(program["device_type"], "gpu");
        assert_eq!(program["driver"], "Large Platform 7.1");
        assert_eq!(program["options"], "-DTILE=8 -cl-mad-enable");
        assert_eq!(program["kernels"].as_array().unwrap().len(), 2);
        assert_eq!(program["launched"].as_array().unwrap().len(), 1);
        assert!(program["binary_bytes"].as_u64().unwrap() >= 5000);
        assert!(program["build_seconds"].as_f64().unwrap() > 0.0);
        assert_eq!(program["hits"], 2);
        assert!(program["last_use"].as_str().unwrap().ends_with('Z'));
    }
}

#[test]
fn show_tells_of_the_build() {
    let cache = Cache::new();
    let text = cache.run("show", &[&cache.keys[1].short()]).well();
    for line in [
        "program     product 5000",
        "device      A Large Device (gpu)",
        "driver      Large Platform 7.1",
        "options     -DTILE=8 -cl-mad-enable",
        "used        2 times, last 20",
        "log         1 warning generated.",
    ] {
        assert!(text.contains(line), "{line}:\n{text}");
    }
    assert!(
        text.contains("launched before it was kept: product"),
        "{text}"
    );
    let text = cache.run("show", &[&cache.keys[0].short()]).well();
    assert!(text.contains("not since it was kept"), "{text}");
}

fn segments(cache: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(cache.join("store").join("entries")).unwrap();
    files.map(|file| file.unwrap().path()).collect()
}

#[test]
fn verify_finds_a_flipped_byte_and_ls_says_which_program_it_is_of() {
    let cache = Cache::new();
    assert!(cache.run("verify", &[]).well().starts_with("whole: "));
    // In the text of the smaller program's options.
    let mut damaged = 0;
    for path in segments(cache.path()) {
        let mut bytes = std::fs::read(&path).unwrap();
        let is_small = bytes.windows(11).any(|part| part == b"product 300");
        if let (true, Some(at)) = (
            is_small,
            bytes.windows(8).position(|part| part == b"-DTILE=8"),
        ) {
            bytes[at] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            damaged += 1;
        }
    }
    assert_eq!(damaged, 1);
    let done = cache.run("verify", &[]);
    assert_eq!(done.status, 1, "{}", done.out);
    let of = format!("(entry {})", cache.keys[0].short());
    assert!(done.out.contains(&of), "{}", done.out);
    let done = cache.run("ls", &[]);
    assert_eq!(done.status, 1, "{}", done.out);
    assert!(done.err.contains(&of), "{}", done.err);
    assert!(done.out.contains("product 5000"), "{}", done.out);
}

/// In any other store results are given up only if that is asked for.
#[test]
fn gc_gives_up_the_program_that_was_used_longest_ago() {
    let cache = Cache::new();
    let limit = ["--max-bytes", "6K", "--grace", "0s"];
    let dry = cache
        .run("gc", &[&limit[..], &["--dry-run", "--json"]].concat())
        .json();
    assert_eq!(dry["given_up"], 1, "{dry}");
    assert_eq!(cache.run("ls", &[]).well().lines().count(), 4);
    let done = cache.run("gc", &[&limit[..], &["--json"]].concat()).json();
    assert_eq!(done["given_up"], 1, "{done}");
    let left = cache.run("ls", &[]).well();
    assert!(
        left.contains("product 5000") && !left.contains("product 300"),
        "{left}"
    );
    assert!(left.contains("  2  20"), "its uses are still known: {left}");
    cache.run("verify", &[]).well();
}
