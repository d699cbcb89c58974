//! Apps: units of computation, their descriptions and their settings.
//!
//! An [`App`] is a definition: a name, a version, inputs and results, and `run`. An [`Instance`] is an app with its
//! parameters and sub-apps set. A [`Prepared`] instance is checked, identified and immutable; the engine runs only
//! these. Running by name, by value or by prepared handle differs only in when the preparing happens, so all three make
//! the same run.

mod cancel;
mod configured;
mod defaults;
mod definition;
mod dependencies;
mod difference;
mod dynamic;
mod frame;
mod helpers;
mod identity;
mod info;
mod instance;
mod linked;
mod own_time;
mod parameter;
mod prepared;
mod setup;
mod slot;
mod summary;

/// The handle through which a body runs other apps: the one thing above apps that they use.
pub use crate::engine::Handle;
pub use cancel::CancelToken;
pub(crate) use cancel::Wake;
pub use configured::{ConfiguredApp, Settings, app_of};
pub(crate) use defaults::Defaults;
pub use definition::App;
pub use dependencies::Callee;
pub(crate) use dependencies::DependencySnapshot;
pub use difference::{Changed, Difference, Nearest};
pub(crate) use difference::{Compared, of_callees, of_keys};
pub use dynamic::DynApp;
pub(crate) use frame::{Frame, OnThread, ThreadContext, ancestry, depth_here, stack};
pub use helpers::{FunctionCode, Helper, LinkedHelper, Name, NoHelper, Resolved, Source};
pub use identity::{AppId, CodeId};
pub use info::{AppInfo, Cost, Synchronize};
pub use instance::Instance;
pub use linked::LinkedApp;
pub(crate) use linked::{TypeIndex, linked_app, linked_apps};
pub(crate) use own_time::{BodyTime, NestedCall, add_waiting};
pub(crate) use parameter::Setting;
pub use parameter::{Parameter, ParameterValues};
pub(crate) use prepared::prepare;
pub use prepared::{Prepared, ResolvedApp, ResolvedOnce};
pub(crate) use setup::Setup;
pub use slot::{Slot, SubApp};
pub use summary::{AppSetup, SlotSummary};
