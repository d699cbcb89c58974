//! A program that runs on its own.

use std::time::Duration;

use super::{GroupError, ProcessGroup, Subgroup};

/// The group of a program that runs on one process: what all ranks do together, it does alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneProcess;

impl ProcessGroup for OneProcess {
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
        _: Duration,
        _: &mut dyn FnMut(&[usize]),
    ) -> Result<Vec<u8>, GroupError> {
        Ok(message.to_vec())
    }

    fn all_gather(&self, mine: &[u8], counts: &[usize], all: &mut [u8]) -> Result<(), GroupError> {
        own(mine, counts, all)
    }

    fn all_to_all(
        &self,
        send: &[u8],
        _: &[usize],
        receive: &mut [u8],
        receive_counts: &[usize],
    ) -> Result<(), GroupError> {
        own(send, receive_counts, receive)
    }

    fn split(&self, color: Option<u32>, _: i64) -> Result<Subgroup, GroupError> {
        Ok(color.map(|_| Box::new(Self) as _))
    }

    fn leave(&self) {}
}

fn own(mine: &[u8], counts: &[usize], to: &mut [u8]) -> Result<(), GroupError> {
    let fits = counts == [mine.len()] && to.len() == mine.len();
    if !fits {
        return Err(GroupError::Length {
            rank: 0,
            given: mine.len(),
            expected: to.len(),
        });
    }
    to.copy_from_slice(mine);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_gets_back_what_it_gives() {
        let group = OneProcess;
        let met = group.meet(b"here", Duration::MAX, &mut |_| {
            unreachable!("nobody is late")
        });
        assert_eq!(met.as_deref(), Ok(&b"here"[..]));
        let mut all = [0; 3];
        assert_eq!(group.all_gather(b"abc", &[3], &mut all), Ok(()));
        assert_eq!(&all, b"abc");
        assert!(group.all_gather(b"abc", &[2], &mut all[..2]).is_err());
        assert_eq!(group.all_to_all(b"def", &[3], &mut all, &[3]), Ok(()));
        assert_eq!(&all, b"def");
        assert!(matches!(group.split(Some(7), 0), Ok(Some(sub)) if sub.size() == 1));
        assert!(matches!(group.split(None, 0), Ok(None)));
    }
}
