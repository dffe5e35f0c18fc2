//! Asking for memory ahead of its use. Only the time that things take depends on it.

use std::ops::Range;

/// Bytes that come at a time.
const LINE: usize = 64;

/// Ask the processor to have every cache line of `item` at hand soon.
#[inline(always)]
pub fn item<T: ?Sized>(item: &T) {
    lines(std::ptr::from_ref(item).cast(), 0..size_of_val(item).div_ceil(LINE));
}

/// The same of some of the cache lines from `start` on, where nothing need be.
#[inline(always)]
pub fn lines(start: *const u8, lines: Range<usize>) {
    for n in lines {
        line(start.wrapping_add(n * LINE));
    }
}

#[inline(always)]
#[cfg_attr(not(all(target_arch = "x86_64", not(miri))), expect(unused_variables))]
fn line(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint: it neither reads nor writes, whatever the address.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(at.cast());
        }
    }
}
