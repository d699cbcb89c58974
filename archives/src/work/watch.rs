//! Wakes calls that wait for another process when its announcement is removed.
//!
//! All waiting calls of one store share a kernel watch on the folder of announcements, and a thread that reads its
//! events. Both exist only while a call waits. The kernel reports neither the released lock of a dead process nor
//! removals by another machine, so waiters also look from time to time.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use crate::locks::lock;

/// A function that is called when an announcement is removed.
pub(crate) type Changed = Arc<dyn Fn() + Send + Sync>;

/// The pause between two reads of events, so that a busy folder costs no more than looking that often.
const PAUSE: Duration = Duration::from_millis(20);

/// The watch on the folder of announcements.
#[derive(Default)]
pub(super) struct Watch(Mutex<WatchState>);

#[derive(Default)]
struct WatchState {
    waiters: Vec<Arc<Waiter>>,
    /// While there is a waiter: the kernel's queue, and the watch's number in it.
    kernel: Option<(Arc<OwnedFd>, i32)>,
}

struct Waiter {
    name: String,
    changed: Changed,
}

/// A waiting call, until it is dropped.
pub(super) struct Waiting {
    waiter: Arc<Waiter>,
    watch: Arc<Watch>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut state = lock(&self.watch.0);
        state
            .waiters
            .retain(|waiter| !Arc::ptr_eq(waiter, &self.waiter));
        if state.waiters.is_empty()
            && let Some((kernel, number)) = state.kernel.take()
        {
            // This also ends the thread, by an event.
            let _ = inotify::remove_watch(&kernel, number);
        }
    }
}

impl Watch {
    /// Calls `changed` when the file of this name is removed from the folder.
    pub(super) fn begin(
        self: &Arc<Self>,
        dir: &Path,
        name: String,
        changed: Changed,
    ) -> io::Result<Waiting> {
        let waiter = Arc::new(Waiter { name, changed });
        let mut state = lock(&self.0);
        if state.kernel.is_none() {
            let kernel = Arc::new(inotify::init(CreateFlags::CLOEXEC)?);
            let number = inotify::add_watch(&kernel, dir, WatchFlags::DELETE)?;
            let (watch, of_thread) = (Arc::clone(self), Arc::clone(&kernel));
            let thread = std::thread::Builder::new().name("sde-watch".to_owned());
            thread.spawn(move || watch.work(&of_thread))?;
            state.kernel = Some((kernel, number));
        }
        state.waiters.push(Arc::clone(&waiter));
        Ok(Waiting {
            waiter,
            watch: Arc::clone(self),
        })
    }

    fn work(&self, kernel: &Arc<OwnedFd>) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&**kernel, &mut buffer);
        while let Some(removed) = removed(&mut reader) {
            let is_it = |waiter: &Waiter, name: &CString| {
                name.is_empty() || name.to_bytes() == waiter.name.as_bytes()
            };
            let is_meant = |waiter: &&Arc<Waiter>| removed.iter().any(|name| is_it(waiter, name));
            let state = lock(&self.0);
            let meant: Vec<_> = state.waiters.iter().filter(is_meant).cloned().collect();
            drop(state);
            meant.iter().for_each(|waiter| (waiter.changed)());
            std::thread::sleep(PAUSE);
        }
        // If the folder is gone, the next waiter begins another watch.
        lock(&self.0)
            .kernel
            .take_if(|(now, _)| Arc::ptr_eq(now, kernel));
    }
}

/// The names of removed files; an empty name stands for all, if the queue overflowed. `None` at the end of the
/// watch: nobody waits, or the folder is gone.
fn removed(reader: &mut Reader<'_, &OwnedFd>) -> Option<Vec<CString>> {
    let mut removed = Vec::new();
    while removed.is_empty() || !reader.is_buffer_empty() {
        match reader.next() {
            Err(Errno::INTR) => {}
            Ok(event) if !event.events().contains(ReadFlags::IGNORED) => {
                removed.push(event.file_name().map(CStr::to_owned).unwrap_or_default());
            }
            _ => return None,
        }
    }
    Some(removed)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn all_who_wait_share_a_watch_that_is_there_as_long_as_one_of_them() {
        let dir = tempfile::tempdir().unwrap();
        let watch = Arc::new(Watch::default());
        let begin = |name: &str| watch.begin(dir.path(), name.to_owned(), Arc::new(|| {}));
        let kernel = || {
            let state = lock(&watch.0);
            let kernel = state.kernel.as_ref();
            kernel.map(|(kernel, _)| Arc::downgrade(kernel))
        };
        let one = begin("one").unwrap();
        let (other, first) = (begin("other").unwrap(), kernel().unwrap());
        drop(one);
        assert!(kernel().unwrap().ptr_eq(&first));
        drop(other);
        assert!(kernel().is_none());
        // The thread holds the queue until it ends.
        let begun = Instant::now();
        while first.strong_count() > 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "no end");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_not_watched() {
        let dir = tempfile::tempdir().unwrap();
        let watch = Arc::new(Watch::default());
        let begun = watch.begin(&dir.path().join("work"), String::new(), Arc::new(|| {}));
        assert!(begun.is_err());
    }
}
