//! A build as an app, whose results are the binary and its facts.

use std::ops::RangeInclusive;
use std::time::Duration;

use sde::{
    App, AppError, AppInfo, Cost, Fingerprint, Handle, Inputs, MemorySize, Parameter, ResultMap,
    ResultSpec, inputs,
};

use super::{Facts, Kept};
use crate::Error;
use crate::identity::{Descriptor, FullKey};

/// A build of a program. The skipped fields are covered by its inputs, through the program's key.
#[derive(Fingerprint)]
pub(super) struct Build {
    #[fingerprint(skip)]
    pub(super) program: Descriptor,
    #[fingerprint(skip)]
    pub(super) make: Box<Make>,
    /// The lengths of binaries that are kept.
    #[fingerprint(skip)]
    pub(super) lengths: RangeInclusive<u64>,
    /// The longest wait of other processes for it.
    #[fingerprint(skip)]
    pub(super) patience: Duration,
}

/// Builds the program, or captures a live one.
type Make = dyn Fn() -> Result<Kept, Error> + Send + Sync;

impl Build {
    pub(super) const NAME: &'static str = "sde_opencl.Build";

    /// The names of its results.
    pub(super) const RESULTS: [&'static str; 6] = [
        "binary",
        "key",
        "log",
        "kernels",
        "launched",
        "build_seconds",
    ];

    /// The inputs that people look for; all of them follow from the program's key.
    pub(super) fn inputs(&self) -> Inputs {
        let full = self.program.full_key();
        inputs! {
            device: full.device.name.clone(),
            driver: format!("{} {}", full.device.platform, full.device.driver),
            options: full.options.clone(),
            program: self.program.key()
        }
    }
}

impl App for Build {
    fn info(&self) -> AppInfo {
        let name = self.program.name().to_owned();
        AppInfo::new(Self::NAME, "1")
            .forgets_failures()
            .about("a program of OpenCL, built for a device")
            .parameter(Parameter::new("name", name).transparent())
            // A later capture has other code, and each build took another time.
            .result(ResultSpec::new::<Vec<u8>>("binary").not_compared())
            .result(ResultSpec::new::<FullKey>("key").sized::<FullKey>())
            .result(
                ResultSpec::new::<String>("log")
                    .sized::<String>()
                    .not_compared(),
            )
            .result(ResultSpec::new::<Vec<String>>("kernels").sized::<Vec<String>>())
            .result(
                ResultSpec::new::<Vec<String>>("launched")
                    .sized::<Vec<String>>()
                    .not_compared(),
            )
            .result(ResultSpec::new::<f64>("build_seconds").not_compared())
    }

    fn run(&self, sde: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        let kept = (self.make)();
        let kept = kept.map_err(|error| error.for_store(&self.program))?;
        // A later capture is worth the time of the build, not its own.
        sde.took(kept.facts.build_time);
        let length = kept.binary.len() as u64;
        if length == 0 || !self.lengths.contains(&length) {
            return Err(NotKept.into());
        }
        Ok(ResultMap::new()
            .with("binary", kept.binary)
            .with("key", kept.full)
            .with("log", kept.facts.log)
            .with("kernels", kept.facts.kernels)
            .with("launched", kept.launched)
            .with("build_seconds", kept.facts.build_time.as_secs_f64()))
    }

    /// A long time, so that the run is announced to other processes before it begins. A nested run waits for twice its
    /// cost, so half the patience makes it wait for all of it.
    fn cost(&self, _: &Inputs) -> Option<Cost> {
        Some(Cost::new((self.patience / 2).max(Duration::from_secs(1))))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("its driver gives no binary, or one of a length that is not kept")]
pub(crate) struct NotKept;

impl Kept {
    /// The results of such a run.
    pub(super) fn of(results: &ResultMap) -> Result<Self, sde::Error> {
        let seconds = *results.get::<f64>("build_seconds")?;
        Ok(Self {
            full: FullKey::clone(&*results.get("key")?),
            binary: Vec::clone(&*results.get("binary")?),
            facts: Facts {
                log: String::clone(&*results.get("log")?),
                build_time: Duration::try_from_secs_f64(seconds).unwrap_or_default(),
                kernels: Vec::clone(&*results.get("kernels")?),
            },
            launched: Vec::clone(&*results.get("launched")?),
        })
    }
}

impl MemorySize for FullKey {
    fn memory_size(&self) -> usize {
        self.material.length()
    }
}
