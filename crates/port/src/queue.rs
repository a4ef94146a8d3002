//! The two verbs of a port: receive and transmit, in batches.

use std::time::Duration;

use crate::batch::Batch;
use crate::counters::{RxCounters, TxCounters};
use crate::error::Result;

/// How a port is really served: printed at the start of a run and stored in its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortDescription {
    /// The specification that opens this port again.
    pub spec: String,
    /// The mechanism in use, such as `AF_PACKET TPACKET_V3, 64 blocks of 1 MiB`.
    pub mechanism: String,
    /// Frames up to this many bytes without FCS pass.
    pub frame_bytes_max: usize,
    /// What helps where longer ones are to pass, as an imperative; `None` where nothing does.
    pub longer_frames: Option<String>,
    /// Link type of the frames, as pcap numbers them (1 = Ethernet).
    pub link_type: u16,
    /// Speed of the link in bit/s where the device states one.
    pub speed_bps: Option<u64>,
}

/// Something that happened to a port while it was in use, and that does not end the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The interface went down; frames stop until it comes back.
    Down,
    /// The interface is gone; it is looked for under the same name.
    Gone,
    /// The interface is up again.
    Up,
}

/// A queue that frames come from. Used by one thread at a time.
///
/// Life: opened (nothing delivered yet), [`start`](Self::start), any number of
/// [`receive`](Self::receive), [`stop`](Self::stop), `receive` until
/// [`is_finished`](Self::is_finished), then [`counters`](Self::counters) add up to the packet.
pub trait RxQueue: Send {
    /// Begins: the first frame that arrives from now on is delivered.
    fn start(&mut self) -> Result<()>;

    /// Replaces the content of `batch` by what is there, up to 64 frames, and returns how many.
    /// Never blocks. 0 means nothing now, or the end: see [`is_finished`](Self::is_finished).
    fn receive(&mut self, batch: &mut Batch) -> Result<usize>;

    /// Sleeps until a frame may be there, at most `timeout`.
    fn wait(&mut self, timeout: Duration) -> Result<()>;

    /// Ends the input: what arrives from now on is not delivered. What is in the ring still is.
    fn stop(&mut self) -> Result<()>;

    /// Whether nothing can come any more: stopped and drained, or the end of a file.
    fn is_finished(&mut self) -> Result<bool>;

    /// Whether the time that it was given is over: a port that takes nothing more is then not waited
    /// for.
    fn is_expired(&mut self) -> bool {
        false
    }

    /// The account so far.
    fn counters(&mut self) -> Result<RxCounters>;

    /// What happened since the last call, oldest first, one at a time.
    fn next_event(&mut self) -> Option<Event> {
        None
    }

    /// How this port is served.
    fn describe(&self) -> PortDescription;
}

/// A queue that frames go to. Used by one thread at a time.
pub trait TxQueue: Send {
    /// Takes frames from the front of `batch` and returns how many; what did not fit stays in it.
    /// Never blocks. May leave a recycled, empty memory in `batch`.
    fn transmit(&mut self, batch: &mut Batch) -> Result<usize>;

    /// Whether a frame of this length and beginning can leave here at all. A batch with one that
    /// cannot is an error.
    fn takes(&self, _frame: &[u8]) -> bool {
        true
    }

    /// Sleeps until frames may be accepted again, at most `timeout`.
    fn wait(&mut self, timeout: Duration) -> Result<()>;

    /// Makes sure that all accepted frames have left, at most for `timeout`. Returns whether so.
    fn flush(&mut self, timeout: Duration) -> Result<bool>;

    /// How many bytes were taken so far by the one who decides when frames leave: the reader of a pipe.
    /// He is waited for until the run is told to end, and then for as long as he goes on. `None` where
    /// frames leave by themselves.
    fn taken_bytes(&self) -> Option<u64> {
        None
    }

    /// Gives up what was accepted and has not left: from now on it is lost, and counted.
    fn abandon(&mut self) {}

    /// The account so far. After [`flush`](Self::flush) the device's figures are final.
    fn counters(&mut self) -> Result<TxCounters>;

    /// What happened since the last call, oldest first, one at a time.
    fn next_event(&mut self) -> Option<Event> {
        None
    }

    /// How this port is served.
    fn describe(&self) -> PortDescription;
}

impl<Q: RxQueue + ?Sized> RxQueue for Box<Q> {
    fn start(&mut self) -> Result<()> {
        (**self).start()
    }
    fn receive(&mut self, batch: &mut Batch) -> Result<usize> {
        (**self).receive(batch)
    }
    fn wait(&mut self, timeout: Duration) -> Result<()> {
        (**self).wait(timeout)
    }
    fn stop(&mut self) -> Result<()> {
        (**self).stop()
    }
    fn is_finished(&mut self) -> Result<bool> {
        (**self).is_finished()
    }
    fn is_expired(&mut self) -> bool {
        (**self).is_expired()
    }
    fn counters(&mut self) -> Result<RxCounters> {
        (**self).counters()
    }
    fn next_event(&mut self) -> Option<Event> {
        (**self).next_event()
    }
    fn describe(&self) -> PortDescription {
        (**self).describe()
    }
}

impl<Q: TxQueue + ?Sized> TxQueue for Box<Q> {
    fn transmit(&mut self, batch: &mut Batch) -> Result<usize> {
        (**self).transmit(batch)
    }
    fn takes(&self, frame: &[u8]) -> bool {
        (**self).takes(frame)
    }
    fn wait(&mut self, timeout: Duration) -> Result<()> {
        (**self).wait(timeout)
    }
    fn flush(&mut self, timeout: Duration) -> Result<bool> {
        (**self).flush(timeout)
    }
    fn taken_bytes(&self) -> Option<u64> {
        (**self).taken_bytes()
    }
    fn abandon(&mut self) {
        (**self).abandon();
    }
    fn counters(&mut self) -> Result<TxCounters> {
        (**self).counters()
    }
    fn next_event(&mut self) -> Option<Event> {
        (**self).next_event()
    }
    fn describe(&self) -> PortDescription {
        (**self).describe()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::fault::{Faults, FaultyRx, FaultyTx};
    use crate::fit::FittingTx;
    use crate::limit::LimitedRx;
    use crate::memory;
    use crate::null::{FRAME_BYTES_MAX, Null};
    use crate::snap::SnapRx;
    use crate::tap::Tap;

    /// A queue whose time is over.
    struct Expired(Null);

    impl RxQueue for Expired {
        fn start(&mut self) -> Result<()> {
            Ok(())
        }
        fn receive(&mut self, _batch: &mut Batch) -> Result<usize> {
            Ok(0)
        }
        fn wait(&mut self, _timeout: Duration) -> Result<()> {
            Ok(())
        }
        fn stop(&mut self) -> Result<()> {
            Ok(())
        }
        fn is_finished(&mut self) -> Result<bool> {
            Ok(true)
        }
        fn is_expired(&mut self) -> bool {
            true
        }
        fn counters(&mut self) -> Result<RxCounters> {
            Ok(RxCounters::default())
        }
        fn describe(&self) -> PortDescription {
            RxQueue::describe(&self.0)
        }
    }

    #[test]
    fn wrapping_queues_say_that_the_time_is_over() {
        let expired = || Expired(Null::default());
        assert!(Tap::new(expired(), |_: crate::FrameRef<'_>| ()).is_expired());
        assert!(FaultyRx::new(expired(), Faults::default()).is_expired());
        assert!(LimitedRx::new(expired(), Some(1)).is_expired());
        assert!(SnapRx::new(expired(), 60).is_expired());
        assert!((Box::new(expired()) as Box<dyn RxQueue>).is_expired());
        assert!(!RxQueue::is_expired(&mut Null::default()));
    }

    #[test]
    fn wrapping_queues_say_what_the_port_takes() {
        fn check(tx: &impl TxQueue) {
            assert!(
                tx.takes(&vec![0; FRAME_BYTES_MAX]) && !tx.takes(&vec![0; FRAME_BYTES_MAX + 1])
            );
        }
        let ring = || memory::pair("takes", 1).0;
        check(&Tap::new(ring(), |_: crate::FrameRef<'_>| ()));
        check(&FaultyTx::new(ring(), Faults::default()));
        check(&FittingTx::new(ring()));
        check(&(Box::new(ring()) as Box<dyn TxQueue>));
    }

    /// A queue whose reader took 7 bytes, and that notes that it was given up.
    struct Read(Arc<AtomicBool>);

    impl TxQueue for Read {
        fn transmit(&mut self, _batch: &mut Batch) -> Result<usize> {
            Ok(0)
        }
        fn wait(&mut self, _timeout: Duration) -> Result<()> {
            Ok(())
        }
        fn flush(&mut self, _timeout: Duration) -> Result<bool> {
            Ok(false)
        }
        fn taken_bytes(&self) -> Option<u64> {
            Some(7)
        }
        fn abandon(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
        fn counters(&mut self) -> Result<TxCounters> {
            Ok(TxCounters::default())
        }
        fn describe(&self) -> PortDescription {
            TxQueue::describe(&Null::default())
        }
    }

    #[test]
    fn wrapping_queues_say_what_the_reader_took_and_give_up() {
        fn check<Q: TxQueue>(wrap: impl Fn(Read) -> Q) {
            let is_given_up = Arc::new(AtomicBool::new(false));
            let mut queue = wrap(Read(is_given_up.clone()));
            assert_eq!(queue.taken_bytes(), Some(7));
            queue.abandon();
            assert!(is_given_up.load(Ordering::Relaxed));
        }
        check(|read| Tap::new(read, |_: crate::FrameRef<'_>| ()));
        check(|read| FaultyTx::new(read, Faults::default()));
        check(FittingTx::new);
        check(|read| Box::new(read) as Box<dyn TxQueue>);
    }
}
