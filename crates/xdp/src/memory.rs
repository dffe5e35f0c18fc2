//! Memory that program and kernel share. Everything unsafe about it is in this file.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// A mapping, until it is dropped.
pub(crate) struct Memory {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread.
#[allow(unsafe_code)]
unsafe impl Send for Memory {}

impl Memory {
    /// `len` bytes of zeros, which have their pages already.
    pub(crate) fn new(len: usize) -> io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: the kernel chooses the place, so no other memory is touched.
        #[allow(unsafe_code)]
        let start = unsafe { mmap_anonymous(null_mut(), len, PROTECTION, flags) };
        Self::at(start, len)
    }

    /// The `len` bytes of `socket` at `offset`.
    pub(crate) fn of(socket: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: as above.
        #[allow(unsafe_code)]
        let start = unsafe { mmap(null_mut(), len, PROTECTION, flags, socket, offset) };
        Self::at(start, len)
    }

    fn at(start: rustix::io::Result<*mut libc::c_void>, len: usize) -> io::Result<Self> {
        match NonNull::new(start?.cast()) {
            Some(start) => Ok(Self { start, len }),
            None => Err(io::ErrorKind::OutOfMemory.into()),
        }
    }

    /// Where it begins.
    pub(crate) fn address(&self) -> u64 {
        self.start.as_ptr().addr() as u64
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The four bytes at `at`.
    pub(crate) fn u32(&self, at: usize) -> &AtomicU32 {
        self.check::<AtomicU32>(at);
        // SAFETY: inside the mapping and aligned, as just checked. The kernel changes these words
        // as whole words, too.
        #[allow(unsafe_code)]
        unsafe {
            AtomicU32::from_ptr(self.start.as_ptr().add(at).cast())
        }
    }

    /// The eight bytes at `at`.
    pub(crate) fn u64(&self, at: usize) -> &AtomicU64 {
        self.check::<AtomicU64>(at);
        // SAFETY: as above.
        #[allow(unsafe_code)]
        unsafe {
            AtomicU64::from_ptr(self.start.as_ptr().add(at).cast())
        }
    }

    fn check<T>(&self, at: usize) {
        let fits = at.checked_add(size_of::<T>()).is_some_and(|end| end <= self.len);
        assert!(fits && at.is_multiple_of(align_of::<T>()), "{at} in {} bytes", self.len);
    }

    /// These bytes, of which the caller knows that the kernel does not write them now: they are in
    /// a chunk that the rings have handed to the program and not back.
    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: inside the mapping. Nobody writes there: the kernel not, as said above, and the
        // program only through `&mut self`.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts(self.start.as_ptr().add(range.start), range.len())
        }
    }

    /// The same, to be written.
    pub(crate) fn bytes_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: as above; and the kernel does not read a chunk that it has not been handed.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts_mut(self.start.as_ptr().add(range.start), range.len())
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: this mapping, of which nothing is borrowed any more. The kernel holds the pages
        // of a UMEM by itself.
        #[allow(unsafe_code)]
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

const PROTECTION: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn words_and_bytes_are_the_same_memory() {
        let mut memory = Memory::new(4096).unwrap();
        memory.u32(8).store(0x0403_0201, Ordering::Relaxed);
        assert_eq!(memory.bytes(8..12), [1, 2, 3, 4]);
        memory.bytes_mut(16..24).fill(1);
        assert_eq!(memory.u64(16).load(Ordering::Relaxed), 0x0101_0101_0101_0101);
    }

    #[test]
    #[should_panic(expected = "4092 in 4096 bytes")]
    fn a_word_beyond_the_end_is_refused() {
        Memory::new(4096).unwrap().u64(4092);
    }
}
