//! Waking those who wait for another process as soon as its announcement is removed.
//!
//! All calls of a process that wait with one store share a watch of the kernel on the folder of announcements, and a thread that
//! reads what it tells. Both are there only while a call waits. The kernel does not tell of a lock that a dead process gives
//! back, nor of what another machine removes: so a waiter looks now and then all the same.

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

/// How long the thread pauses between two reads: in a folder where much happens it costs no more than looking so often.
const PAUSE: Duration = Duration::from_millis(20);

/// The watch on the folder of announcements.
#[derive(Default)]
pub(super) struct Watch(Mutex<WatchState>);

#[derive(Default)]
struct WatchState {
    waiters: Vec<Arc<Waiter>>,
    /// While there is a waiter: where the kernel tells, and the number of the watch there.
    kernel: Option<(Arc<OwnedFd>, i32)>,
}

struct Waiter {
    name: String,
    changed: Changed,
}

/// A call that waits, until it is dropped.
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
            // The thread is told that it is removed.
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

/// The names of files that were removed; an empty one stands for all, if there were more than the kernel tells of. `None` when
/// it tells no more: nobody waits, or the folder is gone.
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
        // The thread holds it until it ends.
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
