//! Received frames, where the kernel put them.

use std::sync::Arc;

use super::umem::{Piece, Umem};

/// Bytes of a time in front of a frame.
pub const STAMP_BYTES: usize = 8;

/// Received frames in their order. They may be kept, moved to another thread, and outlive their socket;
/// their chunks go back when this is dropped.
#[derive(Debug)]
pub struct Frames {
    umem: Arc<Umem>,
    pieces: Vec<Piece>,
}

impl Frames {
    /// Takes the chunks of `pieces`, which belong to `umem` and to nobody else.
    pub(super) fn new(umem: &Arc<Umem>, pieces: Vec<Piece>) -> Self {
        Self { umem: Arc::clone(umem), pieces }
    }

    /// Pieces of all frames together: without multi-buffer each frame is one.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Bytes of piece `number`; empty where there is none.
    #[inline]
    pub fn piece(&self, number: usize) -> &[u8] {
        let Some(piece) = self.pieces.get(number) else { return &[] };
        let at = self.umem.at(piece.chunk, piece.start.into());
        // SAFETY: the chunk belongs to `self` until its drop: the kernel gave it out and gets its number
        // back only then, nobody else has that number, and mutable references to it are made from
        // `&mut self` alone. Start and length were checked against the chunk, and the memory lives as
        // long as `self.umem`.
        unsafe { std::slice::from_raw_parts(at.as_ptr(), piece.length.into()) }
    }

    /// Bytes of piece `number`, to be changed; empty where there is none.
    pub fn piece_mut(&mut self, number: usize) -> &mut [u8] {
        let Some(piece) = self.pieces.get(number) else { return &mut [] };
        let at = self.umem.at(piece.chunk, piece.start.into());
        // SAFETY: as in `piece`; `&mut self` says that there is no other reference.
        unsafe { std::slice::from_raw_parts_mut(at.as_ptr(), piece.length.into()) }
    }

    /// The number that an XDP program may have put right in front of piece `number` as meta data, in the
    /// machine's order. If it put none, any number stands there.
    #[inline]
    pub fn stamp(&self, number: usize) -> u64 {
        let piece = self.pieces.get(number);
        let Some(piece) = piece.filter(|piece| usize::from(piece.start) >= STAMP_BYTES) else {
            return 0;
        };
        let at = self.umem.at(piece.chunk, usize::from(piece.start) - STAMP_BYTES);
        // SAFETY: as in `piece`: the whole chunk belongs to `self`, and the bytes in front of the piece
        // lie in it, as was just checked. They were written by the kernel or zeroed with the memory.
        unsafe { at.cast::<u64>().read_unaligned() }
    }

    /// The length of piece `number` in bytes.
    #[inline]
    pub fn piece_bytes(&self, number: usize) -> u32 {
        self.pieces.get(number).map_or(0, |piece| piece.length.into())
    }

    /// The frames, each as the numbers of its pieces.
    pub fn frames(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        let mut first = 0;
        self.pieces.iter().enumerate().filter(|(_, piece)| !piece.goes_on).map(move |(last, _)| {
            let frame = first..last + 1;
            first = last + 1;
            frame
        })
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.umem.stock().give_back(std::mem::take(&mut self.pieces));
    }
}
