//! Kernel caches: stores of programs that were built for devices.
//!
//! The crate `sde-opencl` keeps an entry for each program, of an app of its own. Whoever looks at such a store
//! asks other questions than of a calculation: for which device and driver it was built, with which options, what
//! kernels it has, how long the build took, and whether anybody still uses it. The answers are in the entry's
//! results; they are read here without their types, as all values are.

use std::collections::HashMap;
use std::time::Duration;

use sde::Key;
use sde_archives::inspect::{Entry, EntryUses, Item, Listed, Value};
use serde_json::{Value as Json, json};

use crate::store::Store;
use crate::table::Column;
use crate::{text, time};

/// The app whose entries these are.
pub const APP: &str = "sde_opencl.Binary";

/// Sources and what is told of a build are not longer.
const LONGEST: u64 = 64 << 20;

/// What is known of a program that was built.
#[derive(Default)]
pub struct Program {
    pub name: String,
    pub device: String,
    pub driver: String,
    /// What kind of device it is.
    pub kind: String,
    pub options: String,
    pub kernels: Vec<String>,
    /// Those for which the binary has finished code.
    pub launched: Vec<String>,
    pub build: Duration,
    pub log: String,
    /// How long the binary is.
    pub bytes: u64,
    /// Whether what is told of it could be read.
    pub is_readable: bool,
}

impl Program {
    /// Of an entry, if it is one of a kernel cache.
    pub fn of(entry: &Entry) -> Option<Self> {
        if &*entry.record.app != APP {
            return None;
        }
        let payload = |name: &str| {
            let mut results = entry.results.iter();
            results.find(|saved| saved.name == name)?.payload.as_ref()
        };
        let value = |name: &str| payload(name)?.value(LONGEST).ok();
        let (key, about) = (value("key"), value("about"));
        let mut program = Self {
            bytes: payload("binary").map_or(0, |binary| binary.length()),
            build: entry.record.took,
            is_readable: key.is_some() && about.is_some(),
            ..Self::default()
        };
        match (key, about) {
            (Some(key), Some(about)) => program.read(&key, &about),
            _ => program.read_inputs(entry),
        }
        Some(program)
    }

    fn read(&mut self, key: &Value, about: &Value) {
        let text = |value: Option<&Value>| match value {
            Some(Value::Text(text)) => text.clone(),
            _ => String::new(),
        };
        let texts = |value: Option<&Value>| match value {
            Some(Value::List(items)) => items.iter().map(|item| text(Some(item))).collect(),
            _ => Vec::new(),
        };
        self.name = text(field(about, "name"));
        self.kind = text(field(about, "device_type")).to_lowercase();
        self.kernels = texts(field(about, "kernels"));
        self.launched = texts(field(about, "launched"));
        self.log = text(field(about, "log"));
        self.options = texts(field(key, "options")).join(" ");
        let device = |name| text(field(key, "device").and_then(|device| field(device, name)));
        self.device = device("name");
        self.driver = format!("{} {}", device("platform"), device("driver"));
    }

    /// What the record says, if no more can be read.
    fn read_inputs(&mut self, entry: &Entry) {
        let input = |name: &str| {
            let mut inputs = entry.record.inputs.iter();
            let found = inputs.find(|input| input.name == name);
            found.map_or(String::new(), |input| {
                input.short.trim_matches('"').to_owned()
            })
        };
        self.device = input("device");
        self.driver = input("driver");
        self.options = input("options");
    }

    /// For JSON.
    pub fn object(&self, uses: Option<&EntryUses>) -> Json {
        json!({
            "name": self.name,
            "device": self.device,
            "device_type": self.kind,
            "driver": self.driver,
            "options": self.options,
            "kernels": self.kernels,
            "launched": self.launched,
            "binary_bytes": self.bytes,
            "build_seconds": self.build.as_secs_f64(),
            "hits": uses.map_or(0, |uses| uses.count),
            "last_use": uses.map(|uses| time::iso_of_nanos(uses.last)),
        })
    }

    /// For a person: names and values.
    pub fn fields(&self, uses: Option<&EntryUses>) -> Vec<(&'static str, String)> {
        let with_code = match self.launched.len() {
            0 => String::new(),
            _ => format!(
                "; launched before it was kept: {}",
                self.launched.join(", ")
            ),
        };
        let used = match uses {
            Some(uses) => {
                let times = text::count(
                    usize::try_from(uses.count).unwrap_or(usize::MAX),
                    "time",
                    "times",
                );
                format!("{times}, last {} UTC", time::of_nanos(uses.last))
            }
            None => "not since it was kept, as far as is recorded".to_owned(),
        };
        vec![
            ("program", self.name.clone()),
            ("device", format!("{} ({})", self.device, self.kind)),
            ("driver", self.driver.clone()),
            ("options", self.options.clone()),
            ("kernels", format!("{}{with_code}", self.kernels.join(", "))),
            (
                "binary",
                format!(
                    "{}, built in {}",
                    text::size(self.bytes),
                    text::duration(self.build)
                ),
            ),
            ("used", used),
            ("log", self.log.clone()),
        ]
    }

    /// The cells of a line of [`COLUMNS`].
    pub fn cells(&self, key: &Key, uses: Option<&EntryUses>, state: &str) -> Vec<String> {
        vec![
            self.name.clone(),
            key.short(),
            self.device.clone(),
            self.driver.clone(),
            self.options.clone(),
            self.kernels.join(" "),
            text::size(self.bytes),
            text::duration(self.build),
            uses.map_or(0, |uses| uses.count).to_string(),
            uses.map_or(String::new(), |uses| {
                time::of_nanos(uses.last).chars().take(16).collect()
            }),
            match (self.is_readable, state) {
                (false, "") => "damaged".to_owned(),
                _ => state.to_owned(),
            },
        ]
    }
}

/// What a line of a listing shows.
pub const COLUMNS: [Column; 11] = [
    Column::new("PROGRAM", 10).least(18),
    Column::new("KEY", 11).least(12),
    Column::new("DEVICE", 8).least(10),
    Column::new("DRIVER", 2).least(10),
    Column::new("OPTIONS", 3).least(10),
    Column::new("KERNELS", 4).least(8),
    Column::new("SIZE", 7).right(),
    Column::new("BUILD", 6).right(),
    Column::new("HITS", 5).right(),
    Column::new("LAST USE (UTC)", 1),
    Column::new("STATE", 9),
];

fn field<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    let Value::Map(pairs) = value else {
        return None;
    };
    let is_it = |(key, _): &&(Value, Value)| matches!(key, Value::Text(text) if text == name);
    pairs.iter().find(is_it).map(|(_, value)| value)
}

/// How often each entry was used, and when last.
#[derive(Default)]
pub struct Uses(HashMap<u64, EntryUses>);

impl Uses {
    /// What a store says of them.
    pub fn of_store(store: &mut Store) -> Self {
        let mut uses = Self::default();
        store.walk_wanted(Some(&Listed::is_uses), |_, item| {
            if let Item::Uses { uses: of_frame, .. } = item {
                uses.add(of_frame);
            }
        });
        uses
    }

    /// Adds what one frame says.
    fn add(&mut self, uses: Vec<EntryUses>) {
        for one in uses {
            self.0
                .entry(one.prefix)
                .and_modify(|known| {
                    // What a file says of itself may be anything.
                    known.count = known.count.saturating_add(one.count);
                    known.last = known.last.max(one.last);
                })
                .or_insert(one);
        }
    }

    pub fn of(&self, key: &Key) -> Option<&EntryUses> {
        let (first, _) = key.as_bytes().split_first_chunk()?;
        self.0.get(&u64::from_be_bytes(*first))
    }
}
