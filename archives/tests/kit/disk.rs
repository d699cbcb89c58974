//! The simulated medium as a store sees it.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::MutexGuard;
use std::time::SystemTime;

use sde_archives::vfs::{FileKind, Found, Site, Vfs, VfsFile};

use super::gate::Gate;
use super::orders::{CHANGING, Call, Error, Verdict};
use super::sim::{Sim, State};
use super::world::{Id, Node};

/// A call that is to be done, and the error to give when it is.
struct Entered<'a> {
    state: MutexGuard<'a, State>,
    then: Option<Error>,
    /// Of a write: where it is held up in the middle, and which bit of it changes.
    halfway: Option<Gate>,
    spoilt: Option<usize>,
}

/// A call that is not to be done.
struct Refused<'a> {
    state: MutexGuard<'a, State>,
    error: Error,
}

impl Entered<'_> {
    fn done<T>(self, value: T) -> io::Result<T> {
        // A lock that is dropped is given back to the medium.
        drop(self.state);
        self.then.map_or(Ok(value), |error| Err(error.io()))
    }
}

impl Sim {
    fn enter(&self, call: Call) -> Result<Entered<'_>, Refused<'_>> {
        let turns = self.turns.lock().unwrap().clone();
        turns.inspect(|turns| turns.pass(self.number()));
        let mut state = self.state();
        let verdict = match state.orders.verdict(call) {
            Verdict::Do => self.process.lock().unwrap().verdict(call),
            other => other,
        };
        let changes = CHANGING.contains(&call) && !matches!(call, Call::Close | Call::Sync);
        let (mut then, mut halfway, mut spoilt) = (None, None, None);
        match verdict {
            Verdict::Do => {}
            Verdict::StopHalfway(gate) => halfway = Some(gate),
            Verdict::Spoil(bit) => spoilt = Some(bit),
            Verdict::Take(time) => self.pass_time(time),
            Verdict::Fail(error) => return Err(Refused { state, error }),
            Verdict::FailDone(error) => then = Some(error),
            Verdict::Stop(gate) => {
                drop(state);
                gate.pass();
                state = self.state();
            }
        }
        if changes && state.read_only {
            let error = Error::ReadOnly;
            return Err(Refused { state, error });
        }
        Ok(Entered {
            state,
            then,
            halfway,
            spoilt,
        })
    }

    fn call(&self, call: Call) -> io::Result<Entered<'_>> {
        self.enter(call).map_err(|refused| refused.error.io())
    }

    fn handle(&self, id: Id) -> Box<dyn VfsFile> {
        Box::new(Handle {
            sim: self.clone(),
            id,
            wrote: false,
            locks: false.into(),
        })
    }
}

impl Vfs for Sim {
    fn look(&self, path: &Path) -> io::Result<Option<Found>> {
        let mut entered = self.call(Call::Look)?;
        let world = &mut entered.state.world;
        let named = match &*self.cached.lock().unwrap() {
            Some(before) => before.find(path)?,
            None => world.find(path)?,
        };
        let found = named.map(|id| match world.node(id) {
            Node::File(content) => found(FileKind::File, content.bytes.len(), id),
            Node::Dir(_) => found(FileKind::Directory, 0, id),
        });
        entered.done(found)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let mut entered = self.call(Call::List)?;
        let names = entered.state.world.dir(dir)?.names.keys();
        let names = names.cloned().collect();
        entered.done(names)
    }

    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        let mut entered = self.call(Call::MakeDir)?;
        let world = &mut entered.state.world;
        world.make(dir, Node::Dir(Default::default()))?;
        entered.done(())
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        let mut entered = self.call(Call::Create)?;
        let world = &mut entered.state.world;
        let id = world.make(path, Node::File(Default::default()))?;
        entered.done(())?;
        Ok(self.handle(id))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        let mut entered = self.call(Call::Open)?;
        let world = &mut entered.state.world;
        let id = world.existing(path)?;
        if !matches!(world.node(id), Node::File(_)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        entered.done(())?;
        Ok(self.handle(id))
    }

    fn publish(&self, from: &Path, to: &Path) -> io::Result<()> {
        // As the real one does it, a power failure in between included.
        self.link(from, to)?;
        let mut entered = self.call(Call::Unlink)?;
        entered.state.world.unname(from)?;
        entered.done(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut entered = self.call(Call::Link)?;
        let world = &mut entered.state.world;
        let id = world.existing(from)?;
        world.name(to, id)?;
        entered.done(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut entered = self.call(Call::Remove)?;
        entered.state.world.unname(path)?;
        entered.done(())
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        let mut entered = self.call(Call::Remove)?;
        let world = &mut entered.state.world;
        if !world.dir(dir)?.names.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        world.unname(dir)?;
        entered.done(())
    }

    fn sync_dir_for(&self, dir: &Path, site: Site) -> io::Result<()> {
        // After an error the names are still to be written: a file system whose
        // journal fails takes nothing more at all.
        let mut entered = self.call(Call::SyncDir)?;
        let state = &mut *entered.state;
        let syncs = state.syncs(site);
        let dir = state.world.dir(dir)?;
        if syncs {
            dir.sync();
        }
        entered.done(())
    }

    fn now(&self) -> SystemTime {
        SystemTime::now() + *self.ahead.lock().unwrap()
    }

    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>> {
        let mut entered = self.call(Call::Lock)?;
        let state = &mut *entered.state;
        let id = state.world.existing(path)?;
        if !state.locked.insert(id) && !state.lying_locks {
            return Ok(None);
        }
        let lock = Lock(self.clone(), id);
        entered.done(Some(Box::new(lock) as _))
    }
}

fn found(kind: FileKind, length: usize, id: Id) -> Found {
    Found {
        kind,
        length: length as u64,
        id: id as u64 + 1,
        written_at: None,
        owner: None,
        link: false,
    }
}

/// A lock that is given back when it is dropped.
struct Lock(Sim, Id);

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.state().locked.remove(&self.1);
    }
}

/// An open file.
struct Handle {
    sim: Sim,
    id: Id,
    /// A close that fails loses nothing of what others have written.
    wrote: bool,
    locks: std::sync::atomic::AtomicBool,
}

impl Handle {
    /// Nobody knows what is in a file after an error, so nothing may rest on what comes after.
    fn watch(&self, state: &mut State, doing: &str) {
        if state
            .world
            .file(self.id)
            .failed
            .contains(&self.sim.number())
        {
            let path = state.world.files().into_iter();
            let path = path.filter(|(_, id)| *id == self.id).map(|(path, _)| path);
            let path = path.collect::<Vec<_>>();
            let misdeed = format!("{doing} {path:?} after an error");
            state.misdeeds.push(misdeed);
        }
    }
}

impl VfsFile for Handle {
    fn write_at(&mut self, slices: &[&[u8]], at: u64) -> io::Result<()> {
        self.wrote = true;
        let mut at = usize::try_from(at).map_err(io::Error::other)?;
        let mut bytes = slices.concat();
        let (mut state, error, written) = match self.sim.enter(Call::Write) {
            Ok(entered) => {
                let mut state = entered.state;
                if let Some(bit) = entered.spoilt {
                    let place = bit / 8 % bytes.len();
                    bytes[place] ^= 1 << (bit % 8);
                }
                if let Some(gate) = entered.halfway {
                    let rest = bytes.split_off(bytes.len() / 2);
                    state.world.file(self.id).write_at(&bytes, at);
                    drop(state);
                    gate.pass();
                    state = self.sim.state();
                    at += bytes.len();
                    bytes = rest;
                }
                let used = state.world.bytes();
                let room = state.room.map(|room| room.saturating_sub(used) as usize);
                let growth = state.world.file(self.id).growth(bytes.len(), at);
                match room.filter(|room| *room < growth) {
                    Some(room) => (state, Some(Error::Full), bytes.len() - (growth - room)),
                    None => (state, entered.then, bytes.len()),
                }
            }
            Err(mut refused) => {
                let most = match refused.error {
                    Error::ReadOnly | Error::Off => 0,
                    Error::Io | Error::Full | Error::PowerOff => bytes.len() as u64,
                };
                let part = refused.state.random.within(0..most + 1) as usize;
                (refused.state, Some(refused.error), part)
            }
        };
        if error == Some(Error::Off) {
            return Err(Error::Off.io());
        }
        self.watch(&mut state, "wrote to");
        let file = state.world.file(self.id);
        file.write_at(&bytes[..written], at);
        file.failed.extend(error.map(|_| self.sim.number()));
        error.map_or(Ok(()), |error| Err(error.io()))
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        let mut entered = self.sim.call(Call::Write)?;
        self.watch(&mut entered.state, "cut");
        let length = usize::try_from(length).map_err(io::Error::other)?;
        entered.state.world.file(self.id).cut(length);
        entered.done(())
    }

    fn sync_for(&mut self, site: Site) -> io::Result<()> {
        let outcome = self.sim.enter(Call::Sync);
        let (mut state, error, done) = match outcome {
            Ok(entered) => (entered.state, entered.then, true),
            Err(refused) => (refused.state, Some(refused.error), false),
        };
        if let Some(error @ (Error::Off | Error::PowerOff)) = error {
            return Err(error.io());
        }
        let syncs = state.syncs(site);
        self.watch(&mut state, "synced");
        let state = &mut *state;
        let file = state.world.file(self.id);
        match done {
            true if syncs => file.sync(),
            true => {}
            false => file.sync_failed(&mut state.random),
        }
        file.failed.extend(error.map(|_| self.sim.number()));
        error.map_or(Ok(()), |error| Err(error.io()))
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        let mut entered = self.sim.call(Call::Read)?;
        entered.state.bytes_read += buffer.len() as u64;
        let bytes = &entered.state.world.file(self.id).bytes;
        let from = usize::try_from(at).unwrap_or(usize::MAX);
        let there = bytes.get(from..).and_then(|left| left.get(..buffer.len()));
        buffer.copy_from_slice(there.ok_or(io::ErrorKind::UnexpectedEof)?);
        entered.done(())
    }

    fn read_up_to(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let mut entered = self.sim.call(Call::Read)?;
        let bytes = &entered.state.world.file(self.id).bytes;
        let from = usize::try_from(at).unwrap_or(usize::MAX);
        let there = bytes.get(from..).unwrap_or_default();
        let length = there.len().min(buffer.len());
        buffer[..length].copy_from_slice(&there[..length]);
        entered.state.bytes_read += length as u64;
        entered.done(length)
    }

    fn length(&self) -> io::Result<u64> {
        let mut entered = self.sim.call(Call::Length)?;
        let length = entered.state.world.file(self.id).bytes.len() as u64;
        entered.done(length)
    }

    fn next_data(&self, at: u64) -> io::Result<Option<u64>> {
        let mut state = self.sim.state();
        let bytes = &state.world.file(self.id).bytes;
        let from = usize::try_from(at).unwrap_or(usize::MAX);
        let zeros = bytes.get(from..).unwrap_or_default().iter();
        let zeros = zeros.take_while(|byte| **byte == 0).count();
        Ok((from + zeros < bytes.len()).then_some(at + zeros as u64))
    }

    fn lock_while_open(&self) {
        if let Ok(mut entered) = self.sim.call(Call::Lock) {
            let new = entered.state.locked.insert(self.id);
            self.locks.store(new, std::sync::atomic::Ordering::Relaxed);
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let outcome = self.sim.enter(Call::Close);
        let failed = outcome.is_err();
        let mut state = match outcome {
            Ok(entered) => entered.state,
            Err(refused) => refused.state,
        };
        let state = &mut *state;
        let killed = state.orders.off || self.sim.is_killed();
        if failed && !killed && self.wrote {
            state.world.file(self.id).sync_failed(&mut state.random);
        }
        if *self.locks.get_mut() {
            state.locked.remove(&self.id);
        }
    }
}
