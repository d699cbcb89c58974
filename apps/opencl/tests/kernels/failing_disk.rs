//! A disk that fails: the program is built and returned all the same.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use sde::Sde;
use sde_archives::vfs::{Disk, Found, Site, Vfs, VfsFile};
use sde_opencl::driver::simulated::Simulated;
use sde_opencl::{KernelDir, ProgramSpec, Settings};

use crate::fixture::{anew, copy, folder, quiet};
use crate::log;

const ENOSPC: i32 = 28;
const EACCES: i32 = 13;
const EIO: i32 = 5;
const EROFS: i32 = 30;

/// The disk, until it is told to fail, or that it is later.
#[derive(Debug, Default)]
pub struct Failing {
    pub hours_later: AtomicU64,
    disk: Disk,
    writes: Arc<AtomicI32>,
    reads: Arc<AtomicI32>,
}

fn check(with: &AtomicI32) -> io::Result<()> {
    match with.load(Ordering::SeqCst) {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

struct File {
    file: Box<dyn VfsFile>,
    writes: Arc<AtomicI32>,
    reads: Arc<AtomicI32>,
}

impl Failing {
    fn wrap(&self, file: Box<dyn VfsFile>) -> Box<dyn VfsFile> {
        Box::new(File {
            file,
            writes: Arc::clone(&self.writes),
            reads: Arc::clone(&self.reads),
        })
    }
}

impl VfsFile for File {
    fn write_at(&mut self, slices: &[&[u8]], at: u64) -> io::Result<()> {
        check(&self.writes)?;
        self.file.write_at(slices, at)
    }
    fn cut(&mut self, length: u64) -> io::Result<()> {
        check(&self.writes)?;
        self.file.cut(length)
    }
    fn sync_for(&mut self, site: Site) -> io::Result<()> {
        check(&self.writes)?;
        self.file.sync_for(site)
    }
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        check(&self.reads)?;
        self.file.read_at(buffer, at)
    }
    fn read_up_to(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        check(&self.reads)?;
        self.file.read_up_to(buffer, at)
    }
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }
    fn lock_while_open(&self) {
        self.file.lock_while_open();
    }
}

impl Vfs for Failing {
    fn look(&self, path: &Path) -> io::Result<Option<Found>> {
        self.disk.look(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        check(&self.reads)?;
        self.disk.list(dir)
    }
    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        check(&self.writes)?;
        self.disk.make_dir(dir)
    }
    fn create(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        check(&self.writes)?;
        Ok(self.wrap(self.disk.create(path)?))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        check(&self.reads)?;
        Ok(self.wrap(self.disk.open(path)?))
    }
    fn publish(&self, from: &Path, to: &Path) -> io::Result<()> {
        check(&self.writes)?;
        self.disk.publish(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        check(&self.writes)?;
        self.disk.remove(path)
    }
    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        check(&self.writes)?;
        self.disk.remove_dir(dir)
    }
    fn sync_dir_for(&self, dir: &Path, site: Site) -> io::Result<()> {
        check(&self.writes)?;
        self.disk.sync_dir_for(dir, site)
    }
    fn user(&self) -> Option<u32> {
        self.disk.user()
    }
    fn groups(&self) -> Vec<u32> {
        self.disk.groups()
    }
    fn now(&self) -> SystemTime {
        let hours = self.hours_later.load(Ordering::SeqCst);
        self.disk.now() + Duration::from_secs(3600 * hours)
    }
    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>> {
        self.disk.try_lock(path)
    }
}

#[test]
fn the_program_is_there_whatever_the_disk_says() {
    for code in [ENOSPC, EACCES, EIO, EROFS] {
        let kept = folder();
        let (writes, reads) = (Arc::default(), Arc::default());
        let medium = Failing {
            writes: Arc::clone(&writes),
            reads: Arc::clone(&reads),
            ..Failing::default()
        };
        let driver = Simulated::new();
        let settings = Settings::new().dir(kept.path()).vfs(Arc::new(medium));
        let dir = KernelDir::open(settings).unwrap();
        let context = quiet(&driver).keep_in_dir(&dir).build().unwrap();

        writes.store(code, Ordering::SeqCst);
        context.program(&Sde::new(), 0, &copy(&context)).unwrap();
        let stats = context.stats();
        assert_eq!((stats.builds, stats.kept), (1, 0), "{code}");
        assert!(stats.store_failures > 0, "{code}");
        assert!(stats.why_not_kept.is_some(), "{code}");

        // It has healed: what could not be kept is.
        writes.store(0, Ordering::SeqCst);
        context.keep_launched();
        assert_eq!(context.stats().kept, 1, "{code}");
        drop(context);
        assert_eq!(anew(kept.path()).0.counts().builds, 0, "{code}");

        // It can be written and not read.
        let settings = Settings::new().dir(kept.path());
        let medium = Failing {
            reads: Arc::clone(&reads),
            ..Failing::default()
        };
        let dir = KernelDir::open(settings.vfs(Arc::new(medium))).unwrap();
        reads.store(code, Ordering::SeqCst);
        let driver = Simulated::new();
        let context = quiet(&driver).keep_in_dir(&dir).build().unwrap();
        context.program(&Sde::new(), 0, &copy(&context)).unwrap();
        let counts = (driver.counts().builds, driver.counts().damaged);
        assert_eq!(counts, (1, 0), "{code}");
    }
}

/// As where a node mounts the home of its user: what is kept there is had, and nothing is tried in vain.
#[test]
fn a_cache_on_a_disk_that_can_only_be_read_is_read() {
    let kept = folder();
    anew(kept.path());
    for code in [EROFS, EACCES] {
        let medium = Failing::default();
        medium.writes.store(code, Ordering::SeqCst);
        let settings = Settings::new().dir(kept.path()).vfs(Arc::new(medium));
        let (dir, warnings) = log::warnings(|| KernelDir::open(settings).unwrap());
        assert!(warnings[0].contains("it is only read"), "{warnings:?}");
        let driver = Simulated::new();
        let context = quiet(&driver).keep_in_dir(&dir).build().unwrap();
        context.program(&Sde::new(), 0, &copy(&context)).unwrap();
        let other = ProgramSpec::source("kernel void other() {}");
        let other = context.describe(0, &other).unwrap();
        context.program(&Sde::new(), 0, &other).unwrap();
        let stats = context.stats();
        assert_eq!((stats.loads, stats.builds, stats.kept), (1, 1, 0));
        assert_eq!((stats.store_failures, stats.not_kept), (0, 1));
        assert!(stats.why_not_kept.unwrap().contains("it is only read"));
    }
    // Where there is nothing to read it is an error.
    let medium = Failing::default();
    medium.writes.store(EROFS, Ordering::SeqCst);
    let nothing = Settings::new().dir(kept.path().join("nothing"));
    let error = KernelDir::open(nothing.vfs(Arc::new(medium)));
    let error = error.err().unwrap().to_string();
    assert!(error.contains("not kept"), "{error}");
}

#[test]
fn a_directory_that_can_not_be_made_is_an_error_of_opening() {
    let kept = folder();
    let file = kept.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let error = KernelDir::open(Settings::new().dir(file.join("cache")))
        .err()
        .unwrap();
    assert!(
        error
            .to_string()
            .contains("programs are built and not kept"),
        "{error}"
    );
}
