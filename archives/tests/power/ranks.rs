//! Ranks that commit together, on media that fail and in processes that are killed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sde::archiver::{Archiver, Selection};
use sde::ranks::{GroupError, Note, OneProcess, ProcessGroup, Subgroup, ThreadGroup};
use sde_archives::{DirStore, StoreOptions};

use crate::count;
use crate::kit::{CHANGING, Call, Error, HOME, Order, Random, Sim, Then, made};
use crate::truth::{Truth, generation};

/// Six ranks on four nodes, of which two have a writer.
const NODES: &[usize] = &[0, 0, 1, 2, 2, 3];
const WRITERS: usize = 2;

/// The ranks of a process that may be killed: then it has left.
struct Mortal {
    group: Box<dyn ProcessGroup>,
    process: Sim,
}

impl Mortal {
    fn alive(&self) -> Result<(), GroupError> {
        if self.process.is_killed() || self.process.is_off() {
            self.group.leave();
            return Err(GroupError::left(self.rank()));
        }
        Ok(())
    }
}

impl ProcessGroup for Mortal {
    fn rank(&self) -> usize {
        self.group.rank()
    }
    fn size(&self) -> usize {
        self.group.size()
    }
    fn nodes(&self) -> Vec<usize> {
        self.group.nodes()
    }
    fn meet(
        &self,
        message: &[u8],
        patience: Duration,
        late: &mut dyn FnMut(&[usize]),
    ) -> Result<Vec<u8>, GroupError> {
        self.alive()?;
        self.group.meet(message, patience, late)
    }
    fn all_gather(&self, mine: &[u8], counts: &[usize], all: &mut [u8]) -> Result<(), GroupError> {
        self.alive()?;
        self.group.all_gather(mine, counts, all)
    }
    fn exchange(
        &self,
        send: &[(usize, &[u8])],
        receive: &mut [(usize, &mut [u8])],
    ) -> Result<(), GroupError> {
        self.alive()?;
        self.group.exchange(send, receive)
    }
    fn split(&self, color: Option<u32>, key: i64) -> Result<Subgroup, GroupError> {
        self.alive()?;
        let part = self.group.split(color, key)?;
        let process = self.process.clone();
        Ok(part.map(|group| Box::new(Self { group, process }) as _))
    }
    fn post(&self, rank: usize, note: Note) -> Result<(), GroupError> {
        self.group.post(rank, note)
    }
    fn poll(&self) -> Result<Option<(usize, Note)>, GroupError> {
        self.group.poll()
    }
    fn leave(&self) {
        self.group.leave();
    }
}

fn dir() -> PathBuf {
    Path::new(HOME).join("store")
}

/// Where ranks append.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Journals {
    OnNodes,
    InStore,
    /// In the store, where those of one node are long: they stay, and those of the others are written anew.
    Long,
}

impl Journals {
    fn of(seed: u64) -> Self {
        [Self::OnNodes, Self::InStore, Self::Long][seed as usize % 3]
    }
}

fn options(sim: &Sim, node: usize, journals: Journals) -> StoreOptions {
    let options = StoreOptions::new().vfs(Arc::new(sim.clone()));
    let options = options.writers(WRITERS).grace(Duration::ZERO);
    match journals {
        Journals::OnNodes => options.local(Path::new(HOME).join(format!("node {node}"))),
        Journals::Long if node == 0 => options.segment_size(400),
        _ => options,
    }
}

/// What one rank has seen.
#[derive(Default)]
struct Lived {
    truth: Truth,
    /// What came of each commit.
    verdicts: Vec<Result<(), String>>,
}

/// A job of which each rank saves and commits a few times, with orders for each.
fn job(
    sim: &Sim,
    journals: Journals,
    number: u64,
    orders: impl Fn(usize) -> Option<Order> + Sync,
) -> Vec<Lived> {
    let groups = ThreadGroup::on_nodes(NODES.to_vec());
    let orders = &orders;
    std::thread::scope(|scope| {
        let ranks: Vec<_> = groups
            .into_iter()
            .map(|group| {
                scope.spawn(move || {
                    let process = sim.process();
                    orders(group.rank())
                        .into_iter()
                        .for_each(|order| process.order_process(order));
                    let group = Mortal {
                        group: Box::new(group),
                        process,
                    };
                    live(sim, journals, number, &group)
                })
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

const ROUNDS: u64 = 3;

fn live(sim: &Sim, journals: Journals, number: u64, group: &Mortal) -> Lived {
    let mut lived = Lived::default();
    let rank = group.rank();
    let opened = options(&group.process, NODES[rank], journals).open_together(dir(), group);
    let Ok(store) = opened else { return lived };
    for round in 0..ROUNDS {
        save(
            &store,
            &mut lived.truth,
            100 * number + 10 * rank as u64 + round,
        );
        let selection = match round {
            2 => Selection::Archive,
            _ => Selection::Checkpoint,
        };
        let committed = store.commit_together(selection, group);
        if committed.is_ok() && rank == 0 {
            lived.truth.generation = generation(sim, &dir());
        }
        let verdict = committed.map_err(|error| format!("{error:#}"));
        lived.verdicts.push(verdict);
        if group.alive().is_err() {
            break;
        }
    }
    lived
}

/// Saves an entry, a state and a mark, all of this number.
fn save(store: &DirStore, truth: &mut Truth, number: u64) {
    let mut batch = sde::archiver::Batch::new(Selection::Checkpoint);
    let entry = truth.entries.entry(number).or_default();
    entry.tried = 1;
    let state = truth.scratch.entry(10_000 + number).or_default();
    state.tried = 1;
    batch
        .entries
        .push(made::entry(number, 1, Selection::Checkpoint));
    batch.scratch.push(made::scratch(10_000 + number, 1));
    batch.marks.push(made::mark(number));
    truth.marks.insert(number, false);
    if store.save(&batch).is_ok() {
        entry.acknowledged = 1;
        entry.whole = true;
        state.acknowledged = 1;
        truth.marks.insert(number, true);
    }
}

fn add(truth: &mut Truth, more: Truth) {
    truth.entries.extend(more.entries);
    truth.scratch.extend(more.scratch);
    truth.marks.extend(more.marks);
    truth.generation = truth.generation.max(more.generation);
}

/// Everything that was acknowledged is in the store, once ranks on the same nodes have committed.
fn check(left: &Sim, journals: Journals, truth: &Truth) -> Result<(), String> {
    if journals != Journals::OnNodes {
        // No rank need have started again.
        truth.check(left, &dir(), false)?;
    }
    let mut truth = truth.clone();
    for lived in job(left, journals, 9, |_| None) {
        add(&mut truth, lived.truth);
        if lived.verdicts != vec![Ok(()); ROUNDS as usize] {
            return Err(format!(
                "the next job could not commit: {:?}",
                lived.verdicts
            ));
        }
    }
    truth.check(left, &dir(), true)?;
    nothing_is_left(left)
}

/// Nothing is left on the disks of the nodes, but for files that were cut off in their first bytes.
fn nothing_is_left(sim: &Sim) -> Result<(), String> {
    let files = sim.files();
    let begins_well = |path: &Path| {
        let bytes = sim.content(path);
        let header = bytes.get(..48).map(blake3::hash);
        let check = bytes.get(48..64);
        header.is_some_and(|digest| check == Some(&digest.as_bytes()[..16]))
    };
    let journal = |path: &&PathBuf| {
        let is_segment = path.extension().is_some_and(|e| e == "sde");
        is_segment && !path.starts_with(dir()) && begins_well(path)
    };
    match files.iter().find(journal) {
        Some(path) => Err(format!(
            "{} was left, with {} bytes",
            path.display(),
            sim.content(path).len()
        )),
        None => Ok(()),
    }
}

/// What becomes of one process, or of all.
type Orders = Vec<(Option<usize>, Order)>;

/// One job that goes wrong, on a medium where one has been. Gives what its ranks were told.
fn strike(
    seed: u64,
    journals: Journals,
    orders: impl Fn(&mut Random) -> Orders,
) -> Vec<Vec<Result<(), String>>> {
    let sim = Sim::new();
    sim.seed(seed);
    let mut truth = Truth::default();
    for lived in job(&sim, journals, 0, |_| None) {
        assert_eq!(lived.verdicts, vec![Ok(()); ROUNDS as usize]);
        add(&mut truth, lived.truth);
    }
    let orders = orders(&mut Random::new(seed));
    let of_all = orders.iter().filter(|(rank, _)| rank.is_none());
    of_all.for_each(|(_, order)| sim.order(order.clone()));
    let of_rank = |rank| {
        let mut own = orders.iter().filter(|(of, _)| *of == Some(rank));
        own.next().map(|(_, order)| order.clone())
    };
    let mut verdicts = Vec::new();
    for lived in job(&sim, journals, 1, of_rank) {
        add(&mut truth, lived.truth);
        verdicts.push(lived.verdicts);
    }
    assert_eq!(sim.misdeeds(), [""; 0]);
    sim.no_orders();
    // What others vouched for may be lost by a sync that fails after it.
    let faults = |(_, order): &(Option<usize>, Order)| !matches!(order.then, Then::PowerOff);
    truth.losses_may_be_told_of = orders.iter().any(faults);
    for left in [sim.after_kill(), sim.power_loss(seed)] {
        let checked = check(&left, journals, &truth);
        checked.unwrap_or_else(|why| {
            panic!("seed {seed}, {orders:?}, {journals:?}: {why}; {verdicts:?}")
        });
    }
    verdicts
}

#[test]
fn nothing_is_lost_when_the_power_fails() {
    for seed in 0..count(60, 3_000) {
        strike(seed, Journals::of(seed), |random| {
            let order = Order::of(CHANGING, random.within(1..300), Then::PowerOff);
            vec![(None, order)]
        });
    }
}

#[test]
fn nothing_is_lost_when_ranks_are_killed() {
    for seed in 0..count(60, 3_000) {
        strike(seed, Journals::of(seed), |random| {
            let dead = random.within(1..3);
            let one = |random: &mut Random| {
                let order = Order::of(CHANGING, random.within(1..60), Then::PowerOff);
                (Some(random.within(0..NODES.len() as u64) as usize), order)
            };
            (0..dead).map(|_| one(random)).collect()
        });
    }
}

/// All ranks get the same, whichever of them it is that can't read or write.
#[test]
fn an_error_of_one_rank_is_that_of_all() {
    let kinds: &[&[Call]] = &[
        &[Call::Write],
        &[Call::Sync],
        &[Call::Create],
        &[Call::Open],
        &[Call::Read],
        &[Call::Look],
        &[Call::Link],
        &[Call::Remove],
    ];
    let mut failed = 0;
    for seed in 0..count(120, 4_000) {
        let kind = kinds[seed as usize % kinds.len()];
        let verdicts = strike(seed, Journals::of(seed), |random| {
            let order = Order::of(
                kind,
                random.within(1..60),
                Then::Fail(random.pick(&[Error::Io, Error::Full])),
            );
            vec![(Some(random.within(0..NODES.len() as u64) as usize), order)]
        });
        assert!(
            verdicts.iter().all(|one| *one == verdicts[0]),
            "seed {seed}: {verdicts:?}"
        );
        failed += u64::from(verdicts[0].iter().any(Result::is_err));
    }
    println!("{failed} commits failed");
    assert!(failed > 0);
}

/// One that has no index is read from end to end whenever the store is opened.
#[test]
fn what_was_written_for_others_is_sealed_at_the_end() {
    let sim = Sim::new();
    let store = options(&sim, 0, Journals::OnNodes).open_together(dir(), &OneProcess);
    let store = store.unwrap();
    save(&store, &mut Truth::default(), 1);
    let committed = store.commit_together(Selection::Checkpoint, &OneProcess);
    committed.unwrap();
    drop(store);
    let mut segments = sim.files();
    segments.retain(|path| path.starts_with(dir()) && path.extension() == Some("sde".as_ref()));
    assert_eq!(segments.len(), 2, "{segments:?}");
    for segment in segments {
        let bytes = sim.content(&segment);
        assert!(
            bytes[bytes.len() - 32..].starts_with(b"SDEindex"),
            "{segment:?}"
        );
    }
}

/// Another thread saves while the ranks commit, which is stopped wherever it looks at a file. Gives
/// whether it came there.
fn saved_while_they_commit(at: u64) -> bool {
    let sim = Sim::new();
    let dir = Path::new(HOME).join("store");
    let options = StoreOptions::new().vfs(Arc::new(sim.clone()));
    let store = options.open_together(&dir, &OneProcess).unwrap();
    let mut truth = Truth::default();
    let mut save = |number| {
        let mut batch = sde::archiver::Batch::new(Selection::Checkpoint);
        batch
            .entries
            .push(made::entry(number, 1, Selection::Checkpoint));
        store.save(&batch).unwrap();
        let versions = truth.entries.entry(number).or_default();
        (versions.tried, versions.acknowledged, versions.whole) = (1, 1, true);
    };
    let commit = || store.commit_together(Selection::Checkpoint, &OneProcess);
    save(1);
    let (comes, committed) = sim.stopped(&[Call::Look], at, commit, || save(2));
    committed.unwrap();
    if !comes {
        save(2);
    }
    // It goes on where the other thread had begun.
    save(3);
    commit().unwrap();
    truth.check_in(&store).unwrap();
    truth.check(&sim.power_loss(at), &dir, false).unwrap();
    comes
}

#[test]
fn what_is_saved_while_all_commit_is_left_to_the_next_commit() {
    let looks = (1..).take_while(|at| saved_while_they_commit(*at)).count();
    assert!(looks > 0, "it never looks");
}

/// Jobs one after the other leave no more files than the first. One rank lists the folders when it is opened, and that of the
/// manifests when all commit.
#[test]
fn many_jobs_leave_few_files_and_one_rank_lists() {
    for (journals, writers) in [(Journals::OnNodes, 4), (Journals::InStore, WRITERS)] {
        let sim = Sim::new();
        let mut files = Vec::new();
        for number in 0..24 {
            let before = sim.count(&[Call::List]);
            job(&sim, journals, number, |_| None);
            let listings = sim.count(&[Call::List]) - before;
            // Each rank lists its own folder on its node.
            let local = journals == Journals::OnNodes;
            assert!(local || listings <= 4 + ROUNDS, "{listings} listings");
            let there = sim.files().into_iter();
            files.push(there.filter(|path| path.starts_with(dir())).count());
        }
        // Of each writer two; short ones until they are many, and those that were just replaced.
        let most = 2 * writers + 2 * 32 + 2 * writers * 2 + 8;
        assert!(files.iter().all(|files| *files <= most), "{files:?}");
    }
}
