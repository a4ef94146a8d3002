//! Which rung of the ladder is taken, and what is said about it.

use port::packet::RxOptions;
use port::xdp::{self, Require, Rung, XdpRx, XdpTx};
use port::{Queues, RxQueue, TxQueue};
use sys::bpf::{Instruction, Program, ProgramKind, ProgramSpec, XdpLink, XdpMode};
use sys::link::Links;
use sys::veth::VethConfig;
use testing::Outcome;

use super::wire::*;

/// A veth has native programs and no zero-copy mode.
pub fn the_mechanism_says_which_rung_and_why() -> Outcome {
    needs_programs()?;
    let wire = Wire::new(VethConfig { queues: 2, ..VethConfig::default() });
    let rx = wire.rx(&options());
    assert_eq!(rx.rung(), Rung::Native);
    let text = rx.describe().mechanism;
    for part in
        ["copy mode with a native program", "queues 0-1", "2048 buffers", "no zero-copy mode: "]
    {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(rx.describe().spec, "xdp:there");
    let tx = wire.tx();
    assert_eq!(tx.rung(), Rung::Native);
    assert!(tx.describe().mechanism.contains("copy mode, queue 0"), "{:?}", tx.describe());
    // The second sender of a port gets the next queue.
    assert_eq!(wire.tx().describe().spec, "xdp:here@1");
    Ok(())
}

pub fn what_is_required_is_not_replaced() -> Outcome {
    needs_programs()?;
    let wire = Wire::new(VethConfig::default());
    let rx = |require| wire.there.run(|| XdpRx::open("there", None, &options(), Some(require)));
    assert!(rx(Require::Xdp)?.is_ok());
    assert!(rx(Require::Native)?.is_ok());
    let error = rx(Require::ZeroCopy)?.unwrap_err().to_string();
    assert!(error.contains("zero-copy mode is required") && error.contains("--require"), "{error}");
    let tx = |require| wire.here.run(|| xdp::open_tx("here", None, Some(require)));
    assert!(tx(Require::Xdp)?.is_ok());
    let error = tx(Require::ZeroCopy)?.err().unwrap().to_string();
    assert!(error.contains("zero-copy mode is required"), "{error}");
    assert!(Links::of(&wire.there)?.named("there")?.xdp.is_empty());
    Ok(())
}

fn pass_all() -> Result<Program, sys::bpf::LoadError> {
    let instructions = [Instruction::new(0xb7, 0, 0, 0, 2), Instruction::new(0x95, 0, 0, 0, 0)];
    Program::load(&ProgramSpec::new("somebody", ProgramKind::Xdp, &instructions))
}

pub fn a_foreign_program_stays_and_is_named() -> Outcome {
    needs_programs()?;
    let wire = Wire::new(VethConfig::default());
    let program = pass_all()?;
    let link = wire.there.run(|| XdpLink::attach(&program, "there", XdpMode::Native))??;
    let before = Links::of(&wire.there)?.named("there")?.xdp;
    let open = |require| wire.there.run(move || xdp::open_rx("there", None, &options(), require));
    let error = open(Some(Require::Xdp))?.err().unwrap().to_string();
    assert!(error.contains("«somebody»") && error.contains("end process"), "{error}");
    // Without that, packet sockets do it, and the reason is told.
    let mut rx = open(None)?.map_err(|error| error.to_string())?;
    let described = rx.describe();
    assert_eq!(described.spec, "packet:there");
    assert!(described.mechanism.starts_with("AF_PACKET"), "{}", described.mechanism);
    assert!(
        described.mechanism.contains("no AF_XDP: ") && described.mechanism.contains("somebody")
    );
    let mut tx = wire.tx();
    rx.start()?;
    send(&mut tx, 0, 100);
    rx.stop()?;
    assert_eq!(drain(&mut rx).len(), 100);
    assert_eq!(Links::of(&wire.there)?.named("there")?.xdp, before);
    drop(link);
    Ok(())
}

pub fn opening_says_what_is_wrong() -> Outcome {
    let wire = Wire::new(VethConfig::default());
    let rx = |name: &'static str, queues| {
        wire.there.run(move || xdp::open_rx(name, queues, &options(), None).err())
    };
    let text = rx("nowhere", None)?.unwrap().to_string();
    assert!(text.contains("nowhere") && text.contains("there"), "{text}");
    let text = rx("there", Queues::new(0, 3))?.unwrap().to_string();
    assert!(text.contains("xdp:there@0-3") && text.contains("1 receive queue"), "{text}");
    assert!(text.contains("ethtool -L there"), "{text}");
    let text = wire.here.run(|| XdpTx::open("here", Queues::new(2, 2), None))?.unwrap_err();
    assert!(text.to_string().contains("1 transmit queue"), "{text}");
    Links::of(&wire.there)?.set_up("there", false)?;
    let text = rx("there", None)?.unwrap().to_string();
    assert!(text.contains("ip link set there up"), "{text}");
    Ok(())
}

/// Frames that come are no longer than this end's MTU allows.
pub fn a_large_mtu_of_the_other_end_is_no_obstacle() -> Outcome {
    needs_programs()?;
    let wire = Wire::new(VethConfig { mtu_bytes: 9_000, ..VethConfig::default() });
    Links::of(&wire.there)?.set_mtu("there", 1_500)?;
    let mut rx = wire.rx(&RxOptions::default());
    assert_eq!(rx.rung(), Rung::Native, "{}", rx.describe().mechanism);
    let mut tx = wire.tx();
    rx.start()?;
    send(&mut tx, 0, 1_000);
    rx.stop()?;
    assert_eq!(drain(&mut rx), (0..1_000).collect::<Vec<_>>());
    assert_eq!(rx.counters()?.copied_packets, 0);
    Ok(())
}
