//! The io_uring engine (io_uring(7)): one ring, one entry per write in flight.
//!
//! The ring belongs to the thread of the first submission (`IORING_SETUP_SINGLE_ISSUER`), where the
//! kernel knows that set-up. Memory of the regions given at the start is registered: the kernel then
//! does not pin 256 pages for each write of 1 MiB.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::Instant;

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, opcode, squeue};
use rustix::io::Errno;

use super::operation::{Operation, Step};
use super::{Completion, Refused, Wait};
use crate::memory::{Buffer, Region};
use crate::{Error, Result};

/// The kernel registers at most this much memory as one buffer (io_uring_register(2)).
const REGISTERED_MAX_BYTES: usize = 1 << 30;
/// The kernel registers at most this many buffers.
const REGISTERED_MAX: usize = 1 << 14;

/// Why no ring could be made, in words, and what the kernel said.
#[derive(Debug)]
pub(super) struct Unavailable {
    pub(super) reason: String,
    pub(super) source: io::Error,
}

/// A region that the kernel has pinned for this ring.
struct Registered {
    /// Keeps the addresses from being mapped anew while the kernel links them to the old memory.
    region: Arc<Region>,
    /// The kernel's number of the region's first part.
    first_index: u16,
    /// Parts are whole chunks; each but the last has this size.
    part_bytes: usize,
}

/// A ring with the writes that it carries. Dropping it waits for those the kernel has.
pub(super) struct Uring {
    ring: IoUring,
    /// Writes in flight, by the number that their entry carries.
    slots: Vec<Option<Operation>>,
    free: Vec<usize>,
    registered: Vec<Registered>,
    /// The thread that may submit, once it has; `None` until then or if any may.
    owner: Option<ThreadId>,
    single_issuer: bool,
}

impl Uring {
    /// Makes a ring for `depth` writes and registers the regions with it. The second value says why
    /// the regions are not registered, if they are not.
    pub(super) fn new(
        depth: usize,
        regions: &[Arc<Region>],
    ) -> Result<(Self, Option<String>), Unavailable> {
        probe()?;
        let entries = u32::try_from(depth).unwrap_or(u32::MAX);
        let (ring, single_issuer) = build(entries).map_err(refused)?;
        let mut uring = Self {
            ring,
            slots: (0..depth).map(|_| None).collect(),
            free: (0..depth).rev().collect(),
            registered: Vec::new(),
            owner: None,
            single_issuer,
        };
        let unregistered = uring.register(regions).err();
        Ok((uring, unregistered))
    }

    fn register(&mut self, regions: &[Arc<Region>]) -> Result<(), String> {
        let mut parts = Vec::new();
        let mut registered = Vec::new();
        for region in regions {
            let chunk_bytes = region.chunk_bytes();
            let part_bytes = (REGISTERED_MAX_BYTES / chunk_bytes).max(1) * chunk_bytes;
            let first_index = u16::try_from(parts.len()).map_err(|_| "too many regions")?;
            for offset in (0..region.bytes()).step_by(part_bytes) {
                parts.push(libc::iovec {
                    iov_base: region.base().wrapping_add(offset).cast(),
                    iov_len: part_bytes.min(region.bytes() - offset),
                });
            }
            registered.push(Registered { region: Arc::clone(region), first_index, part_bytes });
        }
        if parts.is_empty() {
            return Err("no memory was named".to_owned());
        }
        if parts.len() > REGISTERED_MAX {
            return Err(format!("{} parts are more than the kernel takes", parts.len()));
        }
        // SAFETY: each part lies within a region that `self.registered` keeps mapped for longer
        // than the ring lives (see `Drop` and the order of the fields).
        unsafe { self.ring.submitter().register_buffers(&parts) }.map_err(|error| {
            let limited = error.raw_os_error() == Some(libc::ENOMEM);
            let hint = if limited { " (the limit of locked memory, ulimit -l)" } else { "" };
            format!("{error}{hint}")
        })?;
        self.registered = registered;
        Ok(())
    }

    /// Hands the operation to the kernel. The caller sees to it that fewer than `depth` are in
    /// flight.
    pub(super) fn submit(&mut self, operation: Operation) -> Result<(), Refused> {
        if let Err(error) = self.claim() {
            return Err(operation.refused(error));
        }
        let busy = || Error::new("finding a free entry of the ring", Errno::BUSY);
        let Some(slot) = self.free.pop() else { return Err(operation.refused(busy())) };
        let Some(place) = self.slots.get_mut(slot) else { return Err(operation.refused(busy())) };
        *place = Some(operation);
        if let Err(error) = self.push(slot) {
            return self.vacate(slot).map_or(Ok(()), |operation| Err(operation.refused(error)));
        }
        // From here on the ring has the write, also if the kernel takes it only at a later call:
        // what stands in the way is reported by `complete`, which tries again.
        let _ = self.flush();
        Ok(())
    }

    /// Makes the calling thread the ring's owner, or says that another one is.
    fn claim(&mut self) -> Result<()> {
        if !self.single_issuer {
            return Ok(());
        }
        let caller = thread::current().id();
        match self.owner {
            Some(owner) if owner == caller => Ok(()),
            Some(_) => {
                let error = Error::new("writing through a ring of another thread", Errno::EXIST);
                Err(error.remedy("use one writer per thread"))
            }
            None => {
                let enabled = self.ring.submitter().register_enable_rings();
                enabled.map_err(|source| Error::new("enabling the ring", source))?;
                self.owner = Some(caller);
                Ok(())
            }
        }
    }

    fn entry(&self, operation: &Operation, slot: usize) -> squeue::Entry {
        let rest = operation.rest();
        let fd = Fd(operation.file().file().as_raw_fd());
        // The kernel writes less than 2 GiB at a time; the rest follows as after any short write.
        let length = rest.len().min(1 << 30) as u32;
        let entry = match self.registered_index(operation.buffer()) {
            Some(index) => opcode::WriteFixed::new(fd, rest.as_ptr(), length, index)
                .offset(operation.rest_offset())
                .build(),
            None => opcode::Write::new(fd, rest.as_ptr(), length)
                .offset(operation.rest_offset())
                .build(),
        };
        entry.user_data(slot as u64)
    }

    fn registered_index(&self, buffer: &Buffer) -> Option<u16> {
        let region = self.registered.iter().find(|it| Arc::ptr_eq(&it.region, buffer.region()))?;
        let part = u16::try_from(buffer.offset() / region.part_bytes).ok()?;
        region.first_index.checked_add(part)
    }

    /// Queues the rest of the write in `slot`.
    fn push(&mut self, slot: usize) -> Result<()> {
        let refused = || Error::new("queueing a write", Errno::BUSY);
        let operation = self.slots.get(slot).and_then(Option::as_ref).ok_or_else(refused)?;
        let entry = self.entry(operation, slot);
        // SAFETY: the entry points into a buffer that is owned by the operation in its slot, and
        // names the file that the operation keeps open. The operation leaves its slot only after
        // the kernel has reported its end, or is leaked by `Drop`.
        unsafe { self.ring.submission().push(&entry) }.map_err(|_| refused())
    }

    /// Offers the kernel what is queued. Its being busy is no error: the entries stay queued.
    fn flush(&mut self) -> Result<()> {
        match self.ring.submit() {
            Ok(_) => Ok(()),
            Err(error) if is_transient(&error) => Ok(()),
            Err(error) => Err(Error::new("submitting writes to io_uring", error)),
        }
    }

    /// Writes that have not been given back.
    fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Collects what has been written; waits for the first as `wait` says.
    pub(super) fn complete(&mut self, wait: Wait, out: &mut Vec<Completion>) -> Result<()> {
        let before = out.len();
        loop {
            self.reap(out);
            let enough = out.len() > before || self.in_flight() == 0;
            if enough || matches!(wait, Wait::Poll) {
                // Submits what short writes left over; the call also lets the kernel post
                // completions that it holds back for this thread (`IORING_SETUP_COOP_TASKRUN`).
                self.flush()?;
                self.reap(out);
                return Ok(());
            }
            if !self.wait(wait)? {
                self.reap(out);
                return Ok(());
            }
        }
    }

    /// Waits for one completion; false when the time is up.
    fn wait(&mut self, wait: Wait) -> Result<bool> {
        let mut limit = Timespec::new();
        let mut arguments = SubmitArgs::new();
        if let Wait::AtMost(deadline) = wait {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return self.flush().map(|()| false);
            }
            limit = limit.sec(left.as_secs()).nsec(left.subsec_nanos());
            arguments = arguments.timespec(&limit);
        }
        match self.ring.submitter().submit_with_args(1, &arguments) {
            Ok(_) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::ETIME) => Ok(false),
            Err(error) if is_transient(&error) => Ok(true),
            Err(error) => Err(Error::new("waiting for writes by io_uring", error)),
        }
    }

    /// Takes the kernel's completions; queues the rest of those that were short.
    fn reap(&mut self, out: &mut Vec<Completion>) {
        loop {
            let Some(entry) = self.ring.completion().next() else { return };
            let Ok(slot) = usize::try_from(entry.user_data()) else { continue };
            let Some(operation) = self.slots.get_mut(slot).and_then(Option::as_mut) else {
                continue;
            };
            let outcome = match usize::try_from(entry.result()) {
                Ok(bytes) => Ok(bytes),
                Err(_) => Err(io::Error::from_raw_os_error(entry.result().saturating_neg())),
            };
            let result = match operation.attempted(outcome) {
                Step::Done(result) => result,
                Step::Again => match self.push(slot) {
                    Ok(()) => continue,
                    Err(error) => Err(error),
                },
            };
            if let Some(operation) = self.vacate(slot) {
                out.push(operation.completion(result));
            }
        }
    }

    /// Takes a write that the kernel does not have out of its slot.
    fn vacate(&mut self, slot: usize) -> Option<Operation> {
        let operation = self.slots.get_mut(slot)?.take();
        self.free.push(slot);
        operation
    }

    /// Waits for a completion without submitting, which any thread may do.
    fn wait_only(&self) -> io::Result<()> {
        let flags = EnterFlags::GETEVENTS.bits();
        // SAFETY: no argument is passed and nothing is submitted.
        let waited = unsafe { self.ring.submitter().enter::<libc::sigset_t>(0, 1, flags, None) };
        match waited {
            Ok(_) => Ok(()),
            Err(error) if is_transient(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Writes that the kernel has taken and not ended.
    fn in_kernel(&mut self) -> usize {
        let queued = self.ring.submission().len();
        self.in_flight().saturating_sub(queued)
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        let mut ended = Vec::new();
        let mut stuck = false;
        while !stuck && self.in_flight() > 0 {
            // Fails in a thread that does not own the ring; what was only queued is then given up.
            let flushed = self.flush().is_ok();
            if self.in_kernel() > 0 {
                stuck = self.wait_only().is_err();
            } else if !flushed {
                break;
            }
            self.reap(&mut ended);
        }
        if stuck {
            // The kernel may still read these buffers: rather lose their memory than free it.
            self.slots.drain(..).flatten().for_each(std::mem::forget);
            self.registered.drain(..).for_each(std::mem::forget);
        }
    }
}

/// Tries one empty operation on a ring of its own: sandboxes let some of the calls through only.
fn probe() -> Result<(), Unavailable> {
    let mut ring = IoUring::new(2).map_err(refused)?;
    if !ring.params().is_feature_ext_arg() {
        let source = io::Error::from_raw_os_error(libc::ENOSYS);
        let reason =
            "this kernel's io_uring cannot wait with a limit (needs Linux 5.11)".to_owned();
        return Err(Unavailable { reason, source });
    }
    // SAFETY: an empty operation refers to no memory and no file.
    let pushed = unsafe { ring.submission().push(&opcode::Nop::new().build()) };
    pushed.map_err(|_| refused(io::Error::from_raw_os_error(libc::EBUSY)))?;
    loop {
        match ring.submit_and_wait(1) {
            Ok(_) => return Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(error) => return Err(refused(error)),
        }
    }
}

/// The best set-up that this kernel knows: Linux 6.0, else plain. The flag says whether the ring
/// must be enabled, by and for one thread.
fn build(entries: u32) -> io::Result<(IoUring, bool)> {
    let mut best = IoUring::builder();
    best.dontfork().setup_single_issuer().setup_coop_taskrun().setup_r_disabled();
    match best.build(entries) {
        Ok(ring) => Ok((ring, true)),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            IoUring::builder().dontfork().build(entries).map(|ring| (ring, false))
        }
        Err(error) => Err(error),
    }
}

fn refused(source: io::Error) -> Unavailable {
    let cause = match source.raw_os_error() {
        Some(libc::EPERM) => {
            "io_uring is forbidden here (sysctl kernel.io_uring_disabled, or a sandbox)"
        }
        Some(libc::EACCES) => "io_uring is forbidden here (security policy)",
        Some(libc::ENOSYS) => "this kernel has no io_uring, or a sandbox hides it",
        Some(libc::ENOMEM) => "too little memory may be locked for a ring (ulimit -l)",
        _ => "io_uring failed",
    };
    Unavailable { reason: cause.to_owned(), source }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}
