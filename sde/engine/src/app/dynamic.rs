//! Apps whose body is a closure: those of programs in other languages, of commands and plug-ins.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::Handle;
use super::definition::App;
use super::info::{AppInfo, Cost};
use crate::error::AppError;
use crate::inputs::Inputs;
use crate::key::{Encoder, Fingerprint, FingerprintError, Short};
use crate::result_map::{Data, ResultMap, ResultSpec};

type Body = dyn Fn(&Handle, &Inputs) -> Result<ResultMap, AppError> + Send + Sync;

/// An app that is made at run time of a description and a closure.
///
/// It has the keys of any app: its name, its [code](AppInfo::with_code), its parameters and slots, and what it
/// [captures](Self::capturing). The closure itself is in no key: who makes the app says what its code is.
///
/// If its description [declares](AppInfo::input) inputs, its body gets them in the declared types. Otherwise the body
/// gets them without Rust types: an `f64` becomes a [`Data::Float`], since both have one key. [`Inputs::get`] then gives
/// it as `&f64` and as `&Data`. Inputs of types that [`Data`] does not have stay as they are.
///
/// Its results are those that the description declares; if it declares none, one `result`, which is any [`Data`]. A
/// value without a Rust type becomes one of the declared type, if it is one.
///
/// ```
/// use sde::key::commit;
/// use sde::{AppInfo, Data, DynApp, ResultMap, Sde, inputs};
/// use sde::record::CodeId;
///
/// // What a program in another language knows of its function.
/// let text = "lambda x: factor * x";
/// let info = AppInfo::with_code("doc.scaled", CodeId::Source(commit(text)?.digest()));
/// let scaled = DynApp::new(info, |_, inputs| {
///     Ok(ResultMap::new().with("result", Data::Float(3.0 * inputs.get::<f64>("x")?)))
/// })
/// .capturing("factor", Data::Float(3.0));
///
/// let sde = Sde::new();
/// assert_eq!(*sde.run(&scaled, &inputs! { x: 2.0 })?.get::<f64>("result")?, 6.0);
/// sde.run(&scaled, &inputs! { x: Data::Float(2.0) })?;
/// assert_eq!(sde.stats().total.computed, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct DynApp {
    info: AppInfo,
    captured: BTreeMap<String, Data>,
    cost: Option<Cost>,
    body: Arc<Body>,
}

impl DynApp {
    /// An app with this description and this body.
    pub fn new(
        info: AppInfo,
        body: impl Fn(&Handle, &Inputs) -> Result<ResultMap, AppError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            info: match info.results().is_empty() {
                true => info.result(ResultSpec::data("result")),
                false => info,
            },
            captured: BTreeMap::new(),
            cost: None,
            body: Arc::new(body),
        }
    }

    /// Adds a value that the body has captured to the app's identity: two apps that differ in it share no result. A
    /// name given twice has the later value.
    #[must_use]
    pub fn capturing(mut self, name: &str, value: Data) -> Self {
        self.captured.insert(name.to_owned(), value);
        self
    }

    /// Sets what a run is expected to take, as [`App::cost`] does. A run of some time is announced to other processes
    /// before it begins, so that one of them computes it.
    #[must_use]
    pub fn expecting(mut self, cost: Cost) -> Self {
        self.cost = Some(cost);
        self
    }
}

impl Fingerprint for DynApp {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.structure("DynApp", |fields| {
            let mut captured = self.captured.iter();
            captured.try_for_each(|(name, value)| fields.field(name, value))
        })
    }

    fn describe(&self, out: &mut Short) {
        let captured = self.captured.iter();
        let fields: Vec<(&str, &dyn Fingerprint)> = captured
            .map(|(name, value)| (&**name, value as &dyn Fingerprint))
            .collect();
        out.structure(self.info.name(), &fields);
    }
}

impl App for DynApp {
    fn info(&self) -> AppInfo {
        self.info.clone()
    }

    fn cost(&self, _: &Inputs) -> Option<Cost> {
        self.cost
    }

    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        // Declared ones have the declared types.
        let results = match self.info.inputs().is_empty() {
            true => (self.body)(sde, &inputs.without_types()),
            false => (self.body)(sde, inputs),
        }?;
        Ok(results.with_declared_types(self.info.results()))
    }
}

impl fmt::Debug for DynApp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynApp")
            .field("name", &self.info.name())
            .field("captured", &self.captured.keys())
            .finish()
    }
}
