//! The apps that are part of this program.
//!
//! An entry made by an earlier program names the code of every app that ran
//! beneath it. Whether that code is still current can only be told by knowing
//! the code that *this* program has, even of apps it has not run yet. So
//! `#[sde::app]` functions, and types named in [`link_app!`](crate::link_app),
//! are collected when the program is linked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::info::AppInfo;

/// One app of this program, as the linker collects them. Made by the macros.
pub struct LinkedApp {
    describe: fn() -> AppInfo,
}

impl LinkedApp {
    /// An app that describes itself by this function.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(describe: fn() -> AppInfo) -> Self {
        Self { describe }
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

/// What the linker collected: name -> code and description.
pub(crate) fn linked_apps() -> impl Iterator<Item = AppInfo> {
    inventory::iter::<LinkedApp>
        .into_iter()
        .map(|linked| (linked.describe)())
}

/// The number of an app's name in this process, which finds its cache without
/// hashing the name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TypeIndex(pub(crate) usize);

impl TypeIndex {
    pub(crate) fn of(name: &str) -> Self {
        static NUMBERS: OnceLock<Mutex<HashMap<Arc<str>, usize>>> = OnceLock::new();
        let mut numbers = NUMBERS
            .get_or_init(Mutex::default)
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = numbers.get(name) {
            return Self(*number);
        }
        let number = numbers.len();
        numbers.insert(Arc::from(name), number);
        Self(number)
    }
}
