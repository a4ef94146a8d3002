//! What the tests share: two namespaces with a veth pair between them.

use std::time::{Duration, Instant};

use port::conformance::Medium;
use port::packet::{PacketRx, PacketTx, RxOptions};
use port::xdp::{XdpRx, XdpTx};
use port::{Batch, FrameMeta, Result, RxQueue, TxQueue};
use sys::namespace::Namespace;
use sys::veth::{VethConfig, VethPair};
use testing::Outcome;

/// Long enough for any machine; no test waits for it unless something is broken.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct Wire {
    pub here: Namespace,
    pub there: Namespace,
    pub config: VethConfig,
    pub tx_by_xdp: bool,
    pub rx_by_xdp: bool,
}

/// Small enough for a test that makes many of them.
pub fn options() -> RxOptions {
    RxOptions { ring_bytes: 8 << 20, ..RxOptions::default() }
}

impl Wire {
    pub fn new(config: VethConfig) -> Self {
        let (here, there) = (Namespace::create().unwrap(), Namespace::create().unwrap());
        VethPair::create(&here, "here", &there, "there", &config).unwrap();
        Self { here, there, config, tx_by_xdp: true, rx_by_xdp: true }
    }

    pub fn tx(&self) -> XdpTx {
        self.here.run(|| XdpTx::open("here", None, None)).unwrap().unwrap()
    }

    pub fn packet_tx(&self) -> PacketTx {
        self.here.run(|| PacketTx::open("here")).unwrap().unwrap()
    }

    pub fn rx(&self, options: &RxOptions) -> XdpRx {
        self.there.run(|| XdpRx::open("there", None, options, None)).unwrap().unwrap()
    }
}

impl Medium for Wire {
    fn open_tx(&mut self) -> Result<Box<dyn TxQueue>> {
        Ok(if self.tx_by_xdp { Box::new(self.tx()) } else { Box::new(self.packet_tx()) })
    }
    fn open_rx(&mut self) -> Result<Box<dyn RxQueue>> {
        if self.rx_by_xdp {
            return Ok(Box::new(self.rx(&options())));
        }
        let open = || PacketRx::open("there", &options());
        Ok(Box::new(self.there.run(open).unwrap()?))
    }
    fn frame_bytes_max(&self) -> usize {
        self.config.mtu_bytes as usize + 14
    }
}

/// Skips a test where programs for the kernel cannot be loaded, as without root.
pub fn needs_programs() -> Outcome {
    match sys::bpf::Support::probe().loading {
        Ok(()) => Ok(()),
        Err(error) => testing::skip(error),
    }
}

/// A frame with its number.
pub fn numbered(number: u32, length: usize) -> Vec<u8> {
    let mut data = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
    data.extend_from_slice(&number.to_be_bytes());
    data.resize(length, number as u8);
    data
}

pub fn number_of(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[14..18].try_into().unwrap())
}

/// Sends frames with the numbers `from..to`.
pub fn send(tx: &mut impl TxQueue, from: u32, to: u32) {
    let begun = Instant::now();
    let mut batch = Batch::new(64);
    let mut next = from;
    while next < to || !batch.is_empty() {
        while next < to && !batch.is_full() {
            assert!(batch.push(&numbered(next, 60), FrameMeta::local(60)));
            next += 1;
        }
        if tx.transmit(&mut batch).unwrap() == 0 {
            tx.wait(Duration::from_millis(10)).unwrap();
        }
        assert!(begun.elapsed() < PATIENCE, "frames leave");
    }
    assert!(tx.flush(PATIENCE).unwrap());
}

/// Takes what there is until the queue is finished; gives the numbers of the frames.
pub fn drain(rx: &mut impl RxQueue) -> Vec<u32> {
    let mut batch = Batch::default();
    let begun = Instant::now();
    let mut numbers = Vec::new();
    while !rx.is_finished().unwrap() {
        assert!(begun.elapsed() < PATIENCE, "a stopped queue finishes");
        if rx.receive(&mut batch).unwrap() == 0 {
            rx.wait(Duration::from_millis(5)).unwrap();
        }
        numbers.extend(batch.frames().map(|frame| number_of(frame.data)));
    }
    numbers
}
