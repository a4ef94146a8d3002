//! Packets per second of the formats, from memory and to memory: `cargo bench -p store`.
//!
//! Each line is the best of several runs over the same capture. "from memory" counts the copy into
//! the reader's buffer, as reading a cached file would; "encode" is what the recorder does for each
//! packet, into chunks of 1 MiB that stay in the cache or not as they would there.

use std::hint::black_box;
use std::io::{self, Cursor, Write};
use std::time::Instant;

use store::pcapng::{encode_enhanced_packet, enhanced_packet_length};
use store::{
    CaptureReader, Interface, LinkType, PcapPrecision, PcapWriter, PcapngWriter, Record, Section,
    StoreError,
};

const CAPTURE_BYTES: usize = 64 << 20;
const CHUNK_BYTES: usize = 1 << 20;
const CHUNKS: usize = 32;
const RUNS: usize = 7;
const START_NS: u64 = 1_700_000_000_000_000_000;

/// Takes everything and keeps nothing, so that writers are measured without the memory behind.
struct Discard;

impl Write for Discard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        black_box(bytes.first());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn report(name: &str, frame_bytes: usize, mut run: impl FnMut() -> Result<u64, StoreError>) {
    let mut best = (f64::INFINITY, 0);
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    if only.is_some_and(|only| !name.contains(&only)) {
        return;
    }
    for _ in 0..RUNS {
        let start = Instant::now();
        match run() {
            Ok(packets) => {
                let seconds = start.elapsed().as_secs_f64();
                if seconds / packets as f64 * (best.1 as f64) < best.0 || best.1 == 0 {
                    best = (seconds, packets);
                }
            }
            Err(error) => {
                eprintln!("{name}: {error}");
                return;
            }
        }
    }
    let (seconds, packets) = best;
    let rate = packets as f64 / seconds;
    println!(
        "{name:<28} {frame_bytes:>5} B {:>8.1} Mpps {:>7.2} ns/packet {:>7.2} GB/s of frames",
        rate / 1e6,
        1e9 / rate,
        rate * frame_bytes as f64 / 1e9
    );
}

fn write_pcapng<W: Write>(sink: W, frame: &[u8], packets: u64) -> Result<W, StoreError> {
    let mut writer = PcapngWriter::new(sink, &Section::default())?;
    writer.add_interface(&Interface::new(LinkType::ETHERNET, 0))?;
    for n in 0..packets {
        writer.write_record(&Record::new(START_NS + n, frame))?;
    }
    writer.finish()
}

fn write_pcap<W: Write>(sink: W, frame: &[u8], packets: u64) -> Result<W, StoreError> {
    let mut writer = PcapWriter::new(sink, LinkType::ETHERNET, 0, PcapPrecision::Nanoseconds)?;
    for n in 0..packets {
        writer.write_record(&Record::new(START_NS + n, frame))?;
    }
    writer.finish()
}

fn read(bytes: &'static [u8]) -> Result<u64, StoreError> {
    let mut reader = CaptureReader::new(Cursor::new(bytes), "memory")?;
    let mut sum = 0;
    while let Some(record) = reader.next_record()? {
        sum += record.time_ns ^ u64::from(record.data.first().copied().unwrap_or(0));
    }
    black_box(sum);
    Ok(reader.packets())
}

fn encode(chunks: &mut [u8], frame: &[u8]) -> u64 {
    let mut packets = 0;
    for chunk in chunks.chunks_mut(CHUNK_BYTES) {
        let mut at = 0;
        while let Some(room) = chunk.get_mut(at..) {
            let time = START_NS + packets;
            let length = black_box(frame.len()) as u32;
            match encode_enhanced_packet(room, 0, time, length, black_box(frame)) {
                Some(length) => at += length,
                None => break,
            }
            packets += 1;
        }
        black_box(&mut *chunk);
    }
    packets
}

fn main() -> Result<(), StoreError> {
    for frame_bytes in [60, 1514] {
        let frame: Vec<u8> = (0..frame_bytes).map(|n| n as u8).collect();
        let packets = (CAPTURE_BYTES / enhanced_packet_length(frame_bytes)) as u64;
        // Read by every run, and the program ends with the last.
        let pcapng: &'static [u8] = Vec::leak(write_pcapng(Vec::new(), &frame, packets)?);
        let pcap: &'static [u8] = Vec::leak(write_pcap(Vec::new(), &frame, packets)?);
        report("read pcapng from memory", frame_bytes, || read(pcapng));
        report("read pcap from memory", frame_bytes, || read(pcap));
        report("write pcapng", frame_bytes, || {
            write_pcapng(Discard, &frame, packets).map(|_| packets)
        });
        report("write pcap", frame_bytes, || write_pcap(Discard, &frame, packets).map(|_| packets));
        let mut cached = vec![1; CHUNK_BYTES / 4];
        report("encode, one chunk of 256 KiB", frame_bytes, || {
            Ok((0..100).map(|_| encode(&mut cached, &frame)).sum())
        });
        let mut chunks = vec![1; CHUNKS * CHUNK_BYTES];
        report("encode, 32 chunks of 1 MiB", frame_bytes, || Ok(encode(&mut chunks, &frame)));
    }
    Ok(())
}
