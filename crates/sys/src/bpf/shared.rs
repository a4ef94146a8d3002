//! The values of an array, mapped: read and written without a system call.

use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::{Map, MapKind};
use crate::{Error, Kind, Result};

const WORD_BYTES: usize = 8;

/// The values of a mappable array in this process's memory, as words of 64 bits in the machine's order.
/// Programs that run meanwhile change them; each word is read whole.
#[derive(Debug)]
pub struct SharedArray {
    memory: NonNull<u8>,
    mapped_bytes: usize,
    words_per_value: usize,
    values: usize,
}

// SAFETY: the memory is owned by this value and unmapped only by its drop; it is accessed through
// atomics alone.
unsafe impl Send for SharedArray {}
// SAFETY: as above.
unsafe impl Sync for SharedArray {}

impl SharedArray {
    /// Maps all values of `map`. They stay readable when the map itself is closed.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for a map that was not made [`super::MapSpec::mappable`]; what mmap(2) reports.
    pub fn of(map: &Map) -> Result<Self> {
        let action = || format!("mapping the values of the map {}", map.name());
        if map.kind() != MapKind::Array || !map.is_mappable() {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "it was not made mappable");
            return Err(Error::new(action(), source).with_kind(Kind::Invalid));
        }
        // Values begin at multiples of 8; the kernel maps whole pages (array_map_alloc).
        let words_per_value = map.value_bytes().div_ceil(WORD_BYTES);
        let values = map.entries_max() as usize;
        let page_bytes = rustix::param::page_size();
        let mapped_bytes = (words_per_value * WORD_BYTES * values).next_multiple_of(page_bytes);
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let address = unsafe {
            mmap(
                std::ptr::null_mut(),
                mapped_bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                map.as_fd(),
                0,
            )
        }
        .map_err(|errno| Error::new(action(), errno))?;
        let Some(memory) = NonNull::new(address.cast()) else {
            return Err(Error::new(action(), io::Error::other("the kernel gave no address")));
        };
        Ok(Self { memory, mapped_bytes, words_per_value, values })
    }

    /// Words of one value.
    pub fn words_per_value(&self) -> usize {
        self.words_per_value
    }

    /// Values that there are.
    pub fn values(&self) -> usize {
        self.values
    }

    /// Word `word` of value `value`; `None` beyond the end.
    pub fn word(&self, value: usize, word: usize) -> Option<&AtomicU64> {
        if value >= self.values || word >= self.words_per_value {
            return None;
        }
        let place = value * self.words_per_value + word;
        // SAFETY: the place lies in the mapping, which is page-aligned and outlives `&self`; this
        // process accesses it through atomics alone, and the kernel's accesses are outside of its memory model.
        Some(unsafe { AtomicU64::from_ptr(self.memory.as_ptr().add(place * WORD_BYTES).cast()) })
    }

    /// Reads one word; 0 beyond the end.
    pub fn get(&self, value: usize, word: usize) -> u64 {
        self.word(value, word).map_or(0, |word| word.load(Ordering::Relaxed))
    }
}

impl Drop for SharedArray {
    fn drop(&mut self) {
        // SAFETY: mapped by `of` with this length; borrows of its words have ended. Failure would leave
        // it mapped: harmless.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), self.mapped_bytes) };
    }
}
