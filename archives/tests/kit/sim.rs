//! The handle of a simulated medium: what a test tells it and asks it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sde_archives::vfs::Site;

use super::content::Content;
use super::gate::Gate;
use super::orders::{Call, Order, Orders, Then};
use super::random::Random;
use super::turns::Turns;
use super::world::{Id, Node, World};

/// A medium in memory, as one process sees it. Clones are the same medium and the same process.
#[derive(Clone)]
pub struct Sim {
    state: Arc<Mutex<State>>,
    /// What was ordered for this process alone; its own power failure is that it is killed.
    pub(super) process: Arc<Mutex<Orders>>,
    /// How far the clock of this process is ahead.
    pub(super) ahead: Arc<Mutex<Duration>>,
    /// Whose turn it is, where several processes are at it.
    pub(super) turns: Arc<Mutex<Option<Turns>>>,
    /// The names that this process sees, where it sees those of before.
    pub(super) cached: Arc<Mutex<Option<World>>>,
    number: usize,
}

/// Counts processes. One that has ended must not give its number to a later one, as an address would:
/// that would be told of the other's errors.
static PROCESSES: AtomicUsize = AtomicUsize::new(0);

fn next_process() -> usize {
    PROCESSES.fetch_add(1, Ordering::Relaxed)
}

pub(super) struct State {
    pub(super) world: World,
    pub(super) orders: Orders,
    pub(super) random: Random,
    /// How many bytes fit.
    pub(super) room: Option<u64>,
    pub(super) read_only: bool,
    /// The syncs of these places do nothing.
    left_out: BTreeSet<Place>,
    /// How often a sync was asked for at each place.
    sites: BTreeMap<Place, u64>,
    pub(super) misdeeds: Vec<String>,
    pub(super) locked: HashSet<Id>,
    /// Whoever asks for a lock has it.
    pub(super) lying_locks: bool,
    /// How many bytes were read.
    pub(super) bytes_read: u64,
}

/// A place in the source: file, line, column.
pub type Place = (String, u32, u32);

/// Where stores are made: it is there from the first.
pub const HOME: &str = "/disk";

impl Sim {
    /// A medium with nothing on it but the directory [`HOME`].
    pub fn new() -> Self {
        let mut world = World::new();
        world
            .make(Path::new(HOME), Node::Dir(Default::default()))
            .unwrap();
        world.settle();
        Self::of(world)
    }

    fn of(world: World) -> Self {
        let state = State {
            world,
            orders: Orders::default(),
            random: Random::new(0),
            room: None,
            read_only: false,
            left_out: BTreeSet::new(),
            sites: BTreeMap::new(),
            misdeeds: Vec::new(),
            locked: HashSet::new(),
            lying_locks: false,
            bytes_read: 0,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            process: Arc::default(),
            ahead: Arc::default(),
            turns: Arc::default(),
            cached: Arc::default(),
            number: next_process(),
        }
    }

    /// The same medium as another process sees it.
    pub fn process(&self) -> Self {
        Self {
            state: Arc::clone(&self.state),
            process: Arc::default(),
            ahead: Arc::default(),
            turns: Arc::default(),
            cached: Arc::default(),
            number: next_process(),
        }
    }

    /// From now on this process looks at names as they are now, whatever others do, as on NFS for a while.
    pub fn cache_names(&self) {
        *self.cached.lock().unwrap() = Some(self.state().world.clone());
    }

    /// Has this process wait for its turn before each call, or not.
    pub fn take_turns(&self, turns: Option<&Turns>) {
        *self.turns.lock().unwrap() = turns.cloned();
    }

    /// Sets the clock of this process forward.
    pub fn pass_time(&self, time: Duration) {
        *self.ahead.lock().unwrap() += time;
    }

    /// Which process this is.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Gives an order for this process alone.
    pub fn order_process(&self, order: Order) {
        self.process.lock().unwrap().add(order);
    }

    /// Takes all orders for this process back.
    pub fn no_orders_for_process(&self) {
        self.process.lock().unwrap().clear();
    }

    /// Has this process run something on another thread, which is stopped in a call while something else is done. Gives whether
    /// the call came, and what came of the run.
    pub fn stopped<T: Send>(
        &self,
        calls: &'static [Call],
        at: u64,
        run: impl FnOnce() -> T + Send,
        meanwhile: impl FnOnce(),
    ) -> (bool, T) {
        let gate = Gate::default();
        self.order_process(Order::of(calls, at, Then::Stop(gate.clone())));
        std::thread::scope(|scope| {
            let running = scope.spawn(|| {
                let done = run();
                self.no_orders_for_process();
                gate.nobody_will_come();
                done
            });
            let comes = gate.wait_for_somebody();
            if comes {
                meanwhile();
                gate.open();
            }
            (comes, running.join().unwrap())
        })
    }

    /// Whether this process was killed.
    pub fn is_killed(&self) -> bool {
        self.process.lock().unwrap().off
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new medium with what is left after a power failure: of all that was not synced any part.
    /// This one is as it was.
    pub fn power_loss(&self, seed: u64) -> Self {
        let state = self.state();
        let after = Self::of(state.world.after_power_loss(&mut Random::new(seed)));
        after.take_over(&state);
        after
    }

    /// A new medium as it is after every process was killed: all that was written is there, synced
    /// or not.
    pub fn after_kill(&self) -> Self {
        let state = self.state();
        let after = Self::of(state.world.clone());
        after.take_over(&state);
        after
    }

    fn take_over(&self, before: &State) {
        let mut state = self.state();
        state.lying_locks = before.lying_locks;
        state.left_out.clone_from(&before.left_out);
        state.sites.clone_from(&before.sites);
        state.misdeeds.clone_from(&before.misdeeds);
    }

    /// Gives an order; earlier ones stay.
    pub fn order(&self, order: Order) {
        self.state().orders.add(order);
    }

    /// Takes all orders back.
    pub fn no_orders(&self) {
        self.state().orders.clear();
    }

    /// How many of these calls were made so far.
    pub fn count(&self, calls: &[Call]) -> u64 {
        self.state().orders.count(calls)
    }

    /// How many of these calls this process has made since it was given its first order.
    pub fn calls_of_process(&self, calls: &[Call]) -> u64 {
        self.process.lock().unwrap().count(calls)
    }

    /// Whether the power has failed.
    pub fn is_off(&self) -> bool {
        self.state().orders.off
    }

    /// What happens by chance from now on depends on this.
    pub fn seed(&self, seed: u64) {
        self.state().random = Random::new(seed);
    }

    /// From now on so many bytes fit, with those that are there.
    pub fn room(&self, bytes: Option<u64>) {
        self.state().room = bytes;
    }

    pub fn read_only(&self, read_only: bool) {
        self.state().read_only = read_only;
    }

    /// From now on all have each lock that they ask for.
    pub fn lying_locks(&self) {
        self.state().lying_locks = true;
    }

    /// How many bytes were read so far.
    pub fn bytes_read(&self) -> u64 {
        self.state().bytes_read
    }

    /// The syncs that are asked for at this place do nothing, and say that they did.
    pub fn leave_out(&self, place: Place) {
        self.state().left_out.insert(place);
    }

    /// The places where syncs were asked for, and how often.
    pub fn sync_sites(&self) -> BTreeMap<Place, u64> {
        self.state().sites.clone()
    }

    /// What a store must never do, and has done.
    pub fn misdeeds(&self) -> Vec<String> {
        self.state().misdeeds.clone()
    }

    /// All files, in the order of their paths.
    pub fn files(&self) -> Vec<PathBuf> {
        let files = self.state().world.files();
        files.into_iter().map(|(path, _)| path).collect()
    }

    /// How many bytes they have.
    pub fn bytes(&self) -> u64 {
        self.state().world.bytes()
    }

    pub fn content(&self, path: impl AsRef<Path>) -> Vec<u8> {
        let mut state = self.state();
        let id = state.world.existing(path.as_ref()).unwrap();
        state.world.file(id).bytes.clone()
    }

    /// Puts a file there, durable; replaces what has its name.
    pub fn put(&self, path: impl AsRef<Path>, bytes: Vec<u8>) {
        let mut state = self.state();
        let path = path.as_ref();
        let world = &mut state.world;
        match world.find(path).unwrap() {
            Some(id) => *world.file(id) = Content::settled(bytes),
            None => {
                world
                    .make(path, Node::File(Content::settled(bytes)))
                    .unwrap();
                world.dir(path.parent().unwrap()).unwrap().sync();
            }
        }
    }

    pub fn take_away(&self, path: impl AsRef<Path>) {
        let mut state = self.state();
        state.world.unname(path.as_ref()).unwrap();
        let dir = path.as_ref().parent().unwrap();
        state.world.dir(dir).unwrap().sync();
    }
}

impl Default for Sim {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sim")
    }
}

impl State {
    /// Whether a sync asked for here is really done.
    pub(super) fn syncs(&mut self, site: Site) -> bool {
        let place = (site.file().to_owned(), site.line(), site.column());
        *self.sites.entry(place.clone()).or_default() += 1;
        !self.left_out.contains(&place)
    }
}
