//! Memory for many numbers.
//!
//! The first write to each page of new memory costs more than all that is written to it, where pages are small. So
//! the system is asked for large ones.

#![allow(unsafe_code, reason = "gives advice about memory that it has just got")]

use bytemuck::Zeroable;

/// The size of a large page; from this size on memory is worth asking for them.
const LARGE: usize = 2 << 20;

/// Makes a list of `count` zeros; `None` if there is no memory for them. Many of them lie in large pages, where the
/// system has those.
#[must_use]
pub fn try_zeroed<T: Zeroable>(count: usize) -> Option<Vec<T>> {
    let numbers = bytemuck::allocation::try_zeroed_vec(count).ok()?;
    advise(&numbers);
    Some(numbers)
}

/// Where a large page begins in memory that has several; 0 in less.
pub(crate) fn start_of_large(bytes: &[u8]) -> usize {
    if bytes.len() < 2 * LARGE {
        0
    } else {
        bytes.as_ptr().align_offset(LARGE).min(LARGE)
    }
}

/// How much more memory of such a length is to be asked for, so that it can begin at a large page. The rest is not
/// touched.
pub(crate) fn room_for_start(length: usize) -> usize {
    if length < LARGE { 0 } else { LARGE }
}

#[cfg(target_os = "linux")]
fn advise<T>(memory: &[T]) {
    /// The page size of most systems; where it is larger the advice has no effect.
    const PAGE: usize = 4096;
    let (start, length) = (memory.as_ptr() as usize, size_of_val(memory));
    if length < LARGE {
        return;
    }
    let (start, end) = (start / PAGE * PAGE, (start + length).next_multiple_of(PAGE));
    let pages = std::ptr::without_provenance_mut(start);
    // SAFETY: this advice changes no content of memory, whoever has it. A system without large pages says so and
    // changes nothing.
    let _ = unsafe { rustix::mm::madvise(pages, end - start, rustix::mm::Advice::LinuxHugepage) };
}

#[cfg(not(target_os = "linux"))]
fn advise<T>(_: &[T]) {}
