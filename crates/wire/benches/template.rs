//! How fast frames are made: Mpps on one core into a slab of 64 slots.
//!
//! Run with `cargo bench -p wire --bench template`. Each line is the median, lowest and
//! highest of 101 measurements of 4 ms; the highest is what others on the machine disturbed least.
#![allow(clippy::expect_used)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use wire::stamp::StampKind;
use wire::template::{
    BATCH_FRAMES, Field, Ipv4Spec, Ipv6Spec, NetworkSpec, TcpSpec, TemplateSpec, TransportSpec,
    UdpSpec,
};

const ROUNDS: usize = 101;
const ROUND: Duration = Duration::from_millis(4);
const CALLS_BETWEEN_CLOCKS: u64 = 64;

fn measure(name: &str, spec: &TemplateSpec) {
    let mut template = match spec.compile(1) {
        Ok(template) => template,
        Err(error) => return println!("{name:<44} {error}"),
    };
    let slot_bytes = template.frame_bytes_max().next_multiple_of(64);
    let mut slab = vec![0; slot_bytes * BATCH_FRAMES];
    let mut lengths = [0; BATCH_FRAMES];
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let (mut frames, start) = (0, Instant::now());
        while start.elapsed() < ROUND {
            for call in 0..CALLS_BETWEEN_CLOCKS {
                template.fill(black_box(&mut slab), slot_bytes, black_box(&mut lengths), call);
            }
            frames += CALLS_BETWEEN_CLOCKS * BATCH_FRAMES as u64;
        }
        rates.push(frames as f64 / start.elapsed().as_secs_f64() / 1e6);
    }
    rates.sort_by(f64::total_cmp);
    let (low, median, high) = (rates[0], rates[ROUNDS / 2], rates[ROUNDS - 1]);
    println!("{name:<44} {median:>7.1} Mpps ({low:.1} to {high:.1})");
}

fn field<T>(text: &str) -> Field<T>
where
    Field<T>: std::str::FromStr<Err: std::fmt::Debug>,
{
    text.parse().expect("the text of a field")
}

fn ipv4(source: &str, destination: &str, ports: &str) -> TemplateSpec {
    let ipv4 =
        Ipv4Spec { source: field(source), destination: field(destination), ..Ipv4Spec::default() };
    let udp = UdpSpec { source_port: field(ports), ..UdpSpec::default() };
    TemplateSpec {
        network: NetworkSpec::Ipv4(ipv4),
        transport: TransportSpec::Udp(udp),
        stamp: None,
        ..TemplateSpec::default()
    }
}

fn main() {
    let steps = ipv4("10.0.0.0/16", "10.1.0.0/16", "1024-65535");
    let stamp = Some(StampKind::Linerate);
    let fixed = TemplateSpec { stamp: None, ..TemplateSpec::default() };
    measure("60 IPv4 UDP, all fixed", &fixed);
    measure("60 IPv4 UDP, all fixed, stamp", &TemplateSpec::default());
    measure("60 IPv4 UDP, 3 stepping fields", &steps);
    measure("60 IPv4 UDP, 3 stepping fields, stamp", &TemplateSpec { stamp, ..steps.clone() });
    let pktgen = TemplateSpec { stamp: Some(StampKind::Pktgen), ..steps.clone() };
    measure("60 IPv4 UDP, 3 stepping fields, pktgen stamp", &pktgen);
    let short = ipv4("10.0.0.1-10.0.0.10", "10.1.0.1-10.1.0.7", "1024-1050");
    measure("60 IPv4 UDP, 3 fields of short ranges", &short);
    let random = ipv4("random:10.0.0.0/16", "random:10.1.0.0/16", "random:1024-65535");
    measure("60 IPv4 UDP, 3 random fields", &random);
    let tcp = TcpSpec { source_port: field("1024-65535"), ..TcpSpec::default() };
    let tcp = TemplateSpec { transport: TransportSpec::Tcp(tcp), ..steps.clone() };
    measure("60 IPv4 TCP, 3 stepping fields", &tcp);
    let ipv6 = Ipv6Spec {
        source: field("2001:2::1-2001:2::ffff:ffff"),
        destination: field("2001:2:0:1::/64"),
        ..Ipv6Spec::default()
    };
    let ipv6 = TemplateSpec {
        network: NetworkSpec::Ipv6(ipv6),
        size: Field::Fixed(80),
        stamp,
        ..steps.clone()
    };
    measure("80 IPv6 UDP, 3 stepping fields, stamp", &ipv6);
    let sized = |text| TemplateSpec { size: field(text), stamp, ..steps.clone() };
    for size in ["128", "512", "1514", "random:60-128", "60-1514", "random:60-1514", "9014"] {
        measure(&format!("{size} IPv4 UDP, 3 stepping fields, stamp"), &sized(size));
    }
}
