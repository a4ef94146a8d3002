//! Ways to send frames through a packet socket, side by side on one veth pair.
//!
//! Prints Mpps that the device counted: median and range over the rounds, and the median of the
//! ratios to `Sender` in the same round. The ways take turns of a tenth of a second, since a
//! shared machine changes its speed by more than what there is to compare.
//!
//! Needs root. Arguments: any of `plain`, `gro`, `threaded`, `steered` (how the far end receives:
//! on the sender's processor; there by NAPI; in a thread of its own; handed to another
//! processor), and `rounds=N`. Default: all four, 30 rounds.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "packet_tx/ways.rs"]
mod ways;

use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use sys::link::LinkStatisticsReader;
use sys::namespace::Namespace;
use sys::veth::{VethConfig, VethPair};
use ways::Way;

const TURN: Duration = Duration::from_millis(100);
const SENDING_CPU: usize = 1;
const OTHER_CPU: u32 = 0;

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let rounds = arguments
        .iter()
        .find_map(|argument| argument.strip_prefix("rounds=")?.parse().ok())
        .unwrap_or(30);
    let modes = ["plain", "gro", "threaded", "steered"];
    let named: Vec<&str> =
        modes.into_iter().filter(|mode| arguments.iter().any(|name| name == mode)).collect();
    for mode in if named.is_empty() { modes.to_vec() } else { named } {
        for bytes in [60, 1514] {
            compare(mode, bytes, rounds);
        }
    }
}

/// Runs all ways in turns in a fresh pair of namespaces.
fn compare(mode: &str, bytes: usize, rounds: usize) {
    let (near, far) = (Namespace::create().unwrap(), Namespace::create().unwrap());
    let config = VethConfig {
        gro: matches!(mode, "gro" | "threaded"),
        threaded_napi: mode == "threaded",
        ..VethConfig::default()
    };
    VethPair::create(&near, "tx0", &far, "rx0", &config).unwrap();
    if mode == "steered" {
        sys::napi::set_receive_steering(&far, "rx0", &[OTHER_CPU]).unwrap();
    }
    let mut device = LinkStatisticsReader::open(&near, "tx0").unwrap();
    let rates = std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            near.enter().unwrap();
            let mut cpus = CpuSet::new();
            cpus.set(SENDING_CPU);
            sched_setaffinity(None, &cpus).unwrap();
            let mut ways = ways::all("tx0", &frame(bytes));
            let mut rates = vec![Vec::new(); ways.len()];
            for _ in 0..rounds {
                for (way, rates) in ways.iter_mut().zip(&mut rates) {
                    rates.push(turn(way.as_mut(), &mut device));
                }
            }
            ways.iter().map(|way| way.name()).zip(rates).collect::<Vec<_>>()
        });
        sending.join().unwrap()
    });
    println!("\n{mode}, {bytes} bytes, {rounds} rounds");
    let ours = rates[0].1.clone();
    for (name, rates) in &rates {
        let mut ratios: Vec<f64> =
            rates.iter().zip(&ours).map(|(rate, ours)| rate / ours).collect();
        let mut sorted = rates.clone();
        println!(
            "  {name:34} {:.3} [{:.3} - {:.3}] Mpps  x {:.3}",
            median(&mut sorted),
            sorted[0],
            sorted[sorted.len() - 1],
            median(&mut ratios),
        );
    }
}

/// Lets one way send for its turn; gives millions of frames per second by the device's counter.
fn turn(way: &mut dyn Way, device: &mut LinkStatisticsReader) -> f64 {
    let before = device.read().unwrap().tx_packets;
    let start = Instant::now();
    while start.elapsed() < TURN {
        way.send_batch();
    }
    let after = device.read().unwrap().tx_packets;
    (after - before) as f64 / start.elapsed().as_secs_f64() / 1e6
}

/// Sorts the values and gives the middle one.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A UDP frame to a station that is not there, which the far end's IP layer drops at once.
fn frame(bytes: usize) -> Vec<u8> {
    let ip_bytes = (bytes - 14) as u16;
    let mut frame = vec![0x02, 0, 0, 0, 0, 0x99, 0x02, 0, 0, 0, 0, 0x01, 0x08, 0x00, 0x45, 0];
    frame.extend(ip_bytes.to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 1, 0, 99, 4, 0, 0, 9]);
    frame.extend((ip_bytes - 20).to_be_bytes());
    frame.resize(bytes, 0);
    frame
}
