//! Runs many collective functions together, in as many rounds as the longest of them takes.
//!
//! Each function talks to other ranks through the [`Ranks`] that it is given. One after another, the functions would
//! wait for other ranks in each of their operations. So each is called until its first question to other ranks, where
//! an error stops it. The questions of all functions go in one message to each rank. Then each function is called again
//! from its beginning, gets the answers so far, and goes on to its next question.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::header::{Body, Header, digest_of};
use super::{Ranks, pieces};
use crate::error::Error;
use crate::ranks::group::{GroupError, Note, ProcessGroup, Subgroup, fill};
use crate::sync::lock;

/// An answer: the bytes from each rank, by rank.
type Answer = Vec<Vec<u8>>;

/// One operation that a function began.
struct Question {
    /// Whether this rank sends the same bytes to all ranks.
    is_for_all: bool,
    to_each: Vec<Vec<u8>>,
    /// The number of bytes from each rank.
    from_each: Vec<usize>,
}

/// The state of one function between rounds.
#[derive(Default)]
struct Progress {
    answers: Vec<Answer>,
    /// The number of answers used since the function was last called.
    given: usize,
    question: Option<Question>,
}

impl Ranks {
    /// Runs `count` collective functions together. Each must ask the same questions each time it is called.
    ///
    /// # Errors
    /// All ranks get one error if a function fails on one of them, or the ranks ask different questions.
    pub(crate) fn in_rounds<T>(
        &self,
        header: &Header,
        count: usize,
        each: impl Fn(usize, &Self) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        if count == 1 {
            // At its end too: a rank that another's failure stopped has met that rank's end already.
            let _level = self.level();
            let went = each(0, self);
            self.meet(header.clone().with_failure(went.as_ref().err()))?;
            return went.map(|one| vec![one]);
        }
        let mut progress: Vec<_> = (0..count).map(|_| Progress::default()).collect();
        let mut done: Vec<Option<T>> = (0..count).map(|_| None).collect();
        loop {
            let (mut asked, mut failed) = (Vec::new(), None);
            let unfinished = done.iter_mut().zip(&mut progress).enumerate();
            for (at, (done, progress)) in unfinished.filter(|(_, (done, _))| done.is_none()) {
                let went = self.call(progress, |ranks| each(at, ranks));
                match (progress.question.take(), went) {
                    (Some(question), _) => asked.push((at, question)),
                    (None, Ok(value)) => *done = Some(value),
                    (None, Err(error)) => {
                        failed = Some(error);
                        break;
                    }
                }
            }
            let asks = asked.iter().map(|(at, asks)| (*at, asks.is_for_all));
            let asks = digest_of(&asks.collect::<Vec<_>>());
            let header = header.clone().with_body(Body::Held(asks));
            let met = self.meet(header.with_failure(failed.as_ref()))?;
            if let Some(rank) = met.iter().position(|other| other.body != met[0].body) {
                return Err(self.garbled(rank, &met[0].what));
            }
            if asked.is_empty() {
                return Ok(done.into_iter().flatten().collect());
            }
            for (at, answer) in self.answers(&met[0].what, &asked)? {
                progress[at].answers.push(answer);
            }
        }
    }

    /// Calls a function with the answers so far.
    fn call<T>(
        &self,
        progress: &mut Progress,
        each: impl FnOnce(&Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        progress.given = 0;
        let shared = Arc::new(Mutex::new(std::mem::take(progress)));
        let group = Stepping {
            rank: self.rank(),
            size: self.size(),
            progress: Arc::clone(&shared),
        };
        let went = each(&Self {
            id: self.id,
            world: self.world.clone(),
            ..Self::world(Box::new(group), Duration::MAX, Arc::clone(&self.late))
        });
        *progress = std::mem::take(&mut *lock(&shared));
        went
    }

    /// Sends the questions of all functions to all ranks, and gives the answers.
    fn answers(
        &self,
        what: &str,
        asked: &[(usize, Question)],
    ) -> Result<Vec<(usize, Answer)>, Error> {
        let mut send = vec![Vec::new(); self.size()];
        let mut lengths = vec![Vec::new(); self.size()];
        for (_, question) in asked {
            for rank in 0..self.size() {
                send[rank].extend_from_slice(&question.to_each[rank]);
                lengths[rank].push(question.from_each[rank]);
            }
        }
        let room = |of_rank: &Vec<usize>| self.zeroed(what, of_rank.iter().sum());
        let mut came: Vec<_> = lengths.iter().map(room).collect::<Result<_, Error>>()?;
        self.exchange_with_all(what, &send, &mut came)?;
        let mut answers: Vec<_> = asked.iter().map(|(at, _)| (*at, Answer::new())).collect();
        for (of_rank, lengths) in came.iter().zip(&lengths) {
            for ((_, answer), bytes) in answers.iter_mut().zip(pieces(of_rank, lengths)) {
                answer.push(bytes.to_vec());
            }
        }
        Ok(answers)
    }
}

/// The group of a function, which stops it at the first question that has no answer yet.
struct Stepping {
    rank: usize,
    size: usize,
    progress: Arc<Mutex<Progress>>,
}

impl Stepping {
    fn ask(&self, question: impl FnOnce() -> Question) -> Result<Answer, GroupError> {
        let progress = &mut *lock(&self.progress);
        let answer = progress.answers.get(progress.given).cloned();
        progress.given += usize::from(answer.is_some());
        answer.ok_or_else(|| {
            // Only the first open question counts: a function that goes on in spite of the error gets no more answers.
            progress.question.get_or_insert_with(question);
            let why = "other ranks answer in the next round; pass this error on";
            GroupError::Other(why.to_owned())
        })
    }

    fn ask_all(&self, mine: &[u8], from_each: Vec<usize>) -> Result<Vec<u8>, GroupError> {
        let of_all = self.ask(|| Question {
            is_for_all: true,
            to_each: vec![mine.to_vec(); self.size],
            from_each,
        });
        Ok(of_all?.concat())
    }
}

impl ProcessGroup for Stepping {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn nodes(&self) -> Vec<usize> {
        (0..self.size).collect()
    }

    fn meet(
        &self,
        message: &[u8],
        _: Duration,
        _: &mut dyn FnMut(&[usize]),
    ) -> Result<Vec<u8>, GroupError> {
        self.ask_all(message, vec![message.len(); self.size])
    }

    fn all_gather(&self, mine: &[u8], counts: &[usize], all: &mut [u8]) -> Result<(), GroupError> {
        let given = self.ask_all(mine, counts.to_vec())?;
        fill(self.rank, all, Some(&given))
    }

    fn exchange(
        &self,
        send: &[(usize, &[u8])],
        receive: &mut [(usize, &mut [u8])],
    ) -> Result<(), GroupError> {
        let came = self.ask(|| {
            let mut question = Question {
                is_for_all: false,
                to_each: vec![Vec::new(); self.size],
                from_each: vec![0; self.size],
            };
            for (rank, bytes) in send {
                question.to_each[*rank].extend_from_slice(bytes);
            }
            for (rank, place) in &*receive {
                question.from_each[*rank] += place.len();
            }
            question
        })?;
        let mut rest: Vec<_> = came.iter().map(|bytes| &bytes[..]).collect();
        for (rank, place) in receive {
            let (own, others) = rest[*rank].split_at(place.len().min(rest[*rank].len()));
            fill(*rank, place, Some(own))?;
            rest[*rank] = others;
        }
        Ok(())
    }

    fn split(&self, _: Option<u32>, _: i64) -> Result<Subgroup, GroupError> {
        Err(GroupError::Other("its process set changes".to_owned()))
    }

    fn post(&self, _: usize, _: Note) -> Result<(), GroupError> {
        Err(GroupError::Other("its process set changes".to_owned()))
    }

    fn poll(&self) -> Result<Option<(usize, Note)>, GroupError> {
        Ok(None)
    }

    fn leave(&self) {}
}

#[cfg(test)]
mod tests {
    use super::super::CollectiveOp;
    use super::*;

    fn header() -> Header {
        Header::keyless(CollectiveOp::End, "many things")
    }

    /// Gathers `times` times, each time the result of the time before.
    fn gather(times: usize, ranks: &Ranks) -> Result<Vec<u64>, Error> {
        let mut all = vec![ranks.rank() as u64];
        for _ in 0..times {
            let header = Header::keyless(CollectiveOp::Gather, "numbers");
            all = ranks.gather_all(header, Ok(all))?.concat();
        }
        Ok(all)
    }

    #[test]
    fn things_that_take_different_numbers_of_rounds_end_as_each_alone() {
        let made = Ranks::on_threads(3, |ranks| {
            let together = ranks.in_rounds(&header(), 3, gather).unwrap();
            let alone: Vec<_> = (0..3).map(|times| gather(times, ranks).unwrap()).collect();
            // Together: one meeting for each of the longest function's 2 * 2 questions, and one at the end.
            (together == alone, ranks.meetings())
        });
        assert_eq!(made, [(true, (2 * 2 + 1) + (1 + 2)); 3]);
    }

    #[test]
    fn one_that_fails_on_one_rank_is_that_error_on_all() {
        let errors = Ranks::on_threads(3, |ranks| {
            let failed = ranks.in_rounds(&header(), 4, |at, ranks| {
                let numbers = gather(2, ranks);
                match (at, ranks.rank()) {
                    // This function goes on after the error, so the error does not end it.
                    (1, _) => Ok(numbers.unwrap_or_default()),
                    (2, 1) => Err(ranks.garbled(2, "a number")),
                    _ => numbers,
                }
            });
            let error = failed.unwrap_err().to_string();
            assert!(ranks.agree("what comes after", Ok(())).is_ok());
            error
        });
        assert!(errors[0].contains("a number"), "{errors:?}");
        assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    }

    #[test]
    fn ranks_that_ask_for_different_things_get_the_same_error() {
        let errors = Ranks::on_threads(2, |ranks| {
            let went = ranks.in_rounds(&header(), 2, |at, ranks| gather(at * ranks.rank(), ranks));
            went.unwrap_err().to_string()
        });
        assert!(
            errors[0].contains("rank 1: sent something else"),
            "{errors:?}"
        );
        assert_eq!(errors[0], errors[1]);
    }
}
