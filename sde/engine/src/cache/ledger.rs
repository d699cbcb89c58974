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
    /// Entries of apps whose values stay because no store has them. They are tried again in turn: a store may have them
    /// by now.
    pub(super) kept: Turns,
    /// Entries whose values the program may read or let go with nobody told, looked at in turn. Until a stored value is
    /// read it counts with the length of its encoding. The entries may be gone.
    pub(super) watched: VecDeque<(TypeIndex, Weak<Entry>)>,
    /// When each entry came, and those that may leave, by arrival, if the budget has a maximal age.
    came: BTreeMap<u32, Instant>,
    pub(super) by_age: BTreeSet<(Instant, u32)>,
    /// Bytes of all accounts, without taken ones.
    pub(super) bytes: usize,
    pub(super) taken_bytes: usize,
    pub(super) collective_bytes: usize,
    pub(super) entries: usize,
    pub(super) kept_bytes: usize,
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
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum AccountState {
    MayLeave,
    /// No store has it.
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
}

impl Ledger {
    pub(super) fn new(eviction: Eviction) -> Self {
        Self {
            accounts: Vec::new(),
            free: Vec::new(),
            eviction,
            kept: Turns::default(),
            watched: VecDeque::new(),
            came: BTreeMap::new(),
            by_age: BTreeSet::new(),
            bytes: 0,
            taken_bytes: 0,
            collective_bytes: 0,
            entries: 0,
            kept_bytes: 0,
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
        let account = Account {
            entry: Some(Arc::clone(entry)),
            owner,
            record: entry.record_memory(),
            values: entry.known_bytes(),
            state,
        };
        let at = match self.free.pop() {
            Some(at) => {
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
        self.entries += 1;
        self.count(at, true);
        at
    }

    /// Takes an entry off, if it is here.
    pub(super) fn remove(&mut self, entry: &Arc<Entry>) -> Option<Arc<Entry>> {
        let at = self.find(entry)?;
        self.count(at, false);
        self.came.remove(&at);
        self.entries -= 1;
        self.free.push(at);
        entry.account.store(NO_ACCOUNT, Ordering::Relaxed);
        self.accounts[at as usize].entry.take()
    }

    /// When an entry came, if that is noted.
    pub(super) fn came(&self, entry: &Arc<Entry>) -> Option<Instant> {
        self.came.get(&self.find(entry)?).copied()
    }

    /// Measures the record of an entry again, leaving its account open; gives the account's state.
    pub(super) fn measure_record(&mut self, entry: &Arc<Entry>) -> Option<AccountState> {
        let at = self.find(entry)? as usize;
        let account = &mut self.accounts[at];
        let less = (account.record - entry.record_memory()) as usize;
        account.record = entry.record_memory();
        let state = account.state;
        match state {
            AccountState::Taken => self.taken_bytes -= less,
            _ => self.bytes -= less,
        }
        match state {
            AccountState::Collective => self.collective_bytes -= less,
            AccountState::Kept => self.kept_bytes -= less,
            AccountState::MayLeave | AccountState::Referring | AccountState::Taken => {}
        }
        Some(state)
    }

    fn find(&self, entry: &Arc<Entry>) -> Option<u32> {
        let at = entry.account.load(Ordering::Relaxed);
        let here = self.accounts.get(at as usize)?.entry.as_ref()?;
        Arc::ptr_eq(here, entry).then_some(at)
    }

    pub(super) fn set_state(&mut self, at: u32, state: AccountState) {
        self.count(at, false);
        self.accounts[at as usize].state = state;
        self.count(at, true);
    }

    /// Adds an account to the sums of its state, or takes it off.
    fn count(&mut self, at: u32, is_there: bool) {
        let account = &self.accounts[at as usize];
        let bytes = account.bytes();
        let Account {
            owner,
            values,
            state,
            ..
        } = *account;
        let came = self.came.get(&at).copied();
        let add = |sum: &mut usize, bytes: usize| match is_there {
            true => *sum += bytes,
            false => *sum -= bytes,
        };
        match state {
            AccountState::MayLeave => {
                add(&mut self.bytes, bytes);
                if !is_there {
                    self.eviction.unlist(at);
                }
                if let Some(came) = came {
                    match is_there {
                        true => self.by_age.insert((came, at)),
                        false => self.by_age.remove(&(came, at)),
                    };
                }
            }
            AccountState::Referring => add(&mut self.bytes, bytes),
            AccountState::Taken => add(&mut self.taken_bytes, bytes),
            AccountState::Collective => {
                add(&mut self.bytes, bytes);
                add(&mut self.collective_bytes, bytes);
            }
            AccountState::Kept => {
                add(&mut self.bytes, bytes);
                add(&mut self.kept_bytes, bytes);
                if values > 0 && matches!(owner, Owner::App(_)) {
                    self.kept.set(at, is_there);
                }
            }
        }
    }
}

/// Accounts that have their turn one after the other.
#[derive(Default)]
pub(super) struct Turns {
    accounts: BTreeSet<u32>,
    /// The next turn is of the first account from this number on, or else of the first.
    next: u32,
}

impl Turns {
    pub(super) fn next(&mut self) -> Option<u32> {
        let after = self.accounts.range(self.next..).next();
        let at = *after.or_else(|| self.accounts.first())?;
        self.next = at + 1;
        Some(at)
    }

    fn set(&mut self, at: u32, is_there: bool) {
        match is_there {
            true => self.accounts.insert(at),
            false => self.accounts.remove(&at),
        };
    }
}
