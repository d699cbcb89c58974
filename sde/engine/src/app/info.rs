//! The description of an app.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::helpers::{self, FunctionCode};
use super::identity::CodeId;
use super::parameter::Parameter;
use super::slot::Slot;
use crate::error::{AppError, Failure};
use crate::inputs::{DeclaredInputs, InputSpec, ValueSummary};
use crate::key::{Digest, Fingerprint};
use crate::ranks::distributed::Redistribution;
use crate::result_map::typed::Results;
use crate::result_map::{ResultMap, ResultSpec};

/// The description of an app: its identity, its traits, its settings, its inputs and its results.
///
/// Name and code identity enter the key, as do parameters and sub-apps. The
/// rest is metadata and never changes a result.
///
/// ```
/// use sde::{AppInfo, Parameter, ResultSpec, Tag};
///
/// let info = AppInfo::new("Rhf", "1.0")
///     .about("Restricted Hartree-Fock energies")
///     .citation("C. C. J. Roothaan, Rev. Mod. Phys. 23, 69 (1951)")
///     .parameter(Parameter::new("threshold", 1e-9_f64).about("energy change, in hartree"))
///     .input::<String>("basis")
///     .optional_input::<i32>("charge")
///     .result(ResultSpec::new::<f64>("energy").about("total energy, in hartree"))
///     .result(ResultSpec::new::<Vec<f64>>("fock").tagged(Tag::Intermediate));
/// assert_eq!(info.name(), "Rhf");
/// ```
#[derive(Clone, Debug)]
pub struct AppInfo {
    pub(crate) name: Cow<'static, str>,
    /// The code as it was given.
    own: CodeId,
    /// The code with the helpers.
    pub(crate) code: CodeId,
    /// The helpers that the description names, sorted.
    pub(super) helpers: Vec<ValueSummary>,
    pub(crate) about: Cow<'static, str>,
    pub(crate) authors: Vec<Cow<'static, str>>,
    pub(crate) citations: Vec<Cow<'static, str>>,
    pub(crate) nondeterministic: bool,
    pub(super) distributed: bool,
    pub(crate) thread_safe: bool,
    pub(crate) failures: Failure,
    pub(crate) forgets_failures: bool,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) slots: Vec<Slot>,
    /// `None` if it declares nothing of its inputs, and takes what it is given.
    pub(crate) inputs: Option<Arc<DeclaredInputs>>,
    pub(crate) results: Vec<Arc<ResultSpec>>,
    pub(crate) synchronize: Option<Synchronize>,
    /// The source of a function, or of an `impl App` that is marked.
    pub(super) source: Option<&'static FunctionCode>,
}

/// Makes a rank's results from those of the ranks that computed them; see [`AppInfo::synchronize`], also for the errors
/// that it gets.
pub type Synchronize =
    fn(Option<&ResultMap>, &Redistribution<'_>) -> Result<Option<ResultMap>, AppError>;

impl AppInfo {
    /// The description of an app with this stable name and version.
    ///
    /// The name must be the same in every program and for ever, since the cache and the store know the app by nothing
    /// else; two apps must not share one. Raise the version whenever the app's results change.
    #[must_use]
    pub fn new(name: impl Into<Cow<'static, str>>, version: impl Into<Cow<'static, str>>) -> Self {
        Self::with_code(name, CodeId::Version(version.into()))
    }

    /// The description of an app with this stable name whose code is known by its source: its `impl App` is marked
    /// [`#[sde::app]`](macro@crate::app). Without the mark it can't run.
    #[must_use]
    pub fn named(name: impl Into<Cow<'static, str>>) -> Self {
        Self::with_code(name, CodeId::Version(Cow::Borrowed("")))
    }

    /// Sets the source; that of an app whose description this extends gives way. A version stays, and is refused
    /// beside it. Used by the macros.
    #[doc(hidden)]
    #[must_use]
    pub fn in_source(mut self, source: &'static FunctionCode) -> Self {
        self.source = Some(source);
        let given = match &self.own {
            CodeId::Version(_) if !self.lacks_code() => return self,
            CodeId::Version(_) => None,
            CodeId::Source(digest) => Some(*digest),
        };
        self.own = source.code().clone();
        self.count_helpers();
        match given {
            None => self,
            // It is that of an app which this one wraps, or of a text that the program has read.
            Some(digest) => self.helper("the code that `info` gives", digest),
        }
    }

    fn lacks_code(&self) -> bool {
        matches!(&self.own, CodeId::Version(version) if version.is_empty())
    }

    /// Why its code is not known.
    pub(super) fn unknown_code(&self) -> Option<&'static str> {
        match (&self.own, self.source) {
            (CodeId::Version(_), Some(_)) => Some(
                "its `impl App` is marked `#[sde::app]`, which knows it by its source, and it has a version: \
                 write `AppInfo::named`, or leave the mark out",
            ),
            (_, None) if self.lacks_code() => Some(
                "it has no version: mark its `impl App` with `#[sde::app]`, give `AppInfo::new` one, or its code to \
                 `AppInfo::with_code`",
            ),
            _ => None,
        }
    }

    /// The description of an app with this stable name and this code, for apps that are [made](crate::DynApp) of what
    /// no macro sees. Two codes must differ if the apps' results may.
    #[must_use]
    pub fn with_code(name: impl Into<Cow<'static, str>>, code: CodeId) -> Self {
        Self {
            name: name.into(),
            own: code.clone(),
            code,
            helpers: Vec::new(),
            about: Cow::Borrowed(""),
            authors: Vec::new(),
            citations: Vec::new(),
            nondeterministic: false,
            distributed: false,
            thread_safe: true,
            failures: Failure::Ordinary,
            forgets_failures: false,
            parameters: Vec::new(),
            slots: Vec::new(),
            inputs: None,
            results: Vec::new(),
            synchronize: None,
            source: None,
        }
    }

    /// Counts something else as code of the app, by the digest of its text: a function that it calls, a program, a
    /// library. A helper with another digest is other code, and [`Changed::Helper`](crate::record::Changed::Helper)
    /// names it. Of two of one name the later counts. The code then is a digest, that of a version too.
    ///
    /// ```
    /// use sde::AppInfo;
    /// use sde::key::commit;
    ///
    /// let text = |text: &str| commit(text).map(|made| made.digest());
    /// let info = AppInfo::new("solver", "1").helper("bin/solver", text("first")?);
    /// assert_ne!(info.code(), info.clone().helper("bin/solver", text("second")?).code());
    /// # Ok::<(), sde::key::FingerprintError>(())
    /// ```
    #[must_use]
    pub fn helper(mut self, name: impl Into<String>, digest: Digest) -> Self {
        let name = name.into();
        self.helpers.retain(|helper| *helper.name != name);
        let short = CodeId::Source(digest).to_string();
        self.helpers.push(helpers::summary(name, short, digest));
        self.helpers.sort_by(|one, other| one.name.cmp(&other.name));
        self.count_helpers();
        self
    }

    fn count_helpers(&mut self) {
        self.code = match self.own_digest() {
            Some(own) => CodeId::Source(helpers::with_helpers(own, &self.helpers)),
            None => self.own.clone(),
        };
    }

    /// The digest of the code without the helpers, if there are any.
    pub(super) fn own_digest(&self) -> Option<Digest> {
        (!self.helpers.is_empty()).then(|| match &self.own {
            CodeId::Source(digest) => *digest,
            CodeId::Version(version) => helpers::digest_of([version.as_bytes()]),
        })
    }

    /// Describes what the app does, in a sentence.
    #[must_use]
    pub fn about(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.about = text.into();
        self
    }

    /// Adds an author.
    #[must_use]
    pub fn author(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.authors.push(name.into());
        self
    }

    /// Adds a work to cite when results of this app are published.
    #[must_use]
    pub fn citation(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.citations.push(text.into());
        self
    }

    /// Declares that equal inputs may give different results. Such an app is never looked up, nor is any app that
    /// runs it. Its results are recorded even so.
    #[must_use]
    pub fn nondeterministic(mut self) -> Self {
        self.nondeterministic = true;
        self
    }

    /// Declares that the app is collective: every rank of the process set calls it. An app with a collective app in
    /// one of its slots, at any depth, is collective without saying so. An app that calls one otherwise, by name or
    /// by value, has to say so.
    #[must_use]
    pub fn distributed(mut self) -> Self {
        self.distributed = true;
        self
    }

    /// Declares that two runs of this app must not go on at the same time. The engine then runs them one after the
    /// other. Engines in one program know nothing of each other: where that matters, use one.
    #[must_use]
    pub fn not_thread_safe(mut self) -> Self {
        self.thread_safe = false;
        self
    }

    /// Declares how long this app's failures last, unless the error itself tells it.
    #[must_use]
    pub fn failures(mut self, failure: Failure) -> Self {
        self.failures = failure;
        self
    }

    /// Declares that this app's failures are not stored: they tell of the machine, and the next call tries again. Permanent ones
    /// are remembered in memory.
    #[must_use]
    pub fn forgets_failures(mut self) -> Self {
        self.forgets_failures = true;
        self
    }

    /// Adds a parameter.
    #[must_use]
    pub fn parameter(mut self, parameter: Parameter) -> Self {
        self.parameters.push(parameter);
        self
    }

    /// Adds a sub-app slot.
    #[must_use]
    pub fn slot(mut self, slot: Slot) -> Self {
        self.slots.push(slot);
        self
    }

    /// Declares an input that every run is given: a `T`, or a [`Value<T>`](crate::Value), for a `String` also a literal.
    /// A [`Data`](crate::Data) that [is](crate::Data::get) a `T` becomes one, and so has the key of one. An `#[sde::app]`
    /// function declares its arguments.
    ///
    /// A run of an app that declares its inputs takes these and no others. Its [`Inputs`](crate::Inputs) are checked
    /// before it is computed, and keyed in the order of the declarations, whatever their own. An app that declares nothing
    /// takes what it is given, and another order is another run.
    ///
    /// ```
    /// use sde::*;
    ///
    /// #[derive(Fingerprint)]
    /// struct Power;
    ///
    /// #[sde::app]
    /// impl App for Power {
    ///     fn info(&self) -> AppInfo {
    ///         let info = AppInfo::named("doc.Power").result(ResultSpec::new::<f64>("power"));
    ///         info.input::<f64>("base").optional_input::<i32>("exponent")
    ///     }
    ///     fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
    ///         let exponent = inputs.get::<i32>("exponent").copied().unwrap_or(2);
    ///         Ok(ResultMap::new().with("power", inputs.get::<f64>("base")?.powi(exponent)))
    ///     }
    /// }
    ///
    /// let sde = Sde::new();
    /// assert_eq!(*sde.run(&Power, &inputs! { base: 3.0 })?.get::<f64>("power")?, 9.0);
    /// sde.run(&Power, &inputs! { base: 3.0, exponent: 3 })?;
    /// sde.run(&Power, &inputs! { exponent: 3, base: 3.0 })?;
    /// assert_eq!(sde.stats().total.computed, 2);
    /// let error = sde.run(&Power, &inputs! { base: 3.0, exponet: 3 }).unwrap_err();
    /// assert!(error.to_string().contains("did you mean: exponent"));
    /// # Ok::<(), sde::Error>(())
    /// ```
    #[must_use]
    pub fn input<T: Fingerprint + Send + Sync + 'static>(
        self,
        name: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.with_input(InputSpec::of::<T>(name, false))
    }

    /// Declares an [`input`](Self::input) that a run may be given. The key of a run without it has nothing of it.
    #[must_use]
    pub fn optional_input<T: Fingerprint + Send + Sync + 'static>(
        self,
        name: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.with_input(InputSpec::of::<T>(name, true))
    }

    /// Declares that a run is given no inputs. Takes back those declared before.
    #[must_use]
    pub fn without_inputs(mut self) -> Self {
        self.inputs = Some(Arc::default());
        self
    }

    fn with_input(mut self, spec: InputSpec) -> Self {
        let declared = Arc::unwrap_or_clone(self.inputs.unwrap_or_default());
        self.inputs = Some(Arc::new(declared.and(spec)));
        self
    }

    /// Declares all inputs. Used by the macros.
    #[doc(hidden)]
    #[must_use]
    pub fn with_inputs(mut self, inputs: &Arc<DeclaredInputs>) -> Self {
        self.inputs = Some(Arc::clone(inputs));
        self
    }

    /// Adds a result that every run of the app returns.
    #[must_use]
    pub fn result(mut self, result: impl Into<Arc<ResultSpec>>) -> Self {
        self.results.push(result.into());
        self
    }

    /// Adds a result for each field of a struct that derives [`Results`](trait@crate::Results).
    #[must_use]
    pub fn results_of<T: Results>(mut self) -> Self {
        let first = self.results.len();
        self.results.extend(T::specs().into_iter().map(Arc::new));
        // Which field is which result is code, by whatever name the app knows the struct.
        let names = self.results[first..].iter().map(|spec| &*spec.name);
        let name = format!("results {}", names.collect::<Vec<_>>().join(", "));
        self.counting(name, T::code())
    }

    /// Counts a text as a [helper](Self::helper), but for an app with a version, which stands for all of its code.
    #[doc(hidden)]
    #[must_use]
    pub fn counting(self, name: String, digest: Digest) -> Self {
        match matches!(self.own, CodeId::Version(_)) && !self.lacks_code() {
            true => self,
            false => self.helper(name, digest),
        }
    }

    /// Sets the function that brings the results of a `distributed` app from one process set to others, in place of
    /// the redistribution of their types ([`redistribute_parts`](crate::Distributed::redistribute_parts)). The
    /// function is called on all ranks concerned, with the results on the ranks that had them. It gives the results
    /// of each rank that goes on with them: new parts of distributed results, made for instance by the type's own
    /// function from [`Redistribution::of_result`]. It may leave out results that are equal on all ranks: ranks that
    /// lack those get them anyway. A distributed result without a part is computed again where it is needed.
    ///
    /// The function may be called several times for one value, as [`redistribute_parts`](crate::Distributed::redistribute_parts) is: where several
    /// values move at once, what it asks of other ranks is an error until they have answered. It passes that error on.
    #[must_use]
    pub fn synchronize(mut self, with: Synchronize) -> Self {
        self.synchronize = Some(with);
        self
    }

    /// The stable name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version or source digest.
    #[must_use]
    pub fn code(&self) -> &CodeId {
        &self.code
    }

    /// The description.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.about
    }

    /// The authors.
    pub fn authors(&self) -> impl Iterator<Item = &str> {
        self.authors.iter().map(|name| &**name)
    }

    /// The works to cite.
    pub fn citations(&self) -> impl Iterator<Item = &str> {
        self.citations.iter().map(|text| &**text)
    }

    /// Whether the app itself is non-deterministic.
    #[must_use]
    pub fn is_nondeterministic(&self) -> bool {
        self.nondeterministic
    }

    /// Whether the app says that it is collective.
    #[must_use]
    pub fn is_distributed(&self) -> bool {
        self.distributed
    }

    /// Whether several runs may go on at the same time.
    #[must_use]
    pub fn is_thread_safe(&self) -> bool {
        self.thread_safe
    }

    /// The declared parameters.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The declared sub-app slots.
    #[must_use]
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The declared inputs, in the order in which they are keyed; none if the app takes what it is given.
    #[must_use]
    pub fn inputs(&self) -> &[InputSpec] {
        self.inputs.as_ref().map_or(&[], |inputs| inputs.specs())
    }

    /// The declared results.
    #[must_use]
    pub fn results(&self) -> &[Arc<ResultSpec>] {
        &self.results
    }
}

/// The time and memory that a run is expected to take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Cost {
    /// Wall-clock time on this machine.
    pub time: Duration,
    /// The most memory it will hold at once, in bytes.
    pub memory: u64,
}

impl Cost {
    /// A run that takes this long, and little memory.
    #[must_use]
    pub const fn new(time: Duration) -> Self {
        Self { time, memory: 0 }
    }

    /// The cost, with the most memory that the run will hold at once, in bytes.
    #[must_use]
    pub const fn memory(self, bytes: u64) -> Self {
        Self {
            memory: bytes,
            ..self
        }
    }
}
