//! Memory for many numbers.
//!
//! The first write to each page of new memory costs more than all that is written to it, where pages are small. So
//! the system is asked for large ones.

#![allow(unsafe_code, reason = "gives advice about memory that it has just got")]

use bytemuck::Zeroable;

/// What a large page has, and what is worth asking for.
const LARGE: usize = 2 << 20;

/// So many zeros; `None` if there is no memory for them.
pub(crate) fn try_zeroed<T: Zeroable>(count: usize) -> Option<Vec<T>> {
    let numbers = bytemuck::allocation::try_zeroed_vec(count).ok()?;
    advise(&numbers);
    Some(numbers)
}

#[cfg(target_os = "linux")]
fn advise<T>(numbers: &[T]) {
    let bytes = numbers.as_ptr_range();
    let start = (bytes.start as usize).next_multiple_of(LARGE);
    let length = (bytes.end as usize).saturating_sub(start) / LARGE * LARGE;
    if length > 0 {
        let start = std::ptr::without_provenance_mut(start);
        // SAFETY: the pages lie within a slice that nobody else has; this advice changes nothing that is in them. Where
        // the system has no large pages it says so, and all is as it was.
        let _ = unsafe { rustix::mm::madvise(start, length, rustix::mm::Advice::LinuxHugepage) };
    }
}

#[cfg(not(target_os = "linux"))]
fn advise<T>(_: &[T]) {}
