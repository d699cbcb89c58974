//! How much goes from rank to rank, by a group that counts it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use sde::__private::MEETING_BYTES;
use sde::ranks::{Edge, GroupError, Note, ProcessGroup, Subgroup, ThreadGroup};
use sde::store::Cbor;
use sde::{DistArray, Inputs, Sde};
use sde_tests::{LIMIT, Watchdog, number, x};

/// What ranks have done together, all of them counted as one.
#[derive(Default)]
pub struct Counts {
    /// The bytes that went from one rank to another, where each has something else for each.
    pub moved: AtomicUsize,
    /// The bytes that each rank got where all get the same, of all ranks.
    pub gathered: AtomicUsize,
    /// The operations, of all ranks.
    pub operations: AtomicUsize,
    /// The messages that went from one rank to another, each for itself.
    pub messages: AtomicUsize,
}

impl Counts {
    /// Begins to count.
    pub fn begin(&self) {
        let all = [
            &self.moved,
            &self.gathered,
            &self.operations,
            &self.messages,
        ];
        all.iter()
            .for_each(|count| count.store(0, Ordering::SeqCst));
    }
}

/// Counts for all ranks.
pub struct Counting {
    pub group: Box<dyn ProcessGroup>,
    pub counts: Arc<Counts>,
}

impl ProcessGroup for Counting {
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
        let all = message.len() * self.size();
        self.counts.gathered.fetch_add(all, Ordering::SeqCst);
        self.counts.operations.fetch_add(1, Ordering::SeqCst);
        self.group.meet(message, patience, late)
    }

    fn all_gather(&self, mine: &[u8], counts: &[usize], all: &mut [u8]) -> Result<(), GroupError> {
        self.counts.gathered.fetch_add(all.len(), Ordering::SeqCst);
        self.counts.operations.fetch_add(1, Ordering::SeqCst);
        self.group.all_gather(mine, counts, all)
    }

    fn exchange(
        &self,
        send: &[(usize, &[u8])],
        receive: &mut [(usize, &mut [u8])],
    ) -> Result<(), GroupError> {
        let to_others = send.iter().filter(|(to, _)| *to != self.rank());
        let bytes = to_others.clone().map(|(_, message)| message.len()).sum();
        self.counts.moved.fetch_add(bytes, Ordering::SeqCst);
        let messages = to_others.count();
        self.counts.messages.fetch_add(messages, Ordering::SeqCst);
        self.counts.operations.fetch_add(1, Ordering::SeqCst);
        self.group.exchange(send, receive)
    }

    fn split(&self, color: Option<u32>, key: i64) -> Result<Subgroup, GroupError> {
        let part = self.group.split(color, key)?;
        let counted = |group| Self {
            group,
            counts: Arc::clone(&self.counts),
        };
        Ok(part.map(|group| Box::new(counted(group)) as _))
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

/// Has so many ranks do something, and then something of which is counted what goes from one to another: the bytes that
/// are for one of them, and those that all get, for one rank.
pub fn counted(
    size: usize,
    before: impl Fn(&Sde) + Sync,
    then: impl Fn(&Sde) + Sync,
) -> (usize, usize) {
    let counts = counts_of(size, before, then);
    let count = |count: &AtomicUsize| count.load(Ordering::SeqCst);
    (count(&counts.moved), count(&counts.gathered) / size)
}

/// Every counter of such a program, not only what moved and was gathered.
pub fn counts_of(
    size: usize,
    before: impl Fn(&Sde) + Sync,
    then: impl Fn(&Sde) + Sync,
) -> Arc<Counts> {
    let _in_time = Watchdog::new("a program on several ranks", LIMIT);
    let (counts, all_are_here) = (Arc::new(Counts::default()), Barrier::new(size));
    ThreadGroup::run(size, |group| {
        let is_first = group.rank() == 0;
        let group = Counting {
            group: Box::new(group),
            counts: Arc::clone(&counts),
        };
        let builder = Sde::builder().threads(1).process_group(group, Cbor);
        let sde = builder.build().unwrap();
        before(&sde);
        all_are_here.wait();
        if is_first {
            counts.begin();
        }
        all_are_here.wait();
        then(&sde);
    });
    counts
}

fn map(sde: &Sde, points: std::ops::Range<u64>) {
    let list: Vec<Inputs> = points.map(x).collect();
    let square = number("square", |_, x| Ok(x * x));
    let squares = sde.par_map(&square, &list).into_iter();
    squares.for_each(|y| drop(y.unwrap()));
}

/// What one rank tells the others of a point takes no more.
const POINT: usize = 100;

/// Found by reckoning: where all ranks had all 10^5 points, 1,000 ranks sent 4.9 GB to each of them to find that out.
#[test]
fn ranks_that_have_all_points_say_so_in_few_bytes() {
    for points in [10, 10_000] {
        let (moved, gathered) = counted(3, |sde| map(sde, 0..points), |sde| map(sde, 0..points));
        assert_eq!((moved, gathered), (0, 3 * MEETING_BYTES), "{points} points");
    }
}

/// Whatever they have already.
#[test]
fn ranks_say_as_much_as_is_missing() {
    let (moved, gathered) = counted(3, |sde| map(sde, 0..10_000), |sde| map(sde, 0..10_010));
    assert!(gathered < 3 * 6 * MEETING_BYTES + 10 * POINT, "{gathered}");
    assert!(moved < 3 * 10 * 2 * POINT, "{moved}");
}

/// Of what several have one tells, and all of it goes to who lacks it.
#[test]
fn what_one_rank_lacks_one_other_tells() {
    let before = |sde: &Sde| {
        let square = number("square", |_, x| Ok(x * x));
        if sde.rank().unwrap() < 2 {
            (0..1000).for_each(|point| drop(sde.run(&square, &x(point)).unwrap()));
        }
    };
    let (moved, gathered) = counted(3, before, |sde| map(sde, 0..1000));
    assert!(
        gathered < 3 * 6 * MEETING_BYTES + 1000 * POINT,
        "{gathered}"
    );
    assert!(moved < 1000 * 2 * POINT, "{moved}");
}

/// Prints the table of `docs/scaling.md`, for fewer ranks: what it has for 10,000 follows from these.
#[test]
#[ignore = "part of docs/scaling.md, which it prints the table of"]
fn the_table() {
    println!("| | ranks | operations | bytes from all | messages to others | bytes to others |");
    for size in [2, 10, 100] {
        let points = 10 * size as u64;
        let release = |sde: &Sde| {
            let square = number("square", |_, x| Ok(x * x));
            let rank = sde.rank().unwrap() as u64;
            let part = sde.split(rank as u32, 0).unwrap();
            (0..10).for_each(|n| drop(part.run(&square, &x(10 * rank + n)).unwrap()));
            part.release().unwrap();
        };
        let whole = |sde: &Sde| {
            let field = DistArray::from_fn(sde, &[4 * size, 64], |at| at[0] as f64).unwrap();
            let padded = field.padded(sde, &[1, 1], &[Edge::Constant(0.0); 2]);
            drop(padded.unwrap());
        };
        let rows: [(&str, Arc<Counts>); 4] = [
            (
                "`par_map`, all there",
                counts_of(size, |sde| map(sde, 0..points), |sde| map(sde, 0..points)),
            ),
            (
                "`par_map`, ten new points on each",
                counts_of(size, |_| (), |sde| map(sde, 0..points)),
            ),
            (
                "split and release, ten new results on each",
                counts_of(size, |_| (), release),
            ),
            (
                "halo of one row of 64 numbers",
                counts_of(size, |_| (), whole),
            ),
        ];
        for (what, counts) in rows {
            let of_rank = |count: &AtomicUsize| count.load(Ordering::SeqCst) as f64 / size as f64;
            println!(
                "| {what} | {size} | {} | {:.0} | {:.1} | {:.0} |",
                of_rank(&counts.operations),
                of_rank(&counts.gathered),
                of_rank(&counts.messages),
                of_rank(&counts.moved),
            );
        }
    }
}
