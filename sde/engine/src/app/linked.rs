//! The apps that are part of this program.
//!
//! An entry made by an earlier program names the code of every app that its
//! run called. Whether that code is still current can only be told by knowing
//! the code that *this* program has, even of apps it has not run yet. So
//! `#[sde::app]` functions, and types named in [`link_app!`](crate::link_app),
//! are collected when the program is linked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use super::identity::CodeId;
use super::info::AppInfo;
use crate::sync::lock;

/// One app of this program, as the linker collects them. Made by the macros.
pub struct LinkedApp {
    describe: fn() -> AppInfo,
    /// Module, file and line of a function; `None` for a type.
    place: Option<&'static str>,
}

impl LinkedApp {
    /// An app that describes itself by this function.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(describe: fn() -> AppInfo) -> Self {
        Self {
            describe,
            place: None,
        }
    }

    /// A function that describes itself so, and where it is.
    #[doc(hidden)]
    #[must_use]
    pub const fn function(describe: fn() -> AppInfo, place: &'static str) -> Self {
        Self {
            describe,
            place: Some(place),
        }
    }
}

inventory::collect!(LinkedApp);

/// Makes apps that are written as types known to every engine of this program, so
/// that what was remembered of their callers by an earlier program is used again.
///
/// Takes a list of expressions, each the app with its defaults. Functions with
/// `#[sde::app]` need not be named.
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
            $crate::LinkedApp::new(|| $crate::App::info(&$app))
        })+
    };
}

/// The apps that the linker collected, as they describe themselves.
pub(crate) fn linked_apps() -> impl Iterator<Item = AppInfo> {
    inventory::iter::<LinkedApp>
        .into_iter()
        .map(|linked| (linked.describe)())
}

/// Functions that have one name and one code, and need not be one function.
struct Clash {
    app: AppInfo,
    places: Vec<&'static str>,
}

/// Where the functions are that can't be told from this app, if there are several.
/// A type named in `link_app!` more than once is one type; a function that
/// the linker collected twice is two.
pub(crate) fn clash(app: &AppInfo) -> Option<&'static [&'static str]> {
    static CLASHES: OnceLock<Vec<Clash>> = OnceLock::new();
    let same = |a: &AppInfo, b: &AppInfo| a.name() == b.name() && a.code() == b.code();
    let clashes = CLASHES.get_or_init(find_clashes);
    let clash = clashes.iter().find(|clash| same(&clash.app, app))?;
    Some(&clash.places)
}

fn find_clashes() -> Vec<Clash> {
    let mut functions: HashMap<(String, CodeId), Clash> = HashMap::new();
    for linked in inventory::iter::<LinkedApp> {
        let Some(place) = linked.place else { continue };
        let app = (linked.describe)();
        let identity = (app.name().to_owned(), app.code().clone());
        let clash = functions.entry(identity).or_insert_with(|| Clash {
            app,
            places: Vec::new(),
        });
        clash.places.push(place);
    }
    let mut clashes: Vec<_> = functions.into_values().collect();
    clashes.retain(|clash| clash.places.len() > 1);
    clashes
        .iter_mut()
        .for_each(|clash| clash.places.sort_unstable());
    clashes
}

/// The number of an app's name in this process, which finds its cache without
/// hashing the name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TypeIndex(pub(crate) usize);

impl TypeIndex {
    pub(crate) fn of(name: &str) -> Self {
        static NUMBERS: OnceLock<Mutex<HashMap<Arc<str>, usize>>> = OnceLock::new();
        let mut numbers = lock(NUMBERS.get_or_init(Mutex::default));
        if let Some(number) = numbers.get(name) {
            return Self(*number);
        }
        let number = numbers.len();
        numbers.insert(Arc::from(name), number);
        Self(number)
    }
}
