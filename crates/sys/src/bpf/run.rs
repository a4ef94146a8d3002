//! Trial runs: a program is given frames without an interface, or makes frames that are real
//! (`BPF_PROG_TEST_RUN`, bpf_prog_test_run_xdp in net/bpf/test_run.c).

use std::io;

use super::call::{self, call};
use super::{Program, rights};
use crate::{Error, Kind, Result};

/// Frames are treated as if they had arrived: sent, redirected, received (`BPF_F_TEST_XDP_LIVE_FRAMES`).
const LIVE_FRAMES: u32 = 1 << 1;
/// Frames of one pass of a live run, at most (`TEST_XDP_MAX_BATCH`).
pub(super) const BATCH_FRAMES_MAX: u32 = 256;

/// What an XDP program is told about a frame, `struct xdp_md`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct RawContext {
    data: u32,
    data_end: u32,
    data_meta: u32,
    ingress_interface: u32,
    rx_queue: u32,
    egress_interface: u32,
}

/// Where a frame is said to have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TestContext {
    /// Number of the interface in the calling thread's namespace; 0 for the loopback.
    pub interface_index: u32,
    /// Its receive queue.
    pub rx_queue: u32,
}

impl TestContext {
    /// `None` where the kernel's own choice, the first queue of the loopback, is meant.
    fn raw(self, frame_bytes: u32) -> Option<RawContext> {
        (self != Self::default()).then_some(RawContext {
            data_end: frame_bytes,
            ingress_interface: self.interface_index,
            rx_queue: self.rx_queue,
            ..RawContext::default()
        })
    }
}

/// What a program made of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestRun {
    /// What it returned: for XDP 0 aborted, 1 drop, 2 pass, 3 transmit, 4 redirect.
    pub verdict: u32,
    /// Bytes of the frame afterwards.
    pub frame_bytes: usize,
    /// Mean time of one run in nanoseconds.
    pub duration_ns: u32,
}

/// Frames that a program is to make from a first one.
#[derive(Debug, Clone, Copy)]
pub struct LiveRun<'a> {
    /// What each of them is before the program sees it: 14 bytes to about 3,400, they have to fit in a page.
    pub frame: &'a [u8],
    /// Where they are said to have arrived: what the program lets pass is received there.
    pub context: TestContext,
    /// How many.
    pub count: u32,
    /// How many go through the program and out at a time, 1 to 256; 0 leaves it to the kernel (64).
    pub batch_frames: u32,
}

/// How a live run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Live {
    /// All frames went through the program.
    Complete,
    /// A signal arrived: some of them did, as the program's own counters tell.
    Interrupted,
}

/// `BPF_PROG_TEST_RUN`.
#[repr(C)]
#[derive(Default)]
struct Trial {
    program: u32,
    verdict: u32,
    in_bytes: u32,
    out_bytes: u32,
    input: u64,
    output: u64,
    repeat: u32,
    duration_ns: u32,
    context_in_bytes: u32,
    context_out_bytes: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch: u32,
    padding: u32,
}

impl Program {
    /// Gives it a frame `repeat` times (at least once), in this thread. `after` gets the frame as the
    /// program left it; if it is empty, nothing is copied.
    ///
    /// A repeated run sees the frame as the run before left it.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for frames shorter than 14 bytes, or an interface or queue that is not there;
    /// [`Kind::NoSpace`] when `after` is too short; [`Kind::Permission`].
    pub fn test_run(
        &self,
        frame: &[u8],
        context: TestContext,
        repeat: u32,
        after: &mut [u8],
    ) -> Result<TestRun> {
        let mut trial = Trial { repeat, ..self.trial(frame) };
        let raw = context.raw(trial.in_bytes);
        give_context(&mut trial, raw.as_ref());
        if !after.is_empty() {
            trial.output = after.as_mut_ptr().addr() as u64;
            trial.out_bytes = u32::try_from(after.len()).unwrap_or(u32::MAX);
        }
        // SAFETY: the structure is the beginning of the command's part of `union bpf_attr`; the kernel reads
        // the frame and the context, and writes to `after`, in the lengths given.
        unsafe { call(call::PROG_TEST_RUN, &mut trial) }
            .map_err(|source| self.not_run(frame.len(), source))?;
        Ok(TestRun {
            verdict: trial.verdict,
            frame_bytes: trial.out_bytes as usize,
            duration_ns: trial.duration_ns,
        })
    }

    /// Makes frames that are real, in this thread and on its CPU. It takes tens of milliseconds before the
    /// first and after the last one: make many at a time. The kernel does not restore a frame between
    /// runs: whatever the program changed in it may or may not be there when its memory comes around again,
    /// so that a program writes all bytes that vary, each time.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for frames shorter than 14 bytes or longer than a page has room for, a batch above 256, or
    /// an interface or queue that is not there; [`Kind::Unsupported`] before Linux 5.18;
    /// [`Kind::Permission`].
    pub fn run_live(&self, run: &LiveRun<'_>) -> Result<Live> {
        let mut trial = Trial {
            repeat: run.count,
            batch: run.batch_frames,
            flags: LIVE_FRAMES,
            ..self.trial(run.frame)
        };
        let raw = run.context.raw(trial.in_bytes);
        give_context(&mut trial, raw.as_ref());
        // SAFETY: the structure is the beginning of the command's part of `union bpf_attr`; the kernel reads
        // the frame and the context in the lengths given, and writes nothing but the structure.
        match unsafe { call(call::PROG_TEST_RUN, &mut trial) } {
            Ok(_) => Ok(Live::Complete),
            Err(source) if source.raw_os_error() == Some(libc::EINTR) => Ok(Live::Interrupted),
            Err(source) if run.batch_frames > BATCH_FRAMES_MAX => Err(self
                .not_run(run.frame.len(), source)
                .with_kind(Kind::Invalid)
                .remedy(format!("choose batches of at most {BATCH_FRAMES_MAX} frames"))),
            Err(source) => Err(self.not_run(run.frame.len(), source)),
        }
    }

    fn trial(&self, frame: &[u8]) -> Trial {
        Trial {
            program: self.number(),
            // The kernel takes a few pages at most and refuses what is longer by itself.
            in_bytes: u32::try_from(frame.len()).unwrap_or(u32::MAX),
            input: frame.as_ptr().addr() as u64,
            ..Trial::default()
        }
    }

    fn not_run(&self, frame_bytes: usize, source: io::Error) -> Error {
        let action =
            format!("running the program {} on a frame of {frame_bytes} bytes", self.name());
        let error = Error::new(action, source);
        match error.errno() {
            Some(libc::EPERM) => rights::explained(error),
            Some(libc::EINVAL) => error.remedy(
                "frames have 14 bytes at least, and live ones fit in a page (about 3,400 bytes); interface \
                 and queue must exist; live frames need Linux 5.18",
            ),
            _ => error,
        }
    }
}

fn give_context(trial: &mut Trial, context: Option<&RawContext>) {
    if let Some(context) = context {
        trial.context_in = std::ptr::from_ref(context).addr() as u64;
        trial.context_in_bytes = size_of::<RawContext>() as u32;
    }
}
