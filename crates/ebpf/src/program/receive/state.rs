//! What the program that receives keeps, in memory that this process reads without a call.
//!
//! Three arrays: one with what each CPU counts, one with what each stream went through, and one with what
//! all of them share: 35 MB, and 33 kB for each CPU that the machine may have.

use std::sync::atomic::Ordering;

use sys::bpf::{Map, MapSpec, SharedArray, possible_cpus};

use crate::part::histogram::{self, Values};

pub(super) const WORD_BYTES: usize = 8;

/// Streams that are followed one by one.
pub const STREAMS_MAX: usize = 256;
/// Receive queues whose gaps are measured one by one; further ones share with these.
pub const QUEUES_MAX: usize = 64;

/// Words of a CPU.
pub(super) mod lane {
    use super::histogram;

    pub const PACKETS: usize = 0;
    pub const BYTES: usize = 1;
    pub const FILTERED: usize = 2;
    pub const BEYOND_COUNT: usize = 3;
    pub const STAMPED: usize = 4;
    pub const UNTRACKED: usize = 5;
    pub const NEGATIVE: usize = 6;
    pub const BACKWARD: usize = 7;
    pub const CONTENDED: usize = 8;
    /// Never written.
    pub const ZERO: usize = 9;
    pub const LATENCY: usize = 16;
    pub const INTER_ARRIVAL: usize = LATENCY + histogram::WORDS;
    /// A line of the cache and the one that is fetched along with it are no other CPU's.
    pub const WORDS: usize = (INTER_ARRIVAL + histogram::WORDS).next_multiple_of(16);
}

/// Words of a stream; their meaning is that of the user plane's sequences.
pub(super) mod stream {
    /// The highest number plus 1; 0 before the first one.
    pub const EXPECTED: usize = 0;
    pub const UNIQUE: usize = 1;
    pub const NEWEST: usize = 2;
    pub const LOW: usize = 3;
    pub const LOWEST: usize = 4;
    pub const RECEIVED: usize = 5;
    pub const REORDERED: usize = 6;
    pub const EXTENT: usize = 7;
    pub const DUPLICATE: usize = 8;
    pub const BEYOND_WINDOW: usize = 9;
    pub const RESTARTS: usize = 10;
    pub const LOST_BEFORE: usize = 11;
    pub const NUMBER: usize = 12;
    /// Frames of a possible beginning, the last ones of the log.
    pub const BEGINNING: usize = 13;
    /// Frames that were ever put into the log.
    pub const LOGGED: usize = 14;
    /// The highest number at the possible beginning, and what is taken back if it is one.
    pub const KEPT_HIGHEST: usize = 15;
    pub const KEPT_LOW: usize = 16;
    pub const KEPT_NEWEST: usize = 17;
    pub const KEPT_LOWEST: usize = 18;
    /// UNIQUE, REORDERED, EXTENT, DUPLICATE and BEYOND_WINDOW.
    pub const KEPT_UNIQUE: usize = 19;
    pub const KEPT_REORDERED: usize = 20;
    pub const KEPT_EXTENT: usize = 21;
    pub const KEPT_DUPLICATE: usize = 22;
    pub const KEPT_BEYOND_WINDOW: usize = 23;
    /// Number and time of frames with low numbers, around and around.
    pub const LOG: usize = 32;
    pub const LOG_FRAMES: usize = 256;
    /// Which numbers of the window were seen.
    pub const SEEN: usize = LOG + 2 * LOG_FRAMES;
    pub const SEEN_WORDS: usize = 1 << 14;
    pub const WORDS: usize = SEEN + SEEN_WORDS;
}

/// Words of what all CPUs share.
pub(super) mod common {
    /// The Unix epoch by the monotonic clock.
    pub const OFFSET: usize = 0;
    /// Frames that were taken, where they are counted out.
    pub const TAKEN: usize = 16;
    pub const LOCK: usize = 32;
    pub const STREAMS: usize = 33;
    pub const QUEUES: usize = 48;
    pub const QUEUE_WORDS: usize = 16;
    pub const LAST: usize = 0;
    pub const FIRST: usize = 1;
    /// Of each stream number, in 16 bits, its place plus 1.
    pub const PLACES: usize = QUEUES + super::QUEUES_MAX * QUEUE_WORDS;
    pub const WORDS: usize = PLACES + (1 << 16) / 4;
}

/// The memory of one program.
#[derive(Debug)]
pub struct State {
    lanes: (Map, SharedArray),
    streams: (Map, SharedArray),
    common: (Map, SharedArray),
    cpus: usize,
}

/// What a stream went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "fields are those of the user plane's report of a stream")]
pub struct StreamFigures {
    pub stream: u16,
    pub received_packets: u64,
    pub lost_packets: u64,
    pub reordered_packets: u64,
    pub reorder_extent_max: u64,
    pub duplicate_packets: u64,
    pub beyond_window_packets: u64,
    pub restarts: u64,
}

/// What the program has counted so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figures {
    /// Frames that matched, up to the count.
    pub packets: u64,
    /// Their bytes in all of their buffers, without FCS.
    pub bytes: u64,
    /// Frames that did not match.
    pub filtered_packets: u64,
    /// Frames that matched behind the last one that was wanted.
    pub beyond_count_packets: u64,
    /// Frames with a readable stamp.
    pub stamped_packets: u64,
    /// Stamped frames of more streams than are followed.
    pub untracked_packets: u64,
    /// Stamped frames whose stream another CPU held for too long: they are not in its figures, and look lost.
    pub contended_packets: u64,
    /// Stamped frames that arrived before they were sent.
    pub negative_latency_packets: u64,
    /// Frames that arrived before the one ahead of them.
    pub backward_packets: u64,
    /// Arrival of the first frame in ns since the Unix epoch; 0 if there is none.
    pub first_time_ns: u64,
    /// Arrival of the latest frame.
    pub last_time_ns: u64,
    /// Arrival less the time in the stamp in ns, of each CPU.
    pub latency_ns: Vec<Values>,
    /// Time between two arrivals at one queue in ns, of each CPU.
    pub inter_arrival_ns: Vec<Values>,
    /// In the order of stream numbers.
    pub streams: Vec<StreamFigures>,
}

impl State {
    /// All of it 0.
    ///
    /// # Errors
    /// As [`Map::create`] and [`SharedArray::of`].
    pub fn create() -> sys::Result<Self> {
        let cpus = possible_cpus()?;
        let array = |name, words: usize| {
            let map = Map::create(&MapSpec::mappable(name, (words * WORD_BYTES) as u32, 1))?;
            SharedArray::of(&map).map(|shared| (map, shared))
        };
        Ok(Self {
            lanes: array("lr_rx_cpus", cpus * lane::WORDS)?,
            streams: array("lr_rx_streams", STREAMS_MAX * stream::WORDS)?,
            common: array("lr_rx_common", common::WORDS)?,
            cpus,
        })
    }

    /// The maps, in the order in which the program declares them.
    pub fn maps(&self) -> [&Map; 3] {
        [&self.lanes.0, &self.streams.0, &self.common.0]
    }

    pub(super) fn cpus(&self) -> usize {
        self.cpus
    }

    /// From now on `offset_ns` is added to the monotonic time to have that since the Unix epoch.
    pub fn set_offset(&self, offset_ns: u64) {
        if let Some(word) = self.common.1.word(0, common::OFFSET) {
            word.store(offset_ns, Ordering::Relaxed);
        }
    }

    /// Frames that matched, as a run that is watched wants to know often: up to the count, and their bytes.
    pub fn packets_and_bytes(&self) -> (u64, u64) {
        (self.sum(lane::PACKETS), self.sum(lane::BYTES))
    }

    fn sum(&self, word: usize) -> u64 {
        (0..self.cpus).map(|cpu| self.lanes.1.get(0, cpu * lane::WORDS + word)).sum()
    }

    /// Arrival of the latest frame in ns since the Unix epoch; 0 before the first one.
    pub fn last_time_ns(&self) -> u64 {
        self.queues(common::LAST).max().unwrap_or(0)
    }

    /// A word of each receive queue.
    fn queues(&self, word: usize) -> impl Iterator<Item = u64> {
        (0..QUEUES_MAX)
            .map(move |queue| common::QUEUES + queue * common::QUEUE_WORDS + word)
            .map(|place| self.common.1.get(0, place))
    }

    /// What was counted so far. While frames arrive the figures are of slightly different times.
    pub fn read(&self) -> Figures {
        let of_cpus = |first: usize| {
            let place = |cpu: usize| cpu * lane::WORDS + first;
            (0..self.cpus).map(|cpu| histogram::read(&self.lanes.1, 0, place(cpu))).collect()
        };
        Figures {
            packets: self.sum(lane::PACKETS),
            bytes: self.sum(lane::BYTES),
            filtered_packets: self.sum(lane::FILTERED),
            beyond_count_packets: self.sum(lane::BEYOND_COUNT),
            stamped_packets: self.sum(lane::STAMPED),
            untracked_packets: self.sum(lane::UNTRACKED),
            contended_packets: self.sum(lane::CONTENDED),
            negative_latency_packets: self.sum(lane::NEGATIVE),
            backward_packets: self.sum(lane::BACKWARD),
            first_time_ns: self.queues(common::FIRST).filter(|time| *time > 0).min().unwrap_or(0),
            last_time_ns: self.last_time_ns(),
            latency_ns: of_cpus(lane::LATENCY),
            inter_arrival_ns: of_cpus(lane::INTER_ARRIVAL),
            streams: self.streams(),
        }
    }

    fn streams(&self) -> Vec<StreamFigures> {
        let count = (self.common.1.get(0, common::STREAMS) as usize).min(STREAMS_MAX);
        let mut streams: Vec<_> = (0..count).map(|place| self.stream(place)).collect();
        streams.sort_unstable_by_key(|figures| figures.stream);
        streams
    }

    fn stream(&self, place: usize) -> StreamFigures {
        let word = |word: usize| self.streams.1.get(0, place * stream::WORDS + word);
        // Between two readings of a run that goes on the figures may not fit together.
        let seen = word(stream::LOWEST) + word(stream::UNIQUE);
        StreamFigures {
            stream: word(stream::NUMBER) as u16,
            received_packets: word(stream::RECEIVED),
            lost_packets: word(stream::LOST_BEFORE) + word(stream::EXPECTED).saturating_sub(seen),
            reordered_packets: word(stream::REORDERED),
            reorder_extent_max: word(stream::EXTENT),
            duplicate_packets: word(stream::DUPLICATE),
            beyond_window_packets: word(stream::BEYOND_WINDOW),
            restarts: word(stream::RESTARTS),
        }
    }
}
