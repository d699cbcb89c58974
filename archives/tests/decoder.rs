//! Values whose bytes were changed by somebody who knows how to make checksums: an error or another
//! value of the type, never a panic, and never much more memory than there are bytes.

#![allow(unsafe_code, reason = "an allocator can't be written without")]
#![allow(clippy::unwrap_used, reason = "a failure is the point")]
#![allow(clippy::print_stdout, reason = "a long test tells what it found")]

#[path = "kit/mod.rs"]
mod kit;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kit::{HOME, Random, Sim, made};
use sde::archiver::{Archiver, Codec, SavedScratch, Wire, WireBuffer};
use sde::{AnyArray, Data, ErasedValue, Storable};
use sde_archives::{Cbor, StoreOptions};

thread_local! {
    static NOW: Cell<usize> = const { Cell::new(0) };
    static MOST: Cell<usize> = const { Cell::new(0) };
}

/// Counts what each thread holds, and the most of it.
struct Counting;

fn add(bytes: usize) {
    // A thread that ends has no counter any more.
    let _ = NOW.try_with(|now| {
        now.set(now.get().wrapping_add(bytes));
        let _ = MOST.try_with(|most| most.set(most.get().max(now.get())));
    });
}

fn take(bytes: usize) {
    // What another thread has allocated was not counted here.
    let _ = NOW.try_with(|now| now.set(now.get().saturating_sub(bytes)));
}

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller keeps the allocator's rules.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        take(layout.size());
        // SAFETY: the caller keeps the allocator's rules.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size);
        take(layout.size());
        // SAFETY: the caller keeps the allocator's rules.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most that this thread held meanwhile, beyond what it held before.
fn most_bytes(of: impl FnOnce()) -> usize {
    let before = NOW.get();
    MOST.set(before);
    of();
    MOST.get() - before
}

fn dir() -> PathBuf {
    Path::new(HOME).join("store")
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

/// A store with one value in it, and its only segment.
struct Forgery<T> {
    sim: Sim,
    path: PathBuf,
    bytes: Vec<u8>,
    /// Where the frame and, at the end of its body, the value begin; and its end.
    frame: usize,
    payload: usize,
    end: usize,
    value: std::marker::PhantomData<T>,
}

impl<T: Storable> Forgery<T> {
    fn new(value: T) -> Self {
        let codec = Codec::of::<T>();
        let value = ErasedValue::new(value);
        let mut encoded = WireBuffer::default();
        Cbor.encode(&value, &codec, &mut encoded).unwrap();
        let length = encoded.into_bytes().len();
        let sim = Sim::new();
        let store = StoreOptions::new().vfs(Arc::new(sim.clone()));
        let store = store.open(dir()).unwrap();
        let state = SavedScratch::new("forged", made::key(1), value, codec);
        let batch = made::states([state]);
        store.save(&batch).unwrap();
        // Without an index.
        let sim = sim.after_kill();
        drop(store);
        let is_segment = |path: &PathBuf| path.starts_with(dir().join("scratch"));
        let path = sim.files().into_iter().find(is_segment).unwrap();
        let bytes = sim.content(&path);
        let key = *made::key(1).as_bytes();
        let at_key = bytes.windows(32).position(|window| window == key).unwrap();
        let frame = at_key - 34;
        let payload = frame + 66 + u32_at(&bytes, frame + 22) as usize - length;
        let end = payload + length;
        Self {
            sim,
            path,
            frame,
            payload,
            end,
            bytes,
            value: std::marker::PhantomData,
        }
    }

    /// The segment with this payload, which is as long, and a checksum that fits.
    fn forge(&self, payload: &[u8]) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        bytes[self.payload..self.end].copy_from_slice(payload);
        let mut bound = [0; 32];
        bound[..16].copy_from_slice(&bytes[16..32]);
        bound[16..24].copy_from_slice(&(self.frame as u64).to_le_bytes());
        let check = blake3::keyed_hash(&bound, &bytes[self.frame + 20..self.end]);
        bytes[self.frame + 4..self.frame + 20].copy_from_slice(&check.as_bytes()[..16]);
        bytes
    }

    /// Whether a value comes of it.
    fn decodes(&self, payload: &[u8]) -> bool {
        self.sim.put(&self.path, self.forge(payload));
        let store = StoreOptions::new().vfs(Arc::new(self.sim.clone()));
        let store = store.read_only().open(dir()).unwrap();
        let found = store.find_scratch(&made::key(1)).unwrap().unwrap();
        let mut decoded = false;
        let most = most_bytes(|| decoded = found.decode(&Codec::of::<T>()).is_ok());
        let limit = 2 * payload.len() + (64 << 20);
        assert!(most <= limit, "{most} bytes for {}", payload.len());
        decoded
    }

    fn fuzz(&self, seed: u64) -> [u64; 2] {
        let whole = &self.bytes[self.payload..self.end];
        assert!(self.decodes(whole), "the forgery is not good enough");
        let mut random = Random::new(seed);
        let mut outcomes = [0; 2];
        let rounds = match std::env::var_os("SDE_LONG_TESTS") {
            Some(_) => 300_000,
            None => 5_000,
        };
        for _ in 0..rounds {
            let mut payload = whole.to_vec();
            for _ in 0..random.within(1..5) {
                mutate(&mut payload, &mut random);
            }
            outcomes[usize::from(self.decodes(&payload))] += 1;
        }
        outcomes
    }
}

/// Another bit, another head, a length that is far too large, or bytes from elsewhere.
fn mutate(payload: &mut [u8], random: &mut Random) {
    let length = payload.len() as u64;
    let at = random.within(0..length) as usize;
    match random.within(0..5) {
        0 => payload[at] ^= 1 << random.within(0..8),
        1 => payload[at] = random.number() as u8,
        2 => {
            // Bytes, text, arrays and maps of up to 2^64, or of no length.
            let head = random.pick(&[0x5b, 0x7b, 0x9b, 0xbb, 0x9a, 0xba, 0x9f, 0xbf, 0x5f, 0xd8]);
            let number = random.number() >> random.within(0..64);
            let head = [head].into_iter().chain(number.to_be_bytes());
            payload[at..]
                .iter_mut()
                .zip(head)
                .for_each(|(to, byte)| *to = byte);
        }
        3 => payload[at..].fill(random.pick(&[0x81, 0x9f, 0xc1, 0xa1, 0xff, 0xf6])),
        _ => {
            let from = random.within(0..length) as usize;
            let many = (payload.len() - at.max(from)).min(16);
            payload.copy_within(from..from + many, at);
        }
    }
}

type Mixed = (
    u64,
    String,
    BTreeMap<String, Vec<Option<f64>>>,
    Vec<(i32, [f32; 2])>,
    Option<Box<(bool, char)>>,
);

#[test]
fn changed_bytes_are_no_panic_and_take_no_memory() {
    let map = (0..10).map(|n| {
        (
            format!("name {n}"),
            vec![Some(0.5), None, Some(f64::from(n))],
        )
    });
    let mixed: Mixed = (
        7,
        "text".repeat(20),
        map.collect(),
        vec![(-1, [1.5, f32::NAN]); 20],
        Some(Box::new((true, '\u{1f600}'))),
    );
    let outcomes = Forgery::new(mixed).fuzz(1);
    println!("values by serde: {outcomes:?}");
    assert!(outcomes[0] > 0 && outcomes[1] > 0, "{outcomes:?}");
    let array = || Data::from(AnyArray::from(vec![[0.5, 1.5]; 10]));
    let data = (0..10).map(|n| (format!("name {n}"), Data::List(vec![array(), Data::Int(n)])));
    let outcomes = Forgery::new(Data::Map(data.collect())).fuzz(3);
    println!("values without a type: {outcomes:?}");
    assert!(outcomes[0] > 0 && outcomes[1] > 0, "{outcomes:?}");
    let outcomes = Forgery::new((0..200).map(f64::from).collect::<Vec<f64>>()).fuzz(2);
    println!("numbers in bulk: {outcomes:?}");
    assert!(outcomes[0] > 0 && outcomes[1] > 0, "{outcomes:?}");
}
