//! Receiving by a program in the kernel: it stands on the interface as long as the run lasts, counts and
//! measures; here its figures are read, and its clock is kept right.

mod report;

use std::io;
use std::time::{Duration, Instant};

use ebpf::Verdict;
use ebpf::program::receive::{Figures, Job, State};
use filter::Program;
use port::{Reason, RxCounters};
use sys::Kind;
use sys::bpf::{Binding, XdpLink, XdpMode};
use sys::clock::{Clock, ClockReport};
use sys::ethtool::Ethtool;
use sys::link::{Link, LinkStatistics, LinkStatisticsReader};
use sys::namespace::Namespace;
use sys::packet::Promiscuity;

use crate::error::Result;
use crate::live::Live;
use crate::stages::meter::MeterReport;
use crate::stop::Stop;

/// Between two looks at the figures, and where they are counted out.
const LOOK: Duration = Duration::from_millis(20);
const LOOK_AT_COUNT: Duration = Duration::from_millis(1);
/// Between two looks at clock and interface.
const KEEP: Duration = Duration::from_millis(100);
/// Between two readings that are to agree, and how many there are at most.
const QUIET: Duration = Duration::from_millis(2);
const READINGS_MAX: u32 = 100;

/// What is to be received.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Frames that are wanted; all without it.
    pub filter: Option<Program>,
    /// How many of them; all without it.
    pub count: Option<u64>,
    /// Whether frames that were counted go on to the host, as all others do.
    pub passes_counted: bool,
    /// Receive frames that are addressed to others.
    pub promiscuous: bool,
}

/// A program that receives.
#[derive(Debug)]
pub struct Receiving {
    state: State,
    link: XdpLink,
    _promiscuity: Option<Promiscuity>,
    clock: Clock,
    count: Option<u64>,
    reader: LinkStatisticsReader,
    before: LinkStatistics,
    begun: Instant,
}

/// What was received.
#[derive(Debug, Clone)]
pub struct Received {
    /// As the user plane's meter tells it; corrupt frames are not known.
    pub report: MeterReport,
    /// The account of the interface.
    pub counters: RxCounters,
    /// Stamped frames that no stream was told of, since another CPU held it for too long.
    pub contended_packets: u64,
    /// Time of the run in ns.
    pub elapsed_ns: u64,
    /// How the clock did.
    pub clock: ClockReport,
}

impl Receiving {
    /// Puts the program on an interface of the calling thread's namespace, in the driver or else behind it.
    /// From now on it counts.
    ///
    /// # Errors
    /// No right over programs ([`Kind::Permission`]), another program there ([`Kind::Busy`]), no such
    /// interface ([`Kind::NotFound`]), or a program that the kernel refuses.
    pub fn attach(interface: &str, wanted: &Wanted, mut clock: Clock) -> Result<Self> {
        let link = Link::by_name(interface)?;
        if link.mac.is_none() && !link.loopback {
            let source = io::Error::other("its frames are not Ethernet, which the program expects");
            let error = sys::Error::new(format!("receiving on {interface} in the kernel"), source);
            return Err(error.with_kind(Kind::Unsupported).remedy("use the user plane").into());
        }
        let _promiscuity =
            if wanted.promiscuous { Some(Promiscuity::join(interface)?) } else { None };
        let mut reader = LinkStatisticsReader::open(&Namespace::current()?, interface)?;
        let before = reader.read()?;
        let state = State::create()?;
        clock.resync();
        state.set_offset(clock.real_offset_ns().cast_unsigned());
        let attach = |mode, is_alone| attach(interface, wanted, &state, mode, is_alone);
        // A driver serves a queue on one CPU at a time; behind it frames may come by any of them.
        let link = match attach(XdpMode::Native, queues(&link) == 1) {
            Err(error) if matches!(error.kind(), Kind::Unsupported | Kind::Invalid) => {
                attach(XdpMode::Generic, false)?
            }
            outcome => outcome?,
        };
        let (count, begun) = (wanted.count, Instant::now());
        Ok(Self { state, link, _promiscuity, clock, count, reader, before, begun })
    }

    /// How frames are received, for people.
    pub fn mechanism(&self) -> &'static str {
        match self.link.mode() {
            XdpMode::Generic => "XDP program behind the driver (generic)",
            _ => "XDP program in the driver (native)",
        }
    }

    /// Keeps the clock and shows the figures, until there are as many frames as are wanted or `stop` is raised.
    ///
    /// # Errors
    /// [`Kind::Down`]: the interface is gone, or somebody took the program away.
    pub fn run(&mut self, stop: &Stop, live: &Live) -> Result<()> {
        self.begun = Instant::now();
        live.started.set(1);
        let mut kept = Instant::now();
        loop {
            let (packets, bytes) = self.state.packets_and_bytes();
            live.received_packets.set(packets);
            live.received_bytes.set(bytes);
            if stop.is_requested() || self.count.is_some_and(|count| packets >= count) {
                return Ok(());
            }
            if kept.elapsed() >= KEEP {
                kept = Instant::now();
                self.keep()?;
            }
            std::thread::sleep(if self.count.is_some() { LOOK_AT_COUNT } else { LOOK });
        }
    }

    fn keep(&mut self) -> Result<()> {
        self.clock.resync();
        self.state.set_offset(self.clock.real_offset_ns().cast_unsigned());
        if self.link.is_attached()? {
            return Ok(());
        }
        let interface = self.link.interface();
        let source = io::Error::other("the interface is gone, or its program was taken away");
        let error = sys::Error::new(format!("receiving on {interface}"), source);
        Err(error
            .with_kind(Kind::Down)
            .remedy("start again, or use --plane user, which waits for an interface to return")
            .into())
    }

    /// Takes the program away and reads what it counted.
    pub fn finish(mut self) -> Received {
        let elapsed_ns = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let missed = self.missed_packets();
        drop(self.link);
        let figures = last_figures(&self.state);
        let mut counters = RxCounters {
            wire_packets: figures.packets
                + figures.filtered_packets
                + figures.beyond_count_packets
                + missed,
            filtered_packets: figures.filtered_packets,
            beyond_count_packets: figures.beyond_count_packets,
            delivered_packets: figures.packets,
            delivered_bytes: figures.bytes,
            ..RxCounters::default()
        };
        counters.dropped.add(Reason::Interface, missed);
        Received {
            report: MeterReport::from(&figures),
            counters,
            contended_packets: figures.contended_packets,
            elapsed_ns,
            clock: self.clock.report(),
        }
    }

    /// Frames that the device dropped before the program. One that went away tells no more.
    fn missed_packets(&mut self) -> u64 {
        let Ok(now) = self.reader.read() else { return 0 };
        let since = now.since(&self.before);
        since.rx_missed_errors + since.rx_fifo_errors + since.rx_over_errors
    }
}

/// A program that is on its way when it is taken away still counts its frame.
fn last_figures(state: &State) -> Figures {
    let mut figures = state.read();
    for _ in 0..READINGS_MAX {
        std::thread::sleep(QUIET);
        let again = state.read();
        if again == figures {
            break;
        }
        figures = again;
    }
    figures
}

fn attach(
    interface: &str,
    wanted: &Wanted,
    state: &State,
    mode: XdpMode,
    is_alone: bool,
) -> sys::Result<XdpLink> {
    let counted = if wanted.passes_counted { Verdict::Pass } else { Verdict::Drop };
    let (filter, count) = (wanted.filter.clone(), wanted.count);
    let job = Job { filter, count, counted, others: Verdict::Pass, is_alone };
    let code = job.code(state).map_err(|error| {
        let action = format!("writing the program that receives on {interface}");
        sys::Error::new(action, io::Error::other(error)).with_kind(Kind::Other)
    })?;
    let program = code
        .load_xdp_for("lr_receive", &state.maps(), true, Binding::default())
        .map_err(ebpf::Refused::into_error)?;
    XdpLink::attach(&program, interface, mode)
}

/// Receive queues in use. A driver that does not tell uses all that it was made with.
fn queues(link: &Link) -> u32 {
    Ethtool::current(&link.name)
        .and_then(|device| device.channels())
        .map_or(link.rx_queues, |channels| channels.combined + channels.rx)
}
