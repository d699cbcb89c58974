//! The state that a call carries from step to step.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use sde_last_value::thread_number;

use super::Node;
use super::handle::{CalledApp, Handle, Options};
use super::kept::SeenFailure;
use crate::app::{Callee, CancelToken, Frame, ResolvedApp, ThreadContext, Wake, ancestry};
use crate::cache::AppCache;
use crate::entry::{Entry, Provenance, RecordHead};
use crate::error::{Error, ErrorKind};
use crate::event::RunId;
use crate::inputs::Call;
use crate::key::{FingerprintError, Key, Volatile, keyed, with_encoder};
use crate::machine;
use crate::ranks::state_key;

/// One call that is not answered from the cache, on its way through the engine.
pub(crate) struct Run<'a> {
    pub(crate) from: &'a Handle,
    /// The calling run, which notes what it depends on.
    pub(crate) parent: Option<Arc<Frame>>,
    /// The run that can't end before this one has: the parent, or one of another
    /// engine, in which a body captured this one.
    pub(crate) above: Option<Arc<Frame>>,
    pub(crate) app: &'a CalledApp<'a>,
    pub(crate) cache: &'a Arc<AppCache>,
    pub(crate) options: &'a Options<'a>,
    pub(crate) key: Key,
    /// The encoded inputs that were hashed; the arguments themselves are gone once the body has run.
    pub(crate) encoded: Box<[u8]>,
    /// The files that were hashed, which may change while the body runs.
    pub(crate) volatile: Option<Box<Volatile>>,
    /// The computations of the key that were found, whether they serve or not.
    pub(crate) known: RefCell<Vec<Arc<Entry>>>,
    /// The kept failure of the key that was found last, or was made.
    pub(super) failure: Cell<Option<SeenFailure>>,
    /// Whether a kept failure was looked for.
    pub(super) has_looked: Cell<bool>,
}

/// A key, and the encoded inputs that were hashed for it.
pub(crate) struct Keyed {
    pub(crate) key: Key,
    pub(crate) encoded: Box<[u8]>,
    pub(crate) volatile: Option<Box<Volatile>>,
}

impl Keyed {
    /// The key of a call's inputs, which are as declared.
    pub(crate) fn of(resolved: &ResolvedApp, call: &dyn Call) -> Result<Self, Error> {
        let of = |encoded: &[u8]| Self {
            key: keyed(&resolved.id.0, encoded),
            encoded: encoded.into(),
            volatile: None,
        };
        let encoded = match call.encoded() {
            Some(kept) => Ok(of(kept)),
            None => with_encoder(|to| {
                call.encode(to)?;
                let encoded = of(to.finish()?);
                let volatile = to.take_volatile();
                Ok::<_, FingerprintError>(Self {
                    volatile,
                    ..encoded
                })
            }),
        };
        let app = Arc::clone(&resolved.name);
        encoded.map_err(|source| ErrorKind::Fingerprint { app, source }.into())
    }

    /// For inputs that have no key.
    pub(crate) fn none() -> Self {
        Self {
            key: Key::from_bytes([0; 32]),
            encoded: Box::default(),
            volatile: None,
        }
    }
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        from: &'a Handle,
        parent: Option<Arc<Frame>>,
        app: &'a CalledApp<'a>,
        cache: &'a Arc<AppCache>,
        options: &'a Options<'a>,
        keyed: Keyed,
    ) -> Self {
        Self {
            from,
            above: parent.clone().or_else(ThreadContext::caller),
            parent,
            app,
            cache,
            options,
            key: keyed.key,
            encoded: keyed.encoded,
            volatile: keyed.volatile,
            known: RefCell::default(),
            failure: Cell::default(),
            has_looked: Cell::default(),
        }
    }

    /// Notes a computation of the key that was found. Each is noted once, since what is known is compared.
    pub(crate) fn note_known(&self, found: Arc<Entry>) {
        let mut known = self.known.borrow_mut();
        known.retain(|other| other.record.run != found.record.run);
        known.push(found);
    }

    pub(super) fn name(&self) -> Arc<str> {
        Arc::clone(&self.app.resolved.name)
    }

    /// `app [short key]`.
    pub(super) fn label(&self) -> String {
        format!("{} [{}]", self.app.resolved.name, self.key.short())
    }

    /// The record's head of a computation with these dependencies, as far as it is known before the body runs.
    pub(super) fn head(
        &self,
        number: RunId,
        made_at: SystemTime,
        dependencies: Vec<Callee>,
    ) -> RecordHead {
        let resolved = &self.app.resolved;
        let provenance = Provenance {
            app: self.name(),
            code: resolved.info.code.clone(),
            id: resolved.id,
            setup: Arc::clone(resolved.setup(&*self.app.app)),
            dependencies,
            host: machine::host(),
            user: machine::user(),
            target: machine::target(),
            job: machine::job(),
        };
        RecordHead {
            provenance: self.cache.provenance(provenance),
            key: self.key,
            run: number,
            calls: Box::default(),
            nondeterministic: resolved.nondeterministic,
            anew: false,
            made_at,
            took: Duration::ZERO,
            thread: u32::try_from(thread_number()).unwrap_or(u32::MAX),
        }
    }

    /// The key under which this process keeps the run's scratch states.
    pub(crate) fn scratch_key(&self) -> Key {
        let ranks = self.from.shared_ranks();
        let ranks = ranks.filter(|_| self.app.resolved.is_distributed());
        state_key(&self.key, ranks.map_or(0, |ranks| ranks.rank()))
    }

    /// Whether the caller, or a run that the call is nested in, has given up.
    pub(super) fn is_cancelled(&self) -> bool {
        let mut own = self.from.cancel_tokens().iter();
        let parent = self.parent.as_ref();
        own.any(CancelToken::is_cancelled) || parent.is_some_and(|parent| parent.is_unwanted())
    }

    /// Has a waiter woken when the caller, or a run that the call is nested in, gives up.
    pub(super) fn wakes(&self, waiter: &Weak<dyn Wake>) {
        let inherited = ancestry(self.parent.as_ref()).flat_map(|frame| &frame.cancel);
        for token in self.from.cancel_tokens().iter().chain(inherited) {
            token.wakes(Weak::clone(waiter));
        }
    }

    pub(super) fn is(&self, frame: &Frame) -> bool {
        frame.key == self.key && frame.engine == self.from.engine().id()
    }

    /// A run of this app as a node of the waiting graph.
    pub(super) fn node(&self, key: Key) -> Node {
        Node {
            engine: self.from.engine().id(),
            key,
            app: Arc::clone(&self.app.resolved.name),
        }
    }
}
