//! Feeding BLAKE3 at its own speed, on several threads when the piece is large.
//!
//! BLAKE3 splits its work with rayon. Run on rayon's global pool it would have two faults here. A
//! caller outside the pool waits for a worker, and the workers may all be waiting for results that
//! this caller is to publish. A caller that is a worker steals other jobs while it waits, and may
//! steal one that waits for the result whose computation lies suspended below on the same stack.
//! So: hashing has a pool of its own, whose workers never run anything else, and a thread that is
//! a rayon worker hashes alone (its siblings keep the other cores busy). So does a process that was forked off one
//! that has the pool: the pool's threads stayed behind.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::sync::lock;

/// Below this size one thread is as fast.
const PARALLEL_FROM: usize = 256 * 1024;

/// 0: as many as the machine has.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// The process that made the pool; 0: none has.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// The pool and the number of threads it was asked to have. `None` inside: it could not be made.
static POOL: Mutex<Option<(usize, Option<Arc<rayon::ThreadPool>>)>> = Mutex::new(None);

/// Sets how many threads hash one large piece of data (256 KiB and more), in the whole process; 0,
/// the default, is as many as the machine has, and 1 is the calling thread alone. Keys do not
/// depend on it.
///
/// A rayon worker always hashes alone, and so does a process that was forked off one that has hashed on several.
pub fn set_hash_threads(threads: usize) {
    THREADS.store(threads, Ordering::Relaxed);
}

pub(crate) fn update(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    let alone = bytes.len() < PARALLEL_FROM || rayon::current_thread_index().is_some();
    let pool = || pool(THREADS.load(Ordering::Relaxed));
    match (!alone).then(pool).flatten() {
        Some(pool) => pool.install(|| hasher.update_rayon(bytes)),
        None => hasher.update(bytes),
    };
}

/// How many threads the machine has for this process, asked once: the system reads files to tell.
fn available() -> usize {
    static AVAILABLE: OnceLock<usize> = OnceLock::new();
    *AVAILABLE.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// The pool for hashing, made on first use and when the number of threads changes.
fn pool(threads: usize) -> Option<Arc<rayon::ThreadPool>> {
    let threads = match threads {
        0 => available(),
        some => some,
    };
    let own = std::process::id();
    let owner = OWNER.load(Ordering::Acquire);
    if threads == 1 || owner != 0 && owner != own {
        return None;
    }
    let mut slot = lock(&POOL);
    match &*slot {
        Some((size, pool)) if *size == threads => pool.clone(),
        _ => {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .thread_name(|index| format!("sde-hash-{index}"))
                .build()
                .ok()
                .map(Arc::new);
            OWNER.store(own, Ordering::Release);
            *slot = Some((threads, pool.clone()));
            pool
        }
    }
}
