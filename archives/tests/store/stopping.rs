//! The disk, on which a process stops for ever in one of its calls, to be killed there.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sde_archives::vfs::{Disk, Found, Site, Vfs, VfsFile};

use super::child;

/// Counts the calls that change something.
#[derive(Clone, Debug, Default)]
pub struct Stopping(Arc<AtomicU64>);

impl Stopping {
    fn count(&self) {
        let number = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        child::stop_if("stop_at_call", number);
    }
}

impl Vfs for Stopping {
    fn look(&self, path: &Path) -> io::Result<Option<Found>> {
        Disk.look(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        Disk.list(dir)
    }
    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        self.count();
        Disk.make_dir(dir)
    }
    fn create(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        self.count();
        Ok(Box::new(Counted(Disk.create(path)?, self.clone())))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        Disk.open(path)
    }
    fn publish(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.count();
        Disk.publish(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.count();
        Disk.remove(path)
    }
    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.count();
        Disk.remove_dir(dir)
    }
    fn sync_dir_for(&self, dir: &Path, site: Site) -> io::Result<()> {
        self.count();
        Disk.sync_dir_for(dir, site)
    }
    fn user(&self) -> Option<u32> {
        Disk.user()
    }
    fn groups(&self) -> Vec<u32> {
        Disk.groups()
    }
    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>> {
        Disk.try_lock(path)
    }
}

struct Counted(Box<dyn VfsFile>, Stopping);

impl VfsFile for Counted {
    fn write_at(&mut self, slices: &[&[u8]], at: u64) -> io::Result<()> {
        self.1.count();
        // In the middle of it too.
        let bytes = slices.concat();
        let (first, second) = bytes.split_at(bytes.len() / 2);
        self.0.write_at(&[first], at)?;
        self.1.count();
        self.0.write_at(&[second], at + first.len() as u64)
    }
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.1.count();
        self.0.cut(length)
    }
    fn sync_for(&mut self, site: Site) -> io::Result<()> {
        self.1.count();
        self.0.sync_for(site)
    }
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        self.0.read_at(buffer, at)
    }
    fn read_up_to(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.0.read_up_to(buffer, at)
    }
    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }
    fn lock_while_open(&self) {
        self.0.lock_while_open();
    }
}
