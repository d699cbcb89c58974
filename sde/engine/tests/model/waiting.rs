//! Who waits for whom under a model checker: of the waits that would close a cycle one is refused,
//! in whatever order they come, and one that is only in the wrong place computes.
//!
//! These tests can fail. Each change below was tried alone, and was found:
//!
//! | in `waits.rs` | change | found by |
//! |---|---|---|
//! | `begin` | the edge is added under a second lock | `a_run_in_the_wrong_place_computes` |
//! | | no `cycle` | `two_runs_that_need_each_other`, `three_runs_in_a_ring` |
//! | | no `blocks_itself` | `a_run_in_the_wrong_place_computes` |
//! | `blocks_itself` | no look at the own stack | the same |
//! | | no look at the stacks of others | the same |
//! | the guard | the edge stays | `an_edge_goes_with_its_wait` |
//! | `call_off` | nobody is called off, or the awaited is not woken | `a_turn_closes_no_cycle` |

use super::flight::{Flight, Patience, Waited};
use super::waits::{Awaited, Until, Verdict, WaitSite, Waits};
use super::{beside, explore};
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread::JoinHandle;
use std::sync::Arc;

const CYCLE: &str = "cycle";

struct Run(Flight<u32, &'static str>);

impl Awaited for Run {
    fn is_over(&self) -> bool {
        self.0.is_complete()
    }

    fn wake(&self) {
        self.0.wake();
    }
}

/// Until it is called off.
struct CalledOff(Arc<AtomicBool>);

impl Patience for CalledOff {
    fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

struct Forever;

impl Patience for Forever {
    fn is_over(&self) -> bool {
        false
    }
}

/// Runs named by a letter each, all in progress.
struct World<const N: usize> {
    runs: [Arc<Run>; N],
    waits: Waits<char, Run>,
}

/// What a thread was told.
#[derive(Debug, PartialEq)]
enum Told {
    Waited,
    Computed,
    Cycle(Vec<char>),
}

impl<const N: usize> World<N> {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            runs: std::array::from_fn(|_| Arc::new(Run(Flight::new()))),
            waits: Waits::new(),
        })
    }

    fn run(&self, name: char) -> &Arc<Run> {
        &self.runs[name as usize - 'A' as usize]
    }

    /// The body of `ancestry[0]` needs `to`; then the flights of `stack` end, as the engine would
    /// end them.
    fn needs(&self, ancestry: &str, stack: &str, to: char) -> Told {
        self.waits_for(ancestry, stack, to, Until::Made)
    }

    fn waits_for(&self, ancestry: &str, stack: &str, to: char, until: Until) -> Told {
        let from = WaitSite {
            ancestry: ancestry.chars().collect(),
            stack: stack.chars().collect(),
        };
        let told = match self.waits.begin(from, to, self.run(to), until) {
            Verdict::Wait(guard) => {
                let waited = self.run(to).0.wait(&CalledOff(guard.called_off()));
                drop(guard);
                match waited {
                    Waited::Stopped => {
                        let _ = self.run(to).0.complete(Ok(1));
                        Told::Computed
                    }
                    _ => Told::Waited,
                }
            }
            Verdict::Compute => {
                let _ = self.run(to).0.complete(Ok(1));
                Told::Computed
            }
            Verdict::Cycle(path) => Told::Cycle(path),
        };
        for run in stack.chars() {
            let _ = match told {
                Told::Cycle(_) => self.run(run).0.fail(CYCLE, false),
                _ => self.run(run).0.complete(Ok(1)).is_ok(),
            };
        }
        told
    }
}

fn spawn<const N: usize>(
    world: &Arc<World<N>>,
    ancestry: &'static str,
    stack: &'static str,
    to: char,
) -> JoinHandle<Told> {
    beside(world, move |world| world.needs(ancestry, stack, to))
}

#[test]
fn two_runs_that_need_each_other() {
    explore(3, || {
        let world = World::<2>::new();
        let first = spawn(&world, "A", "A", 'B');
        let second = world.needs("B", "B", 'A');
        let first = first.join().unwrap();
        let paths = ["ABA", "BAB"].map(|path| Told::Cycle(path.chars().collect()));
        assert!(
            paths.contains(&first) || paths.contains(&second),
            "{first:?}, {second:?}"
        );
    });
}

#[test]
fn three_runs_in_a_ring() {
    explore(2, || {
        let world = World::<3>::new();
        let others = [spawn(&world, "A", "A", 'B'), spawn(&world, "B", "B", 'C')];
        let mut told = vec![world.needs("C", "C", 'A')];
        told.extend(others.map(|thread| thread.join().unwrap()));
        let whole = |told: &Told| matches!(told, Told::Cycle(path) if path.len() == 4);
        assert!(told.iter().any(whole), "{told:?}");
    });
}

/// A run that waits for one which waits for nothing.
#[test]
fn a_chain_is_no_cycle() {
    explore(2, || {
        let world = World::<3>::new();
        let others = [spawn(&world, "A", "A", 'B'), spawn(&world, "B", "B", 'C')];
        let _ = world.run('C').0.complete(Ok(1));
        for thread in others {
            assert_eq!(thread.join().unwrap(), Told::Waited);
        }
    });
}

/// The first thread stole the job `X` (here `C`) while it was in `A`. `X` needs `B`, `B` needs `A`,
/// and `A` can't go on before `X` has ended.
#[test]
fn a_run_in_the_wrong_place_computes() {
    explore(3, || {
        let world = World::<3>::new();
        let first = spawn(&world, "C", "CA", 'B');
        let second = world.needs("B", "B", 'A');
        let told = [first.join().unwrap(), second];
        let cycles = told.iter().filter(|told| matches!(told, Told::Cycle(_)));
        assert_eq!(cycles.count(), 0, "{told:?}");
        for run in &world.runs {
            assert_eq!(run.0.wait(&Forever), Waited::Complete(Ok(1)));
        }
    });
}

/// `A` has an exclusive run and needs `B`, which waits for it to end: whichever of the two comes last, `A` is the
/// one that computes.
#[test]
fn a_turn_closes_no_cycle() {
    explore(3, || {
        let world = World::<2>::new();
        let holder = spawn(&world, "A", "A", 'B');
        let waits = world.waits_for("B", "B", 'A', Until::Gone);
        assert_eq!(waits, Told::Waited);
        assert_eq!(holder.join().unwrap(), Told::Computed);
    });
}

/// Each of two has an exclusive run and waits for the other's: nobody can help, and one is told.
#[test]
fn two_turns_that_wait_for_each_other() {
    explore(3, || {
        let world = World::<2>::new();
        let other = beside(&world, |world| world.waits_for("A", "A", 'B', Until::Gone));
        let told = [
            world.waits_for("B", "B", 'A', Until::Gone),
            other.join().unwrap(),
        ];
        assert!(told.contains(&Told::Computed), "{told:?}");
    });
}

/// A wait that was given up, or ended in taking over, is not in the way for ever.
#[test]
fn an_edge_goes_with_its_wait() {
    explore(3, || {
        let world = World::<2>::new();
        let from = |run: char| WaitSite {
            ancestry: vec![run],
            stack: vec![run],
        };
        let given_up = beside(&world, move |world| {
            let (begin, to) = (from('A'), world.run('B'));
            let verdict = world.waits.begin(begin, 'B', to, Until::Made);
            assert!(matches!(verdict, Verdict::Wait(_)));
        });
        given_up.join().unwrap();
        let verdict = world
            .waits
            .begin(from('B'), 'A', world.run('A'), Until::Made);
        assert!(matches!(verdict, Verdict::Wait(_)));
    });
}
