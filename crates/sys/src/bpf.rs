//! Programs for the kernel's own machine, eBPF: maps, loading, attaching, trial runs (bpf(2)).
//!
//! Vocabulary: a *program* is a list of [`Instruction`]s that the kernel's *verifier* has accepted; a *map*
//! is a table that program and process share; a *link* holds a program on an interface. All of them
//! are file descriptors: the kernel takes a program off its interface when the last descriptor of the
//! link is closed, however the process ends. *XDP* is the place where a driver hands a received frame
//! to a program before the kernel makes a socket buffer of it: *native* in the driver, *generic* after
//! it, *hardware* on the card.
//!
//! Instructions name maps by their place in the list that is given along with them; whoever writes
//! the instructions needs no descriptor.
//!
//! A program that is there already is never replaced: [`XdpLink::attach`] says which one it is and which
//! process holds it.
//!
//! Limits: interfaces are those of the calling thread's network namespace. Loading XDP programs is a
//! right over the machine (`CAP_BPF` and `CAP_NET_ADMIN` in the initial user namespace), which no user
//! namespace gives. Links on XDP need Linux 5.9, live frames 5.18. Reference: include/uapi/linux/bpf.h.

mod call;
mod counters;
mod info;
mod instruction;
mod link;
mod map;
mod occupant;
mod program;
mod redirected;
mod rights;
mod run;
mod shared;

pub use counters::possible_cpus;
pub use info::ProgramInfo;
pub use instruction::Instruction;
pub use link::{XdpAttachment, XdpLink, XdpMode};
pub use map::{Map, MapKind, MapSpec, Update};
pub use occupant::Occupant;
pub use program::{Binding, LoadError, Program, ProgramKind, ProgramSpec};
pub use redirected::takes_redirected;
pub use rights::{Jit, Support};
pub use run::{Live, LiveRun, TestContext, TestRun};
pub use shared::SharedArray;
