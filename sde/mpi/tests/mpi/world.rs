//! The processes of a job as the ranks that tests are run on.

use std::time::Duration;

use sde::ranks::ProcessGroup;
use sde_mpi::{MpiGroup, Session};
use sde_tests::ranks::{Rank, World};

/// All processes of a job. What goes between them besides the tests goes by a group of their own.
pub struct Job {
    besides: MpiGroup,
    session: Session,
}

impl Job {
    /// Collective, as all that is done with it.
    pub fn new(session: Session) -> Self {
        Self {
            besides: session.world(),
            session,
        }
    }

    pub fn rank(&self) -> usize {
        self.besides.rank()
    }

    /// The group of a test: that of all, or the first so many.
    fn group(&self, size: usize) -> Option<Rank> {
        if size == self.most() {
            return Some(Rank::of(self.session.world()));
        }
        let has_part = self.rank() < size;
        let part = self.besides.split(has_part.then_some(0), 0).unwrap();
        part.map(Rank::of)
    }

    /// What each process has, for all.
    fn all(&self, mine: &[u8]) -> Vec<Vec<u8>> {
        let length = (mine.len() as u64).to_le_bytes();
        let lengths = self
            .besides
            .meet(&length, Duration::MAX, &mut |_| {})
            .unwrap();
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap()) as usize;
        let counts: Vec<usize> = lengths.chunks(8).map(number).collect();
        let mut bytes = vec![0; counts.iter().sum()];
        self.besides.all_gather(mine, &counts, &mut bytes).unwrap();
        let mut rest = &bytes[..];
        let part = |count: usize| rest.split_off(..count).unwrap().to_vec();
        counts.into_iter().map(part).collect()
    }
}

impl World for Job {
    fn most(&self) -> usize {
        self.besides.size()
    }

    fn run(&self, size: usize, program: &(dyn Fn(Rank) -> Vec<u8> + Sync)) -> Vec<Vec<u8>> {
        assert!(size <= self.most(), "{size} ranks of {}", self.most());
        let mine = self.group(size).map_or_else(Vec::new, program);
        let mut all = self.all(&mine);
        all.truncate(size);
        all
    }

    fn is_first(&self) -> bool {
        self.rank() == 0
    }

    fn share(&self, bytes: &[u8]) -> Vec<u8> {
        self.all(bytes).swap_remove(0)
    }
}
