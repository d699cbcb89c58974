//! How a process learns that it is told to stop.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use sde::archiver::{StopListener, StopRequest};

use super::request::{self, Version};
use crate::format::id::UniqueId;
use crate::locks::lock;

/// What a store's processes are asked to do.
pub(super) struct Heed {
    store: PathBuf,
    file: PathBuf,
    state: Mutex<HeedState>,
}

#[derive(Default)]
struct HeedState {
    /// The file that was read last, whether or not it could be followed.
    seen: Option<Version>,
    told: Option<StopRequest>,
    listeners: Vec<StopListener>,
}

impl Heed {
    pub(super) fn new(store: &Path) -> Self {
        Self {
            store: store.to_owned(),
            file: request::path(store),
            state: Mutex::default(),
        }
    }

    /// Tells this function from now on what is asked of this process, and what was asked of it before.
    pub(super) fn listen(&self, listener: StopListener) {
        let told = {
            let mut state = lock(&self.state);
            state.listeners.push(Arc::clone(&listener));
            state.told.clone()
        };
        if let Some(told) = told {
            listener(Some(&told));
        }
    }

    /// Looks whether anything is asked of the process with this lease. Where nothing is, this takes one call of the system.
    pub(super) fn look(&self, id: &UniqueId) {
        let Ok(now) = request::version(&self.file) else {
            return;
        };
        if std::mem::replace(&mut lock(&self.state).seen, now) == now {
            return;
        }
        let request = request::read(&self.store).unwrap_or_else(|why| {
            sde::warning!(
                "{} is not followed: {why}; `sde stop` writes a new one",
                self.file.display()
            );
            None
        });
        let told = request.and_then(|(_, request)| request.to(id));
        let listeners = {
            let mut state = lock(&self.state);
            if state.told == told {
                return;
            }
            state.told = told.clone();
            state.listeners.clone()
        };
        let mut gone = listeners;
        gone.retain(|listener| !listener(told.as_ref()));
        let is_gone = |of: &StopListener| gone.iter().any(|gone| Arc::ptr_eq(of, gone));
        lock(&self.state)
            .listeners
            .retain(|listener| !is_gone(listener));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::time::UNIX_EPOCH;

    use super::super::request::{Draft, Named, Request};
    use super::*;

    /// A store's folder, the lease of a process that heeds what is asked there, and what it heard.
    struct Place {
        dir: tempfile::TempDir,
        id: UniqueId,
        heed: Heed,
        heard: Arc<Mutex<Vec<Option<u64>>>>,
    }

    impl Place {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let heed = Heed::new(dir.path());
            let heard = Arc::new(Mutex::new(Vec::new()));
            let hears = Arc::clone(&heard);
            heed.listen(Arc::new(move |told| {
                let second = told.map(|told| told.at.duration_since(UNIX_EPOCH).unwrap().as_secs());
                lock(&hears).push(second);
                true
            }));
            Self {
                dir,
                id: UniqueId::new(),
                heed,
                heard,
            }
        }

        fn file(&self) -> PathBuf {
            request::path(self.dir.path())
        }

        fn asks(&self, of: UniqueId, second: u64) {
            let named = Named {
                id: of,
                second,
                host: "host".to_owned(),
                process: 7,
            };
            let draft = Draft::new(self.dir.path()).unwrap();
            let request = Request::of_user(vec![named]);
            draft.put(self.dir.path(), &request).unwrap();
        }

        /// What the process hears when it looks.
        fn hears(&self) -> Vec<Option<u64>> {
            self.heed.look(&self.id);
            std::mem::take(&mut lock(&self.heard))
        }
    }

    #[test]
    fn who_is_named_is_told_once_and_of_each_change() {
        let place = Place::new();
        assert_eq!(place.hears(), []);
        place.asks(UniqueId::new(), 5);
        assert_eq!(place.hears(), []);
        place.asks(place.id, 5);
        assert_eq!(place.hears(), [Some(5)]);
        assert_eq!(place.hears(), []);
        place.asks(place.id, 0);
        assert_eq!(place.hears(), [Some(0)]);
        // A later listener is told too, and one that is gone no more.
        let later = Arc::new(Mutex::new(0));
        let count = Arc::clone(&later);
        place.heed.listen(Arc::new(move |_| {
            *lock(&count) += 1;
            *lock(&count) < 2
        }));
        assert_eq!(*lock(&later), 1);
        fs::remove_file(place.file()).unwrap();
        assert_eq!(place.hears(), [None]);
        place.asks(place.id, 5);
        assert_eq!(place.hears(), [Some(5)]);
        assert_eq!(*lock(&later), 2);
    }

    #[test]
    fn what_is_no_request_is_passed_over() {
        let place = Place::new();
        let spoil: [fn(&Path); 6] = [
            |file| fs::write(file, [0xff; 100]).unwrap(),
            |file| fs::write(file, "SDE stop, format 2\n").unwrap(),
            |file| fs::create_dir(file).unwrap(),
            |file| symlink("/proc/self/mem", file).unwrap(),
            |file| {
                let made = std::process::Command::new("mkfifo").arg(file).status();
                assert!(made.unwrap().success());
            },
            |file| {
                let long = fs::File::create(file).unwrap();
                long.set_len(1 << 40).unwrap();
            },
        ];
        for spoil in spoil {
            spoil(&place.file());
            assert_eq!(place.hears(), []);
            let _ = fs::remove_file(place.file()).or_else(|_| fs::remove_dir(place.file()));
        }
        // Half of a request that names it.
        place.asks(place.id, 5);
        let text = fs::read(place.file()).unwrap();
        fs::write(place.file(), &text[..text.len() - 8]).unwrap();
        assert_eq!(place.hears(), []);
        fs::write(place.file(), &text).unwrap();
        assert_eq!(place.hears(), [Some(5)]);
    }

    /// Only the administrator can give a file to another user.
    #[test]
    fn a_request_of_who_may_not_ask_is_passed_over() {
        let place = Place::new();
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        place.asks(place.id, 5);
        mode(&place.file(), 0o646);
        assert_eq!(place.hears(), []);
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = place.dir.path();
        for (of_folder, is_followed) in [
            (0o700, false),
            (0o757, false),
            (0o777, false),
            (0o770, true),
        ] {
            let _ = fs::remove_file(place.file());
            place.heed.look(&place.id);
            lock(&place.heard).clear();
            place.asks(place.id, 5);
            chown(place.file(), Some(1234), None).unwrap();
            mode(folder, of_folder);
            let heard: &[_] = if is_followed { &[Some(5)] } else { &[] };
            assert_eq!(place.hears(), heard, "{of_folder:o}");
        }
        chown(folder, Some(1234), None).unwrap();
        mode(folder, 0o700);
        place.asks(place.id, 6);
        chown(place.file(), Some(1234), None).unwrap();
        assert_eq!(place.hears(), [Some(6)]);
        // This user's own.
        place.asks(place.id, 7);
        assert_eq!(place.hears(), [Some(7)]);
    }
}
