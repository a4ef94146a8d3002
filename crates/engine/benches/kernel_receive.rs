//! What the program that receives costs beside one that only drops: a veth pair, one CPU, and frames that
//! another program makes and numbers in the kernel as fast as it can.
//!
//! `cargo bench -p engine --bench kernel_receive`, as root.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use ebpf::Register::{R0, R1, R2, R3};
use ebpf::operation::{Arithmetic, Atomic, Comparison, Operation, Size};
use ebpf::program::receive::{Job, State};
use ebpf::{Assembler, Code, Verdict, part};
use sys::bpf::{Binding, LiveRun, Map, MapKind, MapSpec, Program, TestContext, XdpLink, XdpMode};
use sys::link::Links;
use sys::namespace::Namespace;
use sys::veth::{VethConfig, VethPair};
use wire::stamp;

const CPU: usize = 1;
const ROUNDS: usize = 7;
const FRAMES: u32 = 3_000_000;
const FRAME_BYTES: usize = 60;
/// Behind Ethernet, IPv4 and UDP.
const STAMP_OFFSET: usize = 42;
const QUIET: Duration = Duration::from_millis(2);

/// An IPv4 UDP frame of stream 0.
fn frame() -> [u8; FRAME_BYTES] {
    let mut frame = [2; FRAME_BYTES];
    frame[12..18].copy_from_slice(&[8, 0, 0x45, 0, 0, 46]);
    frame[20..24].copy_from_slice(&[0, 0, 64, 17]);
    frame[38..42].copy_from_slice(&[0, 26, 0, 0]);
    assert!(stamp::write(stamp::StampKind::Linerate, &mut frame[STAMP_OFFSET..], 0, 0, 1));
    frame
}

/// Numbers the frame and sends it to the only device of a map.
fn sender() -> Code {
    let mut program = Assembler::new();
    let (devices, numbers) = (program.declare_map("devices"), program.declare_map("numbers"));
    let short = program.label("short");
    let packet = part::begin(&mut program, false);
    program.copy(R1, packet.data);
    program.compute(Arithmetic::Add, R1, FRAME_BYTES as i32);
    program.jump_if(R1, Comparison::Greater, packet.end, short);
    program.map_value(R3, numbers, 0);
    program.set(R2, 1);
    let (size, operator, fetches) = (Size::Double, Atomic::Add, true);
    program.push(Operation::Atomic { size, operator, fetches, base: R3, offset: 0, source: R2 });
    program.network_order(Size::Double, R2);
    program.store(Size::Double, packet.data, STAMP_OFFSET as i16 + 2, R2);
    part::redirect_to_device(&mut program, devices, 0);
    program.place(short);
    program.set(R0, Verdict::Drop as i32);
    program.exit();
    program.finish().unwrap()
}

fn dropping() -> Program {
    let mut program = Assembler::new();
    part::end(&mut program, Verdict::Drop);
    program.finish().unwrap().load_xdp("drop", &[]).unwrap()
}

fn receiving(state: &State) -> Program {
    let (counted, others) = (Verdict::Drop, Verdict::Pass);
    let job = Job { filter: None, count: None, counted, others, is_alone: true };
    let code = job.code(state).unwrap();
    code.load_xdp_for("receive", &state.maps(), true, Binding::default()).unwrap()
}

/// Frames that the far end took, and how many in a second.
fn rate(sender: &Program, links: &mut Links) -> (u64, f64) {
    let mut taken = || links.named("here").unwrap().statistics.tx_packets;
    let before = taken();
    let begun = Instant::now();
    let context = TestContext::default();
    let run = LiveRun { frame: &frame(), context, count: FRAMES, batch_frames: 64 };
    sender.run_live(&run).unwrap();
    let seconds = begun.elapsed().as_secs_f64();
    let packets = taken() - before;
    (packets, packets as f64 / seconds)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    Namespace::create().unwrap().enter().unwrap();
    sys::cpu::pin_thread(CPU).unwrap();
    let here = Namespace::current().unwrap();
    VethPair::create(&here, "here", &here, "there", &VethConfig::default()).unwrap();
    let mut links = Links::current().unwrap();
    let devices = Map::create(&MapSpec::new("devices", MapKind::DevMap, 4, 4, 1)).unwrap();
    devices.set_number(0, links.named("here").unwrap().index).unwrap();
    let numbers = Map::create(&MapSpec::mappable("numbers", 8, 1)).unwrap();
    let sender = sender().load_xdp("send", &[&devices, &numbers]).unwrap();
    let (drop_rates, receive_rates): (Vec<f64>, Vec<f64>) = (0..ROUNDS)
        .map(|_| {
            let attached = |program: &Program| XdpLink::attach(program, "there", XdpMode::Native);
            let link = attached(&dropping()).unwrap();
            let (_, dropped) = rate(&sender, &mut links);
            drop(link);
            let state = State::create().unwrap();
            let link = attached(&receiving(&state)).unwrap();
            let (packets, received) = rate(&sender, &mut links);
            std::thread::sleep(QUIET);
            drop(link);
            let figures = state.read();
            assert_eq!((figures.packets, figures.stamped_packets), (packets, packets));
            (dropped, received)
        })
        .unzip();
    let mut more: Vec<f64> =
        drop_rates.iter().zip(&receive_rates).map(|(d, r)| 1e9 / r - 1e9 / d).collect();
    let mut share: Vec<f64> =
        drop_rates.iter().zip(&receive_rates).map(|(d, r)| 100.0 * (d / r - 1.0)).collect();
    for (name, rates) in [("drop", drop_rates), ("receive", receive_rates)] {
        let (mut sorted, count) = (rates, ROUNDS - 1);
        let middle = median(&mut sorted);
        println!(
            "{name:<8} {:.2} Mpps [{:.2}-{:.2}]",
            middle / 1e6,
            sorted[0] / 1e6,
            sorted[count] / 1e6
        );
    }
    println!("receive costs {:.0} ns a frame more, {:.0} %", median(&mut more), median(&mut share));
}
