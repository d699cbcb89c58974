//! What a person hears of a rank that is late.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sde::ranks::{GroupError, Note, OneProcess, ProcessGroup, Subgroup, ThreadGroup};
use sde::store::Cbor;
use sde::{AppError, Event, EventLog, Handle, Inputs, Sde};
use sde_tests::{LIMIT, Watchdog, x};

/// A group in which each meeting takes nine times as long as a rank that waits has patience, which it notes.
struct Slow<G>(Arc<Mutex<Vec<Duration>>>, G);

impl<G: ProcessGroup> ProcessGroup for Slow<G> {
    fn rank(&self) -> usize {
        self.1.rank()
    }

    fn size(&self) -> usize {
        self.1.size()
    }

    fn nodes(&self) -> Vec<usize> {
        self.1.nodes()
    }

    fn meet(
        &self,
        message: &[u8],
        patience: Duration,
        late: &mut dyn FnMut(&[usize]),
    ) -> Result<Vec<u8>, GroupError> {
        self.0.lock().unwrap().push(patience);
        (0..9).for_each(|_| late(&[7]));
        self.1.meet(message, Duration::MAX, late)
    }

    fn all_gather(&self, mine: &[u8], counts: &[usize], all: &mut [u8]) -> Result<(), GroupError> {
        self.1.all_gather(mine, counts, all)
    }

    fn exchange(
        &self,
        send: &[(usize, &[u8])],
        receive: &mut [(usize, &mut [u8])],
    ) -> Result<(), GroupError> {
        self.1.exchange(send, receive)
    }

    fn split(&self, color: Option<u32>, key: i64) -> Result<Subgroup, GroupError> {
        self.1.split(color, key)
    }

    fn post(&self, rank: usize, note: Note) -> Result<(), GroupError> {
        self.1.post(rank, note)
    }

    fn poll(&self) -> Result<Option<(usize, Note)>, GroupError> {
        self.1.poll()
    }

    fn leave(&self) {
        self.1.leave();
    }
}

/// Found by a user who looked at a job that said nothing for half a minute. A rank that is late for an hour is not to
/// fill his screen either.
#[test]
fn it_is_told_after_seconds_and_ever_less_often() {
    let told = Arc::new(Mutex::new(0));
    let heard = Arc::clone(&told);
    let observer = move |event: &Event| {
        if matches!(event, Event::Warning { message, .. } if message.contains("waits for rank 7")) {
            *heard.lock().unwrap() += 1;
        }
    };
    let patience = Arc::default();
    let group = Slow(Arc::clone(&patience), OneProcess);
    let builder = Sde::builder().observer(observer).process_group(group, Cbor);
    let sde = builder.build().unwrap();
    sde.gather("numbers", 1_u64).unwrap();
    let meetings = patience.lock().unwrap();
    assert!(!meetings.is_empty());
    assert_eq!(*told.lock().unwrap(), 4 * meetings.len());
    let seconds = Duration::from_secs(10);
    assert!(
        meetings.iter().all(|patience| *patience <= seconds),
        "{meetings:?}"
    );
}

#[sde::app(name = "ranks.late.point", distributed)]
fn point(sde: &Handle, x: u64) -> Result<u64, AppError> {
    Ok(x + sde.ranks()? as u64)
}

/// Ranks that fill no set, and sets that find no point left, wait for as long as the last point takes: they were said to
/// wait for others as if something were wrong.
#[test]
fn a_sweep_on_sets_is_not_late_while_points_are_computed() {
    let _in_time = Watchdog::new("a sweep on sets of slow ranks", LIMIT);
    let list: Vec<Inputs> = (0..5).map(x).collect();
    for size in [3, 4] {
        let warned = ThreadGroup::run(size, |group| {
            let log = EventLog::new();
            let builder = Sde::builder().observer(log.clone());
            let group = Slow(Arc::default(), group);
            let sde = builder.process_group(group, Cbor).build().unwrap();
            let points = sde.par_map_on_sets(&point, &list, 2);
            assert!(points.iter().all(Result::is_ok));
            let warning = |event| matches!(event, Event::Warning { message, .. } if message.contains("releases"));
            log.events()
                .into_iter()
                .filter(|event| warning(event.clone()))
                .count()
        });
        assert_eq!(warned, vec![0; size]);
    }
}
