//! A kept binary as an entry of a store of SDE.
//!
//! It is the record of a run of an app of its own, whose inputs are what people look for: the device, its
//! driver and the options; its results are the full key, what is known of the build, and the binary.

use std::time::Duration;

use sde::key::Digest;
use sde::{
    App, AppError, AppInfo, Codec, ErasedValue, Fingerprint, Handle, Inputs, Key, Record,
    ResultMap, ResultSpec, SavedEntry, SavedResult, Sde, Storable, StoredEntry, Tags, Value,
    inputs,
};
use serde::{Deserialize, Serialize};

use super::{StoredProgram, Wanted};
use crate::driver::DeviceType;
use crate::identity::{FullKey, ProgramKey};

/// The app whose record an entry is. It computes nothing: what it gives is there already.
#[derive(Fingerprint)]
struct Binary {
    #[fingerprint(skip)]
    kept: Option<StoredProgram>,
}

/// What is known of a build.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct About {
    program: ProgramKey,
    name: String,
    device_type: DeviceType,
    kernels: Vec<String>,
    launched: Vec<String>,
    build_time: Duration,
    log: String,
    checksum: Digest,
}

impl App for Binary {
    fn info(&self) -> AppInfo {
        AppInfo::new("sde_opencl.Binary", "1")
            .about("a program built for a device of OpenCL")
            .result(ResultSpec::new::<FullKey>("key"))
            .result(ResultSpec::new::<About>("about"))
            .result(ResultSpec::new::<Vec<u8>>("binary"))
    }

    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        let Some(kept) = &self.kept else {
            return Err(AppError::message("binaries are built by other apps"));
        };
        let about = About {
            program: kept.key,
            name: kept.name.clone(),
            device_type: kept.device_type,
            kernels: kept.kernels.clone(),
            launched: kept.launched.clone(),
            build_time: kept.build_time,
            log: kept.log.clone(),
            checksum: kept.checksum,
        };
        Ok(ResultMap::new()
            .with("key", kept.full.clone())
            .with("about", about)
            .with("binary", kept.binary.clone()))
    }
}

/// What people look for; all of it follows from the program's key.
fn described_by(key: &ProgramKey, full: &FullKey) -> Inputs {
    inputs! {
        device: full.device.name.clone(),
        driver: format!("{} {}", full.device.platform, full.device.driver),
        options: full.options.join(" "),
        program: *key
    }
}

/// The key under which a program is in the store.
pub(super) fn run_key(keys: &Sde, wanted: &Wanted<'_>) -> Result<Key, sde::Error> {
    let inputs = described_by(&wanted.key, wanted.full);
    Ok(keys.peek(&Binary { kept: None }, &inputs)?.key())
}

pub(super) fn saved(program: &StoredProgram) -> Result<SavedEntry, sde::Error> {
    let inputs = described_by(&program.key, &program.full);
    let app = Binary {
        kept: Some(program.clone()),
    };
    // An engine of its own: its record is what is wanted of it, and it keeps nothing alive.
    let sde = Sde::new();
    let results = sde.run(&app, &inputs)?;
    let mut record: Record = sde.records().swap_remove(0);
    record.took = program.build_time;
    Ok(SavedEntry {
        record: record.into(),
        results: vec![
            result("key", results.get::<FullKey>("key")?),
            result("about", results.get::<About>("about")?),
            result("binary", results.get::<Vec<u8>>("binary")?),
        ],
    })
}

/// About how many bytes an entry takes.
pub(super) fn size(program: &StoredProgram) -> u64 {
    /// Names, checksums, and what the frame of an entry has.
    const ABOUT: usize = 2 << 10;
    let bytes = program.binary.len() + program.full.material.length() + program.log.len() + ABOUT;
    bytes as u64
}

fn result<T: Storable>(name: &'static str, value: Value<T>) -> SavedResult {
    SavedResult {
        name: name.into(),
        tags: Tags::NONE,
        value: Some((ErasedValue::from(value), Codec::of::<T>())),
    }
}

/// What an entry says; nothing, with a warning, if a part of it can't be read.
pub(super) fn read(entry: &StoredEntry) -> Option<StoredProgram> {
    let about: Value<About> = part(entry, "about")?;
    let about = About::clone(&about);
    Some(StoredProgram {
        key: about.program,
        full: FullKey::clone(&*part::<FullKey>(entry, "key")?),
        device_type: about.device_type,
        name: about.name,
        binary: Vec::clone(&*part::<Vec<u8>>(entry, "binary")?),
        log: about.log,
        build_time: about.build_time,
        kernels: about.kernels,
        launched: about.launched,
        checksum: about.checksum,
    })
}

fn part<T: Storable>(entry: &StoredEntry, name: &str) -> Option<Value<T>> {
    let found = entry.results.iter().find(|result| result.name == name)?;
    match found.payload.as_ref()?.decode(&Codec::of::<T>()) {
        Ok(value) => value.downcast::<T>(),
        Err(error) => {
            sde::warning!("a kept binary is built anew, its {name} can't be read: {error}");
            None
        }
    }
}
