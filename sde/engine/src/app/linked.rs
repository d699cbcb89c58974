//! The apps that are part of this program.
//!
//! An entry made by an earlier program names the code of every app that its run called. To tell whether that is
//! current, the engine needs the code of all apps of *this* program, even of those it has not run yet. So `#[sde::app]`
//! functions, marked [`ConfiguredApp`](crate::ConfiguredApp)s, and types named in [`link_app!`](crate::link_app), are
//! collected when the program is linked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use super::identity::CodeId;
use super::info::AppInfo;
use super::instance::Instance;
use crate::sync::lock;

/// One app of this program, as the linker collects them. Made by the macros.
#[derive(Debug)]
pub struct LinkedApp {
    make: fn() -> Instance,
    /// Module, file and line of a function; `None` for a type.
    place: Option<&'static str>,
}

impl LinkedApp {
    /// The app that this function makes, with its defaults.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(make: fn() -> Instance) -> Self {
        Self { make, place: None }
    }

    /// An app that is a function, and its place.
    #[doc(hidden)]
    #[must_use]
    pub const fn function(make: fn() -> Instance, place: &'static str) -> Self {
        Self {
            make,
            place: Some(place),
        }
    }
}

inventory::collect!(LinkedApp);

/// Makes apps that are written as types known to every engine of this program, so that results of their callers from
/// earlier programs are used again.
///
/// Takes a list of expressions, each the app with its defaults. Functions with
/// `#[sde::app]` need not be named, nor does a [`ConfiguredApp`](crate::ConfiguredApp) that is marked so.
///
/// ```
/// # use sde::*;
/// #[derive(Fingerprint)]
/// struct Answer;
///
/// impl App for Answer {
///     fn info(&self) -> AppInfo {
///         AppInfo::new("doc.Answer", "1").result(ResultSpec::new::<i32>("answer"))
///     }
///     fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
///         Ok(ResultMap::new().with("answer", 42))
///     }
/// }
///
/// sde::link_app!(Answer);
/// ```
#[macro_export]
macro_rules! link_app {
    ($($app:expr),+ $(,)?) => {
        $($crate::__private::inventory::submit! {
            $crate::__private::LinkedApp::new(|| $crate::Instance::from($app))
        })+
    };
}

/// The apps that the linker collected.
pub(crate) fn linked_apps() -> impl Iterator<Item = Instance> {
    let all = inventory::iter::<LinkedApp>.into_iter();
    all.map(|linked| (linked.make)())
}

/// The app of this name, if the program has one and no other code of that name.
pub(crate) fn linked_app(name: &str) -> Option<Instance> {
    let mut all = linked_apps().filter(|app| app.info().name() == name);
    let first = all.next()?;
    all.all(|app| app.info().code() == first.info().code())
        .then_some(first)
}

/// Names and codes that several functions share, and the places of these.
type Clashes = HashMap<(String, CodeId), Vec<&'static str>>;

/// The places of the functions that share this app's name and code, if there are several. A type named in `link_app!`
/// more than once is one type; a function that the linker collected twice is two.
pub(crate) fn clash(app: &AppInfo) -> Option<&'static [&'static str]> {
    static CLASHES: OnceLock<Clashes> = OnceLock::new();
    let clashes = CLASHES.get_or_init(find_clashes);
    if clashes.is_empty() {
        return None;
    }
    clashes.get(&identity(app)).map(Vec::as_slice)
}

fn identity(app: &AppInfo) -> (String, CodeId) {
    (app.name().to_owned(), app.code().clone())
}

fn find_clashes() -> Clashes {
    let mut functions = Clashes::new();
    for linked in inventory::iter::<LinkedApp> {
        if let Some(place) = linked.place {
            let of_identity = functions.entry(identity((linked.make)().info()));
            of_identity.or_default().push(place);
        }
    }
    functions.retain(|_, places| places.len() > 1);
    functions.values_mut().for_each(|of| of.sort_unstable());
    functions
}

/// The number of an app's name in this process, by which its cache is found without hashing the name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TypeIndex(pub(crate) u32);

impl TypeIndex {
    pub(crate) fn of(name: &str) -> Self {
        static NUMBERS: OnceLock<Mutex<HashMap<Arc<str>, u32>>> = OnceLock::new();
        let mut numbers = lock(NUMBERS.get_or_init(Mutex::default));
        if let Some(number) = numbers.get(name) {
            return Self(*number);
        }
        let number = numbers.len() as u32;
        numbers.insert(Arc::from(name), number);
        Self(number)
    }
}
