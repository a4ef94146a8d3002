//! The transmitting half of a socket: frames in, chunks back when they were sent.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use libc::xdp_desc;

use super::ring::{ConsumingRing, ProducingRing};
use super::settings::CopyMode;
use super::socket::wake_transmitter;
use super::umem::{Chunk, PIECES_MAX, Umem};
use crate::{Error, Result};

/// Between two looks at frames that are on their way.
const LOOK_AGAIN: Duration = Duration::from_micros(50);

/// Chunks begin at multiples of the same power of two, and so would all frames: moved by a few lines
/// each, they do not fall into the same sets of the caches.
const LINE_BYTES: usize = 64;
const LINES: usize = 8;

/// Why the kernel took no more frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stopped {
    /// All chunks are in the ring or on their way.
    NoChunk,
    /// The socket has as many frames on their way as its buffer allows (`EAGAIN`).
    SocketFull,
    /// The device had no room for the frame, or no carrier; it is sent again (`EBUSY`).
    DeviceFull,
    /// The interface is down or gone (`ENETDOWN`, `ENXIO`).
    Down,
}

/// Sends on one queue.
#[derive(Debug)]
pub struct Transmitter {
    pub(super) ring: ProducingRing<xdp_desc>,
    pub(super) done: ConsumingRing<u64>,
    pub(super) umem: Arc<Umem>,
    /// Chunks that hold no frame; the last one was used last.
    pub(super) free: Vec<Chunk>,
    /// Chunks of frames that the device refused: they are sent twice, and come back twice.
    pub(super) again: Vec<Chunk>,
    /// All chunks of this transmitter.
    pub(super) chunks: usize,
    pub(super) mode: CopyMode,
    pub(super) multi_buffer: bool,
    pub(super) socket: Arc<OwnedFd>,
}

impl Transmitter {
    /// Longest frame that fits in its pieces, in bytes.
    pub fn frame_bytes_max(&self) -> usize {
        let pieces = if self.multi_buffer { PIECES_MAX } else { 1 };
        self.umem.chunk_bytes() * pieces
    }

    /// Copies frames into free chunks, in order, and has the kernel take them, without waiting. Gives how
    /// many were copied: these leave, now or with a later call. Fewer than there are: come again.
    ///
    /// # Errors
    /// [`Kind::Invalid`](crate::Kind::Invalid) for a frame that is empty or longer than
    /// [`Transmitter::frame_bytes_max`]: it and those behind it were not copied. What the kernel says but for being
    /// full or down.
    pub fn send<'a>(
        &mut self,
        frames: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(usize, Option<Stopped>)> {
        let mut copied = 0;
        let mut stopped = None;
        let mut wrong = None;
        for frame in frames {
            if frame.is_empty() || frame.len() > self.frame_bytes_max() {
                wrong = Some(frame.len());
                break;
            }
            if !self.write(frame) {
                stopped = Some(Stopped::NoChunk);
                break;
            }
            copied += 1;
        }
        self.ring.publish();
        let woken = self.wake()?;
        if let Some(bytes) = wrong.filter(|_| copied == 0) {
            let source = io::Error::from_raw_os_error(libc::EMSGSIZE);
            return Err(Error::new(format!("sending a frame of {bytes} bytes by AF_XDP"), source)
                .remedy(format!("frames have 1 to {} bytes here", self.frame_bytes_max())));
        }
        Ok((copied, woken.or(stopped)))
    }

    /// Writes a frame to free chunks and its descriptors to the ring; false if there is no room.
    fn write(&mut self, frame: &[u8]) -> bool {
        let chunk_bytes = self.umem.chunk_bytes();
        let pieces = frame.len().div_ceil(chunk_bytes);
        if self.free.len() < pieces {
            self.reap();
        }
        if self.free.len() < pieces || self.ring.room(pieces as u32) < pieces as u32 {
            return false;
        }
        let mut rest = frame;
        while !rest.is_empty() {
            let Some(chunk) = self.free.pop() else { return false };
            let (piece, later) = rest.split_at(rest.len().min(chunk_bytes));
            let spare = chunk_bytes - piece.len();
            let start = (chunk as usize % LINES * LINE_BYTES).min(spare / LINE_BYTES * LINE_BYTES);
            // SAFETY: the chunk was free and is this one's alone; the kernel reads it only once its
            // descriptor is published. `start` and the piece's length stay within the chunk, and `frame`
            // cannot overlap it: no reference to a free chunk exists.
            unsafe {
                let to = self.umem.at(chunk, start);
                std::ptr::copy_nonoverlapping(piece.as_ptr(), to.as_ptr(), piece.len());
            }
            let entry = xdp_desc {
                addr: u64::from(chunk) * chunk_bytes as u64 + start as u64,
                len: piece.len() as u32,
                options: if later.is_empty() { 0 } else { libc::XDP_PKT_CONTD },
            };
            let is_pushed = self.ring.push(entry);
            debug_assert!(is_pushed, "there was room for it");
            rest = later;
        }
        true
    }

    /// Takes back the chunks of what was sent.
    fn reap(&mut self) {
        let count = self.done.filled(u32::MAX);
        let chunk_bytes = self.umem.chunk_bytes() as u64;
        for ahead in 0..count {
            let Ok(chunk) = Chunk::try_from(self.done.peek(ahead) / chunk_bytes) else { continue };
            if let Some(place) = self.again.iter().position(|again| *again == chunk) {
                self.again.swap_remove(place);
            } else if self.free.len() < self.chunks {
                self.free.push(chunk);
            }
        }
        self.done.release(count);
    }

    /// Has the kernel look at the ring, and gives what stopped it.
    ///
    /// In copy mode it takes frames within the call, and some at a time. A frame for which the device has no
    /// room is lost to it and told by `EBUSY`: that one is put into the ring once more.
    ///
    /// # Errors
    /// What the kernel says but for being full or down.
    pub fn wake(&mut self) -> Result<Option<Stopped>> {
        if self.mode == CopyMode::ZeroCopy && !self.ring.needs_wakeup() {
            return Ok(None);
        }
        loop {
            let before = self.ring.waiting();
            if before == 0 {
                return Ok(None);
            }
            let called = wake_transmitter(self.socket.as_fd());
            let errno = match called {
                Ok(()) => return Ok(None),
                Err(errno) => errno,
            };
            match errno.raw_os_error().unwrap_or(0) {
                _ if self.mode == CopyMode::ZeroCopy && is_passing(&errno) => return Ok(None),
                libc::EAGAIN if self.ring.waiting() < before => {}
                libc::EAGAIN => return Ok(Some(Stopped::SocketFull)),
                libc::EBUSY => {
                    self.put_again();
                    return Ok(Some(Stopped::DeviceFull));
                }
                libc::ENOBUFS | libc::EINTR => return Ok(Some(Stopped::SocketFull)),
                libc::ENETDOWN | libc::ENXIO | libc::ENODEV => return Ok(Some(Stopped::Down)),
                _ => return Err(Error::new("sending by AF_XDP", errno)),
            }
        }
    }

    /// Puts the frame that the kernel took last and lost into the ring once more, before the others.
    fn put_again(&mut self) {
        let waiting = self.ring.waiting();
        let mut pieces = 1;
        while pieces < PIECES_MAX as u32
            && self.ring.pushed(waiting + pieces + 1).options & libc::XDP_PKT_CONTD != 0
        {
            pieces += 1;
        }
        let chunk_bytes = self.umem.chunk_bytes() as u64;
        let chunks: Vec<Chunk> = (1..=pieces)
            .map(|back| (self.ring.pushed(waiting + back).addr / chunk_bytes) as Chunk)
            .collect();
        if self.ring.put_again(pieces) {
            self.again.extend(chunks);
            self.ring.publish();
        }
    }

    /// Frames in the ring that the kernel has not taken.
    pub fn waiting_packets(&mut self) -> u64 {
        let waiting = self.ring.waiting();
        let is_end = |back| self.ring.pushed(back).options & libc::XDP_PKT_CONTD == 0;
        (1..=waiting).filter(|back| is_end(*back)).count() as u64
    }

    /// Whether every frame has left: the ring is empty and all chunks are back.
    pub fn is_idle(&mut self) -> bool {
        self.reap();
        self.ring.waiting() == 0 && self.free.len() == self.chunks
    }

    /// Sleeps until there may be room again, at most `timeout`: nothing tells of chunks that come back.
    pub fn wait(&mut self, timeout: Duration) {
        std::thread::sleep(timeout.min(LOOK_AGAIN));
    }

    /// Has the kernel take what is in the ring and waits until all of it has left, at most `timeout`.
    /// Gives whether it did.
    ///
    /// # Errors
    /// As [`Transmitter::wake`].
    pub fn drain(&mut self, timeout: Duration) -> Result<bool> {
        let begun = Instant::now();
        loop {
            self.wake()?;
            if self.is_idle() {
                return Ok(true);
            }
            if begun.elapsed() >= timeout {
                return Ok(false);
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

/// What a driver says while it is busy with the ring.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR))
}

impl Drop for Transmitter {
    fn drop(&mut self) {
        // Chunks that are still with the kernel are not given back: it may read them yet.
        self.reap();
        self.umem.stock().chunks.append(&mut self.free);
    }
}
