//! What a person hears of a rank that is late.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sde::store::Cbor;
use sde::{Event, GroupError, Note, OneProcess, ProcessGroup, Sde, Subgroup};

/// A group in which each meeting takes nine times as long as a rank that waits has patience, which it notes.
struct Slow(Arc<Mutex<Vec<Duration>>>);

impl ProcessGroup for Slow {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn nodes(&self) -> Vec<usize> {
        vec![0]
    }

    fn meet(
        &self,
        message: &[u8],
        patience: Duration,
        late: &mut dyn FnMut(&[usize]),
    ) -> Result<Vec<u8>, GroupError> {
        self.0.lock().unwrap().push(patience);
        (0..9).for_each(|_| late(&[7]));
        Ok(message.to_vec())
    }

    fn all_gather(&self, mine: &[u8], counts: &[usize], all: &mut [u8]) -> Result<(), GroupError> {
        OneProcess.all_gather(mine, counts, all)
    }

    fn exchange(
        &self,
        send: &[(usize, &[u8])],
        receive: &mut [(usize, &mut [u8])],
    ) -> Result<(), GroupError> {
        OneProcess.exchange(send, receive)
    }

    fn split(&self, color: Option<u32>, key: i64) -> Result<Subgroup, GroupError> {
        OneProcess.split(color, key)
    }

    fn post(&self, rank: usize, note: Note) -> Result<(), GroupError> {
        OneProcess.post(rank, note)
    }

    fn poll(&self) -> Result<Option<(usize, Note)>, GroupError> {
        OneProcess.poll()
    }

    fn leave(&self) {}
}

/// Found by a user who looked at a job that said nothing for half a minute. A rank that is late for an hour is not to
/// fill his screen either.
#[test]
fn it_is_told_after_seconds_and_ever_less_often() {
    let told = Arc::new(Mutex::new(0));
    let heard = Arc::clone(&told);
    let observer = move |event: &Event| {
        if matches!(event, Event::Warning { message } if message.contains("waits for rank 7")) {
            *heard.lock().unwrap() += 1;
        }
    };
    let patience = Arc::default();
    let group = Slow(Arc::clone(&patience));
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
