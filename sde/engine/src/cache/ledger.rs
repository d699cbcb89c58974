//! The books of a budget: an account for each entry, and exact sums by the state of the accounts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Instant;

use super::eviction::Eviction;
use crate::app::TypeIndex;
use crate::entry::{Entry, NO_ACCOUNT};

pub(super) struct Ledger {
    /// By [`Entry::account`].
    pub(super) accounts: Vec<Account>,
    free: Vec<u32>,
    /// Entries that may leave.
    pub(super) eviction: Eviction,
    /// Accounts of apps whose values stay because no store has them, and some that no longer do. They are tried again in
    /// turn: a store may have them by now.
    kept: VecDeque<u32>,
    /// Entries whose values the program may read or let go with nobody told, looked at in turn. Until a stored value is
    /// read it counts with the length of its encoding. The entries may be gone.
    pub(super) watched: VecDeque<(TypeIndex, Weak<Entry>)>,
    /// When each entry came, and those that may leave, by arrival, if the budget has a maximal age.
    came: BTreeMap<u32, Instant>,
    pub(super) by_age: BTreeSet<(Instant, u32)>,
    /// Bytes by the state of the accounts.
    sums: [usize; 5],
}

pub(super) struct Account {
    /// `None` if it is closed.
    pub(super) entry: Option<Arc<Entry>>,
    pub(super) owner: Owner,
    /// Bytes of its values, as far as they were measured.
    values: usize,
    /// Bytes of its record with its places in tables.
    record: u32,
    state: AccountState,
    /// Whether its number is in the queue of those that are kept.
    is_queued: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum AccountState {
    MayLeave,
    /// No store has it, or its key is being computed again.
    Kept,
    /// The program holds its values: only the record is the cache's.
    Referring,
    /// A victim whose fate is not decided yet.
    Taken,
    /// It leaves on all ranks together.
    Collective,
}

/// The owner of an entry.
#[derive(Clone, Copy)]
pub(crate) enum Owner {
    App(TypeIndex),
    /// The ranks of a process set, which evict it together.
    Ranks,
}

impl Account {
    pub(super) fn bytes(&self) -> usize {
        self.values.saturating_add(self.record as usize)
    }

    fn is_tried_again(&self) -> bool {
        self.state == AccountState::Kept && self.values > 0 && matches!(self.owner, Owner::App(_))
    }
}

impl Ledger {
    pub(super) fn new(eviction: Eviction) -> Self {
        Self {
            accounts: Vec::new(),
            free: Vec::new(),
            eviction,
            kept: VecDeque::new(),
            watched: VecDeque::new(),
            came: BTreeMap::new(),
            by_age: BTreeSet::new(),
            sums: [0; 5],
        }
    }

    /// Opens an account. The caller lists an entry that may leave with the eviction.
    pub(super) fn insert(
        &mut self,
        owner: Owner,
        entry: &Arc<Entry>,
        state: AccountState,
        came: Option<Instant>,
    ) -> u32 {
        let mut account = Account {
            entry: Some(Arc::clone(entry)),
            owner,
            record: entry.record_memory(),
            values: entry.known_bytes(),
            state,
            is_queued: false,
        };
        let at = match self.free.pop() {
            Some(at) => {
                account.is_queued = self.accounts[at as usize].is_queued;
                self.accounts[at as usize] = account;
                at
            }
            None => {
                self.accounts.push(account);
                (self.accounts.len() - 1) as u32
            }
        };
        entry.account.store(at, Ordering::Relaxed);
        self.came.extend(came.map(|came| (at, came)));
        self.count(at, true);
        at
    }

    /// Takes an entry off, if it is here; gives it, and when it came if that is noted.
    pub(super) fn remove(&mut self, entry: &Arc<Entry>) -> (Option<Arc<Entry>>, Option<Instant>) {
        let Some(at) = self.find(entry) else {
            return (None, None);
        };
        self.count(at, false);
        self.free.push(at);
        entry.account.store(NO_ACCOUNT, Ordering::Relaxed);
        (
            self.accounts[at as usize].entry.take(),
            self.came.remove(&at),
        )
    }

    /// Measures the record of an entry again, leaving its account open; gives the account's state.
    pub(super) fn measure_record(&mut self, entry: &Arc<Entry>) -> Option<AccountState> {
        let at = self.find(entry)? as usize;
        let account = &mut self.accounts[at];
        let less = account.record - entry.record_memory();
        account.record -= less;
        self.sums[account.state as usize] -= less as usize;
        Some(account.state)
    }

    /// Bytes of all accounts, without taken ones.
    pub(super) fn bytes(&self) -> usize {
        self.sums.iter().sum::<usize>() - self.bytes_of(AccountState::Taken)
    }

    pub(super) fn bytes_of(&self, state: AccountState) -> usize {
        self.sums[state as usize]
    }

    pub(super) fn entries(&self) -> usize {
        self.accounts.len() - self.free.len()
    }

    /// Takes an account off the queue of those that are kept.
    pub(super) fn next_kept(&mut self) -> Option<u32> {
        loop {
            let at = self.kept.pop_front()?;
            let account = &mut self.accounts[at as usize];
            account.is_queued = false;
            if account.entry.is_some() && account.is_tried_again() {
                return Some(at);
            }
        }
    }

    pub(super) fn find(&self, entry: &Arc<Entry>) -> Option<u32> {
        let at = entry.account.load(Ordering::Relaxed);
        let here = self.accounts.get(at as usize)?.entry.as_ref()?;
        Arc::ptr_eq(here, entry).then_some(at)
    }

    pub(super) fn set_state(&mut self, at: u32, state: AccountState) {
        self.count(at, false);
        self.accounts[at as usize].state = state;
        self.count(at, true);
    }

    /// Adds an account to the sum of its state, or takes it off.
    fn count(&mut self, at: u32, is_there: bool) {
        let account = &mut self.accounts[at as usize];
        let sum = &mut self.sums[account.state as usize];
        if is_there {
            *sum += account.bytes();
        } else {
            *sum -= account.bytes();
        }
        if is_there && account.is_tried_again() && !account.is_queued {
            account.is_queued = true;
            self.kept.push_back(at);
        }
        if account.state == AccountState::MayLeave {
            let by_age = self.came.get(&at).map(|came| (*came, at));
            if is_there {
                self.by_age.extend(by_age);
            } else {
                self.eviction.order.remove(at);
                by_age.map(|it| self.by_age.remove(&it));
            }
        }
    }
}
