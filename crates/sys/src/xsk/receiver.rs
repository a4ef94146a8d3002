//! The receiving half of a socket: empty chunks in, frames out.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use libc::xdp_desc;

use super::frames::Frames;
use super::ring::{ConsumingRing, ProducingRing};
use super::socket::wake_receiver;
use super::umem::Umem;
use crate::Result;

/// Frames (with multi-buffer: pieces) that one call gives at most.
pub const FRAMES_MAX: usize = 64;

/// Empty chunks are moved to the fill ring when there are this many: one lock for all of them.
const REFILL: u32 = 64;

/// Receives from one queue.
#[derive(Debug)]
pub struct Receiver {
    pub(super) fill: ProducingRing<u64>,
    pub(super) filled: ConsumingRing<xdp_desc>,
    pub(super) umem: Arc<Umem>,
    /// Chunks that are to be in its rings: those of one receiver are not for another.
    pub(super) depth: u32,
    /// Frames that were taken so far.
    pub(super) frames: u64,
    /// Descriptors that made no sense.
    pub(super) malformed: u64,
    pub(super) socket: Arc<OwnedFd>,
}

impl Receiver {
    /// The next frames, up to [`FRAMES_MAX`]; `None` if there are none. Feeds the fill ring first: it is
    /// full again after each call as far as there are free chunks.
    ///
    /// # Errors
    /// What the kernel says to being woken, where it has to be.
    pub fn receive(&mut self) -> Result<Option<Frames>> {
        self.refill()?;
        let there = self.filled.filled(FRAMES_MAX as u32).min(FRAMES_MAX as u32);
        if there == 0 {
            return Ok(None);
        }
        let mut pieces = self.umem.stock().list();
        pieces.reserve_exact(FRAMES_MAX);
        let (mut whole, mut whole_pieces, mut frames) = (0, 0, 0);
        for ahead in 0..there {
            let entry = self.filled.peek(ahead);
            let goes_on = entry.options & libc::XDP_PKT_CONTD != 0;
            match self.umem.piece(&entry) {
                Some(piece) => pieces.push(piece),
                None => self.malformed += 1,
            }
            if !goes_on {
                (whole, whole_pieces, frames) = (ahead + 1, pieces.len(), frames + 1);
            }
        }
        // What is there of a frame that is still being written comes with the next call.
        pieces.truncate(whole_pieces);
        self.filled.release(whole);
        self.frames += frames;
        let found = Frames::new(&self.umem, pieces);
        Ok((found.pieces() > 0).then_some(found))
    }

    /// Sets how many chunks are to be in the rings, empty or filled; as many as the rings have entries unless
    /// told otherwise. Fewer of them stay in the caches of the processor, more last longer.
    pub fn set_depth(&mut self, chunks: u32) {
        self.depth = chunks;
    }

    /// Moves free chunks to the fill ring, and tells the kernel of them where it has to be told. To be
    /// called before frames come; [`Receiver::receive`] does it each time.
    ///
    /// # Errors
    /// What the kernel says to being woken.
    pub fn refill(&mut self) -> Result<()> {
        let room = self.fill.room(REFILL);
        if room >= REFILL {
            // Looked at in this order, a chunk that the kernel fills just now counts twice, never not
            // at all.
            let in_rings = self.fill.waiting() + self.filled.filled(u32::MAX);
            let room = room.min(self.depth.saturating_sub(in_rings)) as usize;
            let mut stock = self.umem.stock();
            let count = room.min(stock.chunks.len());
            let chunk_bytes = self.umem.chunk_bytes() as u64;
            let from = stock.chunks.len() - count;
            for chunk in stock.chunks.drain(from..) {
                let is_pushed = self.fill.push(u64::from(chunk) * chunk_bytes);
                debug_assert!(is_pushed, "there was room for it");
            }
            drop(stock);
            self.fill.publish();
        }
        if self.fill.needs_wakeup() { wake_receiver(self.socket.as_fd()) } else { Ok(()) }
    }

    /// Frames that were taken so far, and those that wait to be taken. With multi-buffer the latter are
    /// pieces.
    pub fn frames(&mut self) -> (u64, u64) {
        (self.frames, self.filled.filled(u32::MAX).into())
    }

    /// Descriptors of the kernel that lay outside of the memory; there should be none.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// For poll(2): readable when there are frames.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
