//! The memory that frames are received into and sent from.

use std::fmt;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::memory::{Buffers, Pages};
use crate::{Error, Result};

/// Sizes that a chunk can have: the kernel takes powers of two from 2048 to the size of a page.
pub const CHUNK_BYTES: [usize; 2] = [2048, 4096];

/// Bytes at the start of each chunk that the kernel keeps free of received frames (`XDP_PACKET_HEADROOM`,
/// linux/bpf.h): what an XDP program may put before them.
pub const HEADROOM_BYTES: usize = 256;

/// Pieces of a frame that the kernel takes in copy mode (`MAX_SKB_FRAGS` + 1, linux/skbuff.h).
pub const PIECES_MAX: usize = 18;

/// The smaller chunk that receives frames of this length whole; `None` where they take several.
pub fn chunk_bytes_for(frame_bytes: usize) -> Option<usize> {
    CHUNK_BYTES.into_iter().find(|chunk_bytes| chunk_bytes - HEADROOM_BYTES >= frame_bytes)
}

/// Who a chunk belongs to goes by its number: whoever has the number, has the chunk. Numbers are handed
/// on and never doubled, within this module's siblings alone.
pub(super) type Chunk = u32;

/// Memory of equal chunks, shared by the sockets that were opened with it.
pub struct Umem {
    buffers: Buffers,
    chunk_bytes: usize,
    stock: Mutex<Stock>,
    /// The socket with which the kernel registered the memory.
    first: Mutex<Option<Arc<OwnedFd>>>,
}

/// What nobody uses at the moment.
#[derive(Debug, Default)]
pub(super) struct Stock {
    pub(super) chunks: Vec<Chunk>,
    /// Lists without contents, whose memory is used again.
    lists: Vec<Vec<Piece>>,
}

/// A filled chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) chunk: Chunk,
    /// Where the bytes begin in the chunk.
    pub(super) start: u16,
    pub(super) length: u16,
    /// The frame goes on in the next piece.
    pub(super) goes_on: bool,
}

impl Stock {
    pub(super) fn list(&mut self) -> Vec<Piece> {
        self.lists.pop().unwrap_or_default()
    }

    pub(super) fn give_back(&mut self, mut pieces: Vec<Piece>) {
        self.chunks.extend(pieces.iter().map(|piece| piece.chunk));
        pieces.clear();
        self.lists.push(pieces);
    }
}

impl Umem {
    /// Maps and touches at least `chunks` chunks of `chunk_bytes`, one of [`CHUNK_BYTES`], on huge pages
    /// where there are any.
    ///
    /// # Errors
    /// [`Kind::Invalid`](crate::Kind::Invalid) for other sizes; [`Kind::Limit`](crate::Kind::Limit) where there is not as
    /// much memory.
    pub fn new(chunks: u32, chunk_bytes: usize) -> Result<Arc<Self>> {
        let action = || format!("making a UMEM of {chunks} chunks of {chunk_bytes} bytes");
        if !CHUNK_BYTES.contains(&chunk_bytes) {
            let source = std::io::Error::from_raw_os_error(libc::EINVAL);
            return Err(Error::new(action(), source)
                .remedy("chunks have 2048 or 4096 bytes in the kernel's rules"));
        }
        let per_page = (4096 / chunk_bytes) as u32;
        let pages = chunks.div_ceil(per_page);
        let buffers = Buffers::new(pages, 4096)?;
        let chunks = pages * per_page;
        // The lowest numbers are given out first.
        let stock = Stock { chunks: (0..chunks).rev().collect(), lists: Vec::new() };
        let umem = Self { buffers, chunk_bytes, stock: Mutex::new(stock), first: Mutex::new(None) };
        Ok(Arc::new(umem))
    }

    /// Bytes of a chunk.
    pub fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// Chunks of the memory.
    pub fn chunks(&self) -> u32 {
        (self.bytes() / self.chunk_bytes) as u32
    }

    /// Bytes of the whole memory.
    pub fn bytes(&self) -> usize {
        self.buffers.region().bytes()
    }

    /// What kind of pages the memory got.
    pub fn pages(&self) -> Pages {
        self.buffers.pages()
    }

    /// Whether a socket was opened with it. The queue of the first one is its own as long as the memory is
    /// there.
    pub fn is_registered(&self) -> bool {
        self.first().is_some()
    }

    /// Chunks that are free at the moment.
    pub fn free_chunks(&self) -> usize {
        self.stock().chunks.len()
    }

    /// Once per batch, for moments: nobody holds it while he waits for anything.
    pub(super) fn stock(&self) -> MutexGuard<'_, Stock> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn first(&self) -> MutexGuard<'_, Option<Arc<OwnedFd>>> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn address(&self) -> usize {
        self.buffers.region().address()
    }

    /// Where a byte of a chunk lies; the chunk is one of this memory and has that many bytes.
    pub(super) fn at(&self, chunk: Chunk, start: usize) -> NonNull<u8> {
        debug_assert!(chunk < self.chunks() && start <= self.chunk_bytes);
        let region = self.buffers.region();
        // A number that is wrong after all reaches no other memory.
        let chunk = chunk.min(self.chunks() - 1) as usize;
        let offset = chunk * self.chunk_bytes + start.min(self.chunk_bytes);
        // SAFETY: the chunk's number is below their count, so that the offset lies within the region or
        // at its end; the region's base is not null.
        unsafe { NonNull::new_unchecked(region.base().add(offset)) }
    }

    /// The piece of memory that a descriptor of the kernel's speaks of; `None` if it is outside of one
    /// chunk of this memory.
    #[inline]
    pub(super) fn piece(&self, entry: &libc::xdp_desc) -> Option<Piece> {
        let chunk_bytes = self.chunk_bytes as u64;
        let chunk = u32::try_from(entry.addr / chunk_bytes).ok()?;
        let start = entry.addr % chunk_bytes;
        let fits = start + u64::from(entry.len) <= chunk_bytes && chunk < self.chunks();
        fits.then_some(Piece {
            chunk,
            start: start as u16,
            length: entry.len as u16,
            goes_on: entry.options & libc::XDP_PKT_CONTD != 0,
        })
    }
}

impl fmt::Debug for Umem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Umem")
            .field("chunks", &self.chunks())
            .field("chunk_bytes", &self.chunk_bytes)
            .field("pages", &self.pages())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn chunks_are_as_long_as_frames_need() {
        assert_eq!(chunk_bytes_for(1_518), Some(2048));
        assert_eq!(chunk_bytes_for(1_792), Some(2048));
        assert_eq!(chunk_bytes_for(1_793), Some(4096));
        assert_eq!(chunk_bytes_for(3_840), Some(4096));
        assert_eq!(chunk_bytes_for(9_018), None);
    }

    #[test]
    fn only_descriptors_within_one_chunk_of_the_memory_count() {
        let umem = Umem::new(4, 2048).unwrap();
        assert_eq!((umem.chunks(), umem.bytes(), umem.free_chunks()), (4, 8192, 4));
        let piece = |addr, len, options| umem.piece(&libc::xdp_desc { addr, len, options });
        let found = piece(2048 + 256, 60, 0).unwrap();
        assert_eq!((found.chunk, found.start, found.length, found.goes_on), (1, 256, 60, false));
        assert!(piece(0, 2048, libc::XDP_PKT_CONTD).unwrap().goes_on);
        for (addr, len) in [(1, 2048), (8192, 1), (u64::MAX, 60), (256, u32::MAX)] {
            assert!(piece(addr, len, 0).is_none(), "{addr} {len}");
        }
    }

    #[test]
    fn other_sizes_of_chunks_are_refused_by_name() {
        let error = Umem::new(4, 3000).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid);
        assert!(error.to_string().contains("4 chunks of 3000 bytes"), "{error}");
    }
}
