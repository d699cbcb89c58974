//! What is counted of the entries of a budget: an account for each, and sums that are exact by what state each is in.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Instant;

use super::entry::{Entry, NO_ACCOUNT};
use super::eviction::Eviction;
use crate::app::TypeIndex;
use crate::result_map::Named;

pub(super) struct Ledger {
    /// By [`Entry::account`].
    pub(super) accounts: Vec<Account>,
    free: Vec<u32>,
    /// What may leave.
    pub(super) eviction: Eviction,
    /// What is in use, to be looked at again in turn; and of it what came here since the last look, and may have gone again.
    pub(super) in_use: Turns,
    pub(super) set_aside: Vec<u32>,
    /// What an app has that stays with its values since nothing else has them, to be given its turn again: a store may have it
    /// by now.
    pub(super) kept: Turns,
    /// What came from a store and counts with the length of its encoding, until it is read. It may be gone.
    pub(super) unread: VecDeque<(TypeIndex, Weak<Entry>)>,
    /// What may leave by when it came, if that matters.
    pub(super) by_age: BTreeSet<(Instant, u32)>,
    /// All but what is in use or taken.
    pub(super) bytes: usize,
    pub(super) taken_bytes: usize,
    pub(super) collective_bytes: usize,
    pub(super) entries: usize,
    pub(super) kept_bytes: usize,
    pub(super) in_use_bytes: usize,
}

pub(super) struct Account {
    /// `None` if it is closed.
    pub(super) entry: Option<Arc<Entry>>,
    pub(super) owner: Owner,
    /// What its record takes, with places in tables, and what its values take as far as that was known.
    record: usize,
    values: usize,
    pub(super) state: AccountState,
    pub(super) came: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum AccountState {
    MayLeave,
    /// Nothing has it but memory.
    Kept,
    InUse,
    /// A victim, of which it is not decided yet.
    Taken,
    /// It leaves with those of other ranks.
    Collective,
}

/// Whose an entry is.
#[derive(Clone, Copy)]
pub(crate) enum Owner {
    App(TypeIndex),
    /// The ranks of a process set, who have it leave together.
    Ranks,
}

impl Account {
    pub(super) fn bytes(&self) -> usize {
        self.record.saturating_add(self.values)
    }
}

impl Ledger {
    pub(super) fn new(eviction: Eviction) -> Self {
        Self {
            accounts: Vec::new(),
            free: Vec::new(),
            eviction,
            in_use: Turns::default(),
            set_aside: Vec::new(),
            kept: Turns::default(),
            unread: VecDeque::new(),
            by_age: BTreeSet::new(),
            bytes: 0,
            taken_bytes: 0,
            collective_bytes: 0,
            entries: 0,
            kept_bytes: 0,
            in_use_bytes: 0,
        }
    }

    /// What may leave is to be given its turn yet.
    pub(super) fn insert(
        &mut self,
        owner: Owner,
        entry: &Arc<Entry>,
        state: AccountState,
        came: Option<Instant>,
    ) -> u32 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.accounts.push(Account {
                entry: None,
                owner,
                record: 0,
                values: 0,
                state: AccountState::Kept,
                came,
            });
            (self.accounts.len() - 1) as u32
        });
        entry.account.store(at, Ordering::Relaxed);
        entry.note_listed(true);
        self.accounts[at as usize] = Account {
            entry: Some(Arc::clone(entry)),
            owner,
            record: entry.record_memory(),
            values: entry.known_bytes(),
            state,
            came,
        };
        self.entries += 1;
        self.count(at, true);
        at
    }

    /// Takes an entry off, if it is here.
    pub(super) fn remove(&mut self, entry: &Arc<Entry>) -> Option<Account> {
        let at = self.find(entry)?;
        self.close(at)
    }

    /// Counts what the record of an entry takes anew, in the place that the entry has; gives its state.
    pub(super) fn measure_record(&mut self, entry: &Arc<Entry>) -> Option<AccountState> {
        let at = self.find(entry)? as usize;
        let account = &mut self.accounts[at];
        let less = account.record - entry.record_memory();
        account.record -= less;
        let state = account.state;
        match state {
            AccountState::Taken => self.taken_bytes -= less,
            _ => self.bytes -= less,
        }
        match state {
            AccountState::Collective => self.collective_bytes -= less,
            AccountState::Kept => self.kept_bytes -= less,
            AccountState::MayLeave | AccountState::InUse | AccountState::Taken => {}
        }
        Some(state)
    }

    /// Whether what was set aside as in use still is; `None` of what was not.
    pub(super) fn is_in_use(
        &self,
        at: u32,
        leaves: impl Fn(&Entry, &Named) -> bool,
    ) -> Option<bool> {
        let account = &self.accounts[at as usize];
        let entry = account.entry.as_ref()?;
        let leaves = |named: &Named| leaves(entry, named);
        (account.state == AccountState::InUse).then(|| entry.is_in_use(leaves))
    }

    fn find(&self, entry: &Arc<Entry>) -> Option<u32> {
        let at = entry.account.load(Ordering::Relaxed);
        let here = self.accounts.get(at as usize)?.entry.as_ref()?;
        Arc::ptr_eq(here, entry).then_some(at)
    }

    fn close(&mut self, at: u32) -> Option<Account> {
        self.count(at, false);
        self.entries -= 1;
        self.free.push(at);
        let account = &mut self.accounts[at as usize];
        let free = Account {
            entry: None,
            state: AccountState::Kept,
            came: None,
            ..*account
        };
        let account = std::mem::replace(account, free);
        let entry = account.entry.as_ref()?;
        entry.account.store(NO_ACCOUNT, Ordering::Relaxed);
        entry.note_listed(false);
        Some(account)
    }

    pub(super) fn set_state(&mut self, at: u32, state: AccountState) {
        self.count(at, false);
        self.accounts[at as usize].state = state;
        self.count(at, true);
    }

    /// Adds an account to the sums that its state has it in, or takes it off.
    fn count(&mut self, at: u32, is_there: bool) {
        let account = &self.accounts[at as usize];
        let (bytes, record) = (account.bytes(), account.record);
        let Account {
            owner,
            values,
            state,
            came,
            ..
        } = *account;
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
            AccountState::InUse => {
                // Its record is the cache's.
                add(&mut self.in_use_bytes, values);
                add(&mut self.bytes, record);
                self.in_use.set(at, is_there);
                if is_there {
                    self.set_aside.push(at);
                }
            }
        }
    }
}

/// Accounts that have their turn one after the other.
#[derive(Default)]
pub(super) struct Turns {
    accounts: BTreeSet<u32>,
    /// Whose turn it is: of these, or of those that come after.
    next: u32,
}

impl Turns {
    pub(super) fn next(&mut self) -> Option<u32> {
        let after = self.accounts.range(self.next..).next();
        let at = *after.or_else(|| self.accounts.first())?;
        self.next = at + 1;
        Some(at)
    }

    pub(super) fn len(&self) -> usize {
        self.accounts.len()
    }

    fn set(&mut self, at: u32, is_there: bool) {
        match is_there {
            true => self.accounts.insert(at),
            false => self.accounts.remove(&at),
        };
    }
}
