//! Large, pre-touched memory that disk writers and packet copies share: one mapping, cut into
//! equal chunks.
//!
//! Vocabulary: a *region* is one anonymous mapping (mmap(2)); a *chunk* is one of its equal parts;
//! a *buffer* is the one handle that exists for a chunk. Because each chunk is handed out once,
//! whoever holds the [`Buffer`] has the chunk to itself, and a kernel that writes a chunk to disk
//! can be given the handle instead of a promise.
//!
//! Pages are taken in this order: reserved huge pages of 2 MiB (hugetlbfs), transparent huge pages
//! on request (madvise(2) `MADV_HUGEPAGE`), ordinary pages. All of them are touched before the
//! region is returned, so no page fault happens later, and they lie on the NUMA node of the thread
//! that makes the region: pin it first.
//!
//! Huge pages are not only about address translation: each piece of memory that is contiguous is one
//! segment of a disk request, and a request has a limited number of them. On one virtual disk direct
//! writes of 4 MiB reached 2.5 GB/s from transparent huge pages and 0.5 GB/s from ordinary ones
//! (`cargo bench -p sys --bench direct_io`), so callers should show what [`Buffers::pages`] says.
//!
//! Limits: regions are fixed in size; their memory goes back to the kernel when the last buffer and
//! the last [`Region`] handle are gone.

mod available;
mod huge_pages;
mod lock_limit;

pub use available::available_bytes;
pub use huge_pages::HugePages;
pub use lock_limit::lock_limit_bytes;

use std::fmt;
use std::fs;
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::{Error, Result};

/// Chunks are multiples of this, and start at multiples of it: what direct I/O asks for on the
/// file systems and disks in use (open(2), `O_DIRECT`).
pub const CHUNK_ALIGNMENT_BYTES: usize = 4096;
/// One huge page on x86-64, and on arm64 with pages of 4 KiB.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// What kind of pages a region got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pages {
    /// Huge pages of 2 MiB that the administrator reserved (`vm.nr_hugepages`).
    Huge,
    /// Ordinary memory of which the kernel made huge pages at least in part;
    /// [`Region::huge_bytes`] says how much.
    Transparent,
    /// Pages of the system's base size, 4 KiB on x86-64.
    Ordinary,
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Pages::Huge => "reserved huge pages (2 MiB)",
            Pages::Transparent => "transparent huge pages",
            Pages::Ordinary => "ordinary pages",
        })
    }
}

/// One mapping, of which the chunks are parts. Gives no access to their contents.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    /// Bytes that chunks use.
    bytes: usize,
    /// Bytes that are mapped from `base` on, at least `bytes`.
    mapped_bytes: usize,
    chunk_bytes: usize,
    pages: Pages,
    huge_bytes: usize,
}

// SAFETY: a region owns its mapping and touches its contents only before it is shared; afterwards
// it hands out nothing but addresses and sizes, so it may move to and be used by any thread.
unsafe impl Send for Region {}
// SAFETY: as above: no method reads or writes the mapped bytes.
unsafe impl Sync for Region {}

impl Region {
    /// The address of the first chunk.
    pub fn address(&self) -> usize {
        self.base.as_ptr().addr()
    }

    /// The bytes of all chunks together.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The bytes of one chunk.
    pub fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// What kind of pages the kernel gave.
    pub fn pages(&self) -> Pages {
        self.pages
    }

    /// How many bytes lie in huge pages, as the kernel reported when the region was made.
    pub fn huge_bytes(&self) -> usize {
        self.huge_bytes
    }

    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Maps and touches at least `bytes` bytes: huge pages first, then ordinary ones.
    fn map(bytes: usize, chunk_bytes: usize) -> io::Result<Self> {
        if let Some(region) = Self::map_huge(bytes, chunk_bytes) {
            return Ok(region);
        }
        let large = bytes >= HUGE_PAGE_BYTES;
        let alignment = if large { HUGE_PAGE_BYTES } else { CHUNK_ALIGNMENT_BYTES };
        let mapped_bytes = rounded_up(bytes, CHUNK_ALIGNMENT_BYTES)?;
        let base = map_aligned(mapped_bytes, alignment)?;
        let mut region =
            Self { base, bytes, mapped_bytes, chunk_bytes, pages: Pages::Ordinary, huge_bytes: 0 };
        if large {
            // SAFETY: the range is this region's own mapping; the advice changes no contents. It is
            // refused where huge pages are switched off, which the count below shows.
            let _ = unsafe { madvise(base.as_ptr().cast(), mapped_bytes, Advice::LinuxHugepage) };
        }
        region.touch()?;
        region.huge_bytes = transparent_huge_bytes(region.address(), bytes).unwrap_or(0);
        if region.huge_bytes > 0 {
            region.pages = Pages::Transparent;
        }
        Ok(region)
    }

    /// Reserved huge pages; `None` when too few are reserved or the region is smaller than one.
    fn map_huge(bytes: usize, chunk_bytes: usize) -> Option<Self> {
        if bytes < HUGE_PAGE_BYTES {
            return None;
        }
        let mapped_bytes = rounded_up(bytes, HUGE_PAGE_BYTES).ok()?;
        let flags = MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::HUGE_2MB;
        // SAFETY: an anonymous mapping at an address that the kernel chooses replaces nothing.
        let base = unsafe {
            mmap_anonymous(ptr::null_mut(), mapped_bytes, ProtFlags::READ | ProtFlags::WRITE, flags)
        }
        .ok()?;
        let base = NonNull::new(base.cast())?;
        let pages = Pages::Huge;
        let region = Self { base, bytes, mapped_bytes, chunk_bytes, pages, huge_bytes: bytes };
        // Reserved pages can still be out of reach (another node, a cgroup's limit). Populating
        // says so; touching them by hand would end the process by SIGBUS.
        region.populate().ok().map(|()| region)
    }

    fn populate(&self) -> io::Result<()> {
        let advice = Advice::LinuxPopulateWrite;
        // SAFETY: the range is this region's own mapping and nobody else refers to it yet.
        unsafe { madvise(self.base.as_ptr().cast(), self.mapped_bytes, advice) }?;
        Ok(())
    }

    /// Gives each page its memory now.
    fn touch(&self) -> io::Result<()> {
        match self.populate() {
            // Kernels before 5.14 do not know the advice: write to every page.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                for offset in (0..self.mapped_bytes).step_by(CHUNK_ALIGNMENT_BYTES) {
                    // SAFETY: `offset` lies within the mapping, which is writable and not shared
                    // with anybody yet; a volatile write is not optimised away.
                    unsafe { self.base.as_ptr().add(offset).write_volatile(0) };
                }
                Ok(())
            }
            result => result,
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by this region with this size; every buffer holds the region,
        // so no reference into it is left. An error would leave the memory mapped: harmless.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.mapped_bytes) };
    }
}

/// A region whose chunks have not been handed out yet.
#[derive(Debug)]
pub struct Buffers {
    region: Arc<Region>,
    count: u32,
}

impl Buffers {
    /// Maps and touches `count` chunks of `chunk_bytes` bytes each.
    ///
    /// Takes its time with each GiB: seconds in virtual machines whose host supplies memory late.
    ///
    /// # Errors
    /// [`Kind::Invalid`](crate::Kind::Invalid) when `count` is 0, when `chunk_bytes` is 0 or no multiple of
    /// [`CHUNK_ALIGNMENT_BYTES`], or when the product overflows; what mmap(2) and madvise(2)
    /// report ([`Kind::Limit`](crate::Kind::Limit)) otherwise.
    pub fn new(count: u32, chunk_bytes: usize) -> Result<Self> {
        let action = || format!("mapping {count} buffers of {chunk_bytes} bytes");
        let total = (count as usize).checked_mul(chunk_bytes);
        let bytes = match total {
            Some(bytes) if bytes > 0 && chunk_bytes.is_multiple_of(CHUNK_ALIGNMENT_BYTES) => bytes,
            _ => {
                let source = io::Error::from_raw_os_error(libc::EINVAL);
                return Err(Error::new(action(), source).remedy(format!(
                    "ask for at least one buffer whose size is a multiple of \
                     {CHUNK_ALIGNMENT_BYTES} bytes"
                )));
            }
        };
        let region =
            Region::map(bytes, chunk_bytes).map_err(|source| Error::new(action(), source))?;
        Ok(Self { region: Arc::new(region), count })
    }

    /// The mapping that the chunks are part of: for registering it with a writer.
    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// How many chunks there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// What kind of pages the kernel gave.
    pub fn pages(&self) -> Pages {
        self.region.pages
    }

    /// Hands out each chunk, in order of index. Their bytes are zero.
    pub fn split(self) -> Vec<Buffer> {
        let chunk = |index| Buffer { region: Arc::clone(&self.region), index };
        (0..self.count).map(chunk).collect()
    }
}

/// One chunk of a region, owned: the bytes behind it belong to whoever holds the handle.
pub struct Buffer {
    region: Arc<Region>,
    index: u32,
}

impl Buffer {
    /// Fills it, from `seed`, with content that no storage compresses or deduplicates (xorshift).
    pub fn fill_incompressible(&mut self, seed: u64) {
        let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for word in self.chunks_exact_mut(size_of::<u64>()) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
    }

    /// The number of the chunk in its region, from 0.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The mapping that this chunk is part of.
    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// Where the chunk starts, in bytes from the start of the region.
    pub fn offset(&self) -> usize {
        self.index as usize * self.region.chunk_bytes
    }

    fn start(&self) -> *mut u8 {
        // SAFETY: `index` is less than the count that the region was made for, so the offset lies
        // within the mapping and cannot overflow.
        unsafe { self.region.base.as_ptr().add(self.offset()) }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the chunk lies within the mapping, which this handle keeps alive; its bytes are
        // initialised (the kernel zeroes them) and only reachable by this one handle.
        unsafe { slice::from_raw_parts(self.start(), self.region.chunk_bytes) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and the handle is borrowed mutably, so the slice is the only one.
        unsafe { slice::from_raw_parts_mut(self.start(), self.region.chunk_bytes) }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("index", &self.index)
            .field("bytes", &self.region.chunk_bytes)
            .finish()
    }
}

fn rounded_up(bytes: usize, alignment: usize) -> io::Result<usize> {
    bytes.checked_next_multiple_of(alignment).ok_or_else(|| Errno::NOMEM.into())
}

/// Maps `bytes` (a multiple of the page size) at a multiple of `alignment`: maps more and gives
/// back what lies before and after.
fn map_aligned(bytes: usize, alignment: usize) -> io::Result<NonNull<u8>> {
    let spare_bytes = bytes.checked_add(alignment).ok_or(Errno::NOMEM)?;
    // SAFETY: an anonymous mapping at an address that the kernel chooses replaces nothing.
    let mapped = unsafe {
        mmap_anonymous(
            ptr::null_mut(),
            spare_bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )
    }?
    .cast::<u8>();
    let before = mapped.align_offset(alignment);
    let after = spare_bytes - before - bytes;
    if before > 0 {
        // SAFETY: the first `before` bytes of the mapping just made; nobody refers to them.
        unsafe { munmap(mapped.cast(), before) }?;
    }
    // SAFETY: `before` is at most `alignment`, so the sum stays within the mapping.
    let base = unsafe { mapped.add(before) };
    if after > 0 {
        // SAFETY: the last `after` bytes of the mapping just made; nobody refers to them.
        unsafe { munmap(base.add(bytes).cast(), after) }?;
    }
    NonNull::new(base).ok_or_else(|| Errno::NOMEM.into())
}

/// How many bytes of `address .. address + bytes` lie in transparent huge pages, by proc(5) `smaps`.
fn transparent_huge_bytes(address: usize, bytes: usize) -> io::Result<usize> {
    let smaps = fs::read_to_string("/proc/self/smaps")?;
    Ok(huge_bytes_in(&smaps, address, bytes))
}

fn huge_bytes_in(smaps: &str, address: usize, bytes: usize) -> usize {
    let mut overlaps = false;
    let mut found = 0;
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else { continue };
        if first == "AnonHugePages:" {
            let kib = words.next().and_then(|word| word.parse::<usize>().ok()).unwrap_or(0);
            found += if overlaps { kib * 1024 } else { 0 };
        } else if let Some((start, end)) = first.split_once('-')
            && let Ok(start) = usize::from_str_radix(start, 16)
            && let Ok(end) = usize::from_str_radix(end, 16)
        {
            overlaps = start < address + bytes && address < end;
        }
    }
    // The kernel merges neighbouring mappings into one entry: not more than what was asked about.
    found.min(bytes)
}

#[cfg(test)]
mod tests;
