//! Opening: what is wrong is named, what was let go can be had again, memory is shared.

use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use sys::Kind;
use sys::packet::PacketRing;
use sys::xsk::{BusyPoll, CopyMode, Socket, SocketConfig, Umem};
use testing::Outcome;

use super::support::*;
use crate::packet::support::{PATIENCE, numbered, plug_cable, quick_ring, stop_and_collect};

pub fn opening_names_what_is_wrong() {
    plug_cable();
    let refused = |config: &SocketConfig| Socket::open(&umem(), config).unwrap_err();

    let zero_copy = SocketConfig { mode: CopyMode::ZeroCopy, ..sending("tx0") };
    let error = refused(&zero_copy);
    assert_eq!(error.kind(), Kind::Unsupported, "{error}");
    assert!(error.to_string().contains("tx0 queue 0 in zero-copy"), "{error}");

    let beyond = SocketConfig { queue: 1, ..sending("tx0") };
    let error = refused(&beyond);
    assert_eq!(error.kind(), Kind::Invalid, "{error}");
    assert!(error.to_string().contains("ethtool -l tx0"), "{error}");
}

/// The kernel takes a socket apart some time after it was closed.
pub fn a_queue_that_was_let_go_can_be_had_again() {
    plug_cable();
    for _ in 0..20 {
        let umem = umem();
        let both = SocketConfig { rx_entries: 256, ..sending("tx0") };
        assert!(!open(&umem, &both).is_zero_copy().unwrap());
    }
}

pub fn a_queue_in_use_is_named() {
    plug_cable();
    let held = open(&umem(), &sending("tx0"));
    let begun = Instant::now();
    let error = Socket::open(&umem(), &receiving("tx0")).unwrap_err();
    assert_eq!(error.kind(), Kind::Busy, "{error}");
    assert!(error.to_string().contains("another AF_XDP socket has this queue"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(10), "it is not waited for without end");
    drop(held);
}

/// The limit holds for users without CAP_IPC_LOCK over the machine, as this thread is from here on.
pub fn too_little_lockable_memory_is_named() -> Outcome {
    plug_cable();
    let mut sets = capabilities(None)?;
    sets.effective.remove(CapabilitySet::IPC_LOCK);
    set_capabilities(None, sets)?;
    let before = getrlimit(Resource::Memlock);
    setrlimit(Resource::Memlock, Rlimit { current: Some(64 << 10), maximum: before.maximum })?;
    let small = Socket::open(&umem(), &sending("tx0"));
    setrlimit(Resource::Memlock, before)?;
    // Where the hard limit allows it, the soft one was raised.
    small?;
    let huge = Socket::open(&Umem::new(16_384, 4096)?, &sending("rx0"));
    match huge {
        Err(error) => {
            assert_eq!(error.kind(), Kind::Limit, "{error}");
            assert!(error.to_string().contains("ulimit -l"), "{error}");
            Ok(())
        }
        Ok(_) => testing::skip("this process may lock as much memory as it likes"),
    }
}

pub fn busy_polling_is_as_it_was_set() -> Outcome {
    plug_cable();
    let wanted = BusyPoll { time_us: 50, budget_packets: 32 };
    let config = SocketConfig { busy_poll: Some(wanted), ..receiving("rx0") };
    match Socket::open(&umem(), &config) {
        Ok(socket) => assert_eq!(socket.busy_poll_us()?, Some(50)),
        Err(error) if error.kind() == Kind::Permission => return testing::skip(error),
        Err(error) => return Err(error.into()),
    }
    assert_eq!(open(&umem(), &receiving("tx0")).busy_poll_us()?, None);
    Ok(())
}

/// Two sockets on two interfaces send from one memory; when both are gone, all chunks are free.
pub fn two_sockets_share_one_memory() {
    plug_cable();
    let mut ring = PacketRing::open(&quick_ring()).unwrap();
    ring.start(&[]).unwrap();
    let umem = umem();
    let mut first = open(&umem, &sending("tx0"));
    let second = open(&umem, &sending("rx0"));
    assert_eq!(umem.free_chunks() as u32, CHUNKS - 2 * 256);
    let mut transmitter = first.transmitter.take().unwrap();
    let frames: Vec<_> = (0..100).map(|n| numbered(n, 60)).collect();
    let (sent, stopped) = transmitter.send(frames.iter().map(Vec::as_slice)).unwrap();
    assert_eq!((sent, stopped), (100, None));
    assert!(transmitter.drain(PATIENCE).unwrap());
    assert_eq!(stop_and_collect(&mut ring, 100).len(), 100);
    drop((first, transmitter, second));
    assert_eq!(umem.free_chunks() as u32, CHUNKS);
}
