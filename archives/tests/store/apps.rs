//! Apps that the tests run, and engines to run them.

use std::path::Path;

use sde::archiver::{Batch, Codec, SavedScratch, Selection};
use sde::key::TypeWriter;
use sde::key::{Encoder, FingerprintError};
use sde::record::Record;
use sde::{
    App, AppError, AppInfo, ErasedValue, EventLog, Fingerprint, Handle, Inputs, Key, ResultMap,
    ResultSpec, SavePolicy, Sde, Storable, Tag, Value,
};
use sde_archives::StoreOptions;
use tempfile::TempDir;

/// The records of an engine, in the order they were made.
pub fn records(sde: &Sde) -> Vec<Record> {
    let mut all = Vec::new();
    sde.records(|record| all.push(record.clone()));
    all
}

/// An engine on a store that saves each result, or when asked.
pub fn engine(dir: &Path, policy: SavePolicy) -> (Sde, EventLog) {
    let log = EventLog::new();
    let sde = Sde::builder()
        .store(StoreOptions::new().without_uses().open(dir).unwrap())
        .save(policy)
        .observer(log.clone())
        .build()
        .unwrap();
    (sde, log)
}

/// A folder, and such an engine on a store in it.
pub fn fresh(policy: SavePolicy) -> (TempDir, Sde) {
    let dir = tempfile::tempdir().unwrap();
    let (sde, _) = engine(dir.path(), policy);
    (dir, sde)
}

/// Gives back what it was made with, under a result of this name; fails if it was
/// made with nothing, so that a value can only come from the store.
pub struct Echo<T> {
    pub app: &'static str,
    pub value: Option<Value<T>>,
}

impl<T> Fingerprint for Echo<T> {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.structure("Echo", |_| Ok(()))
    }
    fn shape(to: &mut TypeWriter<'_, '_>) {
        to.declared("Echo", 0);
    }
}

impl<T: Storable> App for Echo<T> {
    fn info(&self) -> AppInfo {
        AppInfo::new(self.app, "1").result(ResultSpec::new::<T>("value"))
    }
    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        match &self.value {
            Some(value) => Ok(ResultMap::new().with_value("value", value.clone())),
            None => Err(AppError::message("it was to come from the store")),
        }
    }
}

/// Has a result of each kind.
#[derive(Fingerprint)]
pub struct Table;

impl App for Table {
    fn info(&self) -> AppInfo {
        AppInfo::new("Table", "1")
            .result(ResultSpec::new::<f64>("sum"))
            .result(ResultSpec::new::<Vec<f64>>("squares").tagged(Tag::Intermediate))
            .result(ResultSpec::new::<String>("text").tagged(Tag::Expendable))
    }
    fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let n = *inputs.get::<u64>("n")?;
        let squares: Vec<f64> = (0..=n).map(|x| (x * x) as f64).collect();
        Ok(ResultMap::new()
            .with("sum", squares.iter().sum::<f64>())
            .with("text", format!("{squares:?}"))
            .with("squares", squares))
    }
}

/// The logistic map: chaotic, so that any lost bit of its state shows.
#[sde::app]
pub fn orbit(sde: &Handle, start: f64, steps: u64) -> Result<f64, AppError> {
    let scratch = sde.scratch::<(u64, f64)>();
    let (mut step, mut x) = scratch.resume_or(|| (0, start))?;
    super::child::tell(format_args!("from {step}"));
    while step < steps {
        x = 3.99 * x * (1.0 - x);
        step += 1;
        scratch.save((step, x))?;
        super::child::tell(format_args!("state {step}"));
        super::child::stop_if("stop_at_state", step);
    }
    Ok(x)
}

/// As [`orbit`], without anything of ours in between.
pub fn plain_orbit(mut x: f64, steps: u64) -> f64 {
    for _ in 0..steps {
        x = 3.99 * x * (1.0 - x);
    }
    x
}

/// A batch of a state of a run that has not ended.
pub fn state<T: Storable>(key: Key, value: T) -> Batch {
    let (value, codec) = (ErasedValue::new(value), Codec::of::<T>());
    let mut batch = Batch::new(Selection::Checkpoint);
    batch.scratch = vec![SavedScratch::new("unfinished", key, value, codec)];
    batch
}

/// A kilobyte that depends on the number.
#[sde::app]
pub fn page(number: u64) -> Vec<u64> {
    expected_page(number)
}

pub fn expected_page(number: u64) -> Vec<u64> {
    (0..128)
        .map(|i| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ i)
        .collect()
}
