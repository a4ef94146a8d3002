//! Programs on interfaces.

use sys::Kind;
use sys::bpf::{Map, MapSpec, Program, ProgramKind, ProgramSpec, SharedArray, XdpLink, XdpMode};
use sys::link::Links;
use sys::packet::{Sender, SenderConfig};
use testing::Outcome;

use super::support::{DROP, PASS, counting, frame, named, plug_cable, returning, with_right};

const MODES: [XdpMode; 2] = [XdpMode::Native, XdpMode::Generic];

/// A program that drops and counts, with its counter.
fn counter(name: &str) -> sys::Result<(Program, SharedArray)> {
    let counts = Map::create(&MapSpec::mappable("counts", 8, 1))?;
    let instructions = counting(DROP);
    let spec =
        ProgramSpec { maps: &[&counts], ..ProgramSpec::new(name, ProgramKind::Xdp, &instructions) };
    let program = Program::load(&spec).map_err(sys::bpf::LoadError::into_error)?;
    Ok((program, SharedArray::of(&counts)?))
}

fn send(frames: u64) {
    let mut sender = Sender::open(&SenderConfig::new("tx0")).unwrap();
    let frame = frame(60);
    let mut rest = frames as usize;
    while rest > 0 {
        rest -= sender.send(std::iter::repeat_n(frame.as_slice(), rest)).unwrap().accepted;
    }
    assert!(sender.drain(std::time::Duration::from_secs(20)).unwrap());
}

fn awaits(counts: &SharedArray, expected: u64) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while counts.get(0, 0) < expected {
        assert!(std::time::Instant::now() < deadline, "{} of {expected}", counts.get(0, 0));
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(counts.get(0, 0), expected);
}

pub fn a_program_goes_with_its_link() -> Outcome {
    with_right(|| {
        plug_cable();
        for mode in MODES {
            let (program, counts) = counter("count")?;
            assert_eq!(named("rx0").xdp, []);
            let link = XdpLink::attach(&program, "rx0", mode)?;
            assert!(link.is_attached()? && link.mode() == mode && link.interface() == "rx0");
            let [attachment] = named("rx0").xdp[..] else { panic!("no program in {mode} mode") };
            assert_eq!((attachment.mode, attachment.program_id), (mode, program.info()?.id));
            // The link holds the program.
            drop(program);
            send(100);
            awaits(&counts, 100);
            drop(link);
            assert_eq!(named("rx0").xdp, [], "{mode}");
        }
        Ok(())
    })
}

pub fn a_program_that_is_there_stays() -> Outcome {
    with_right(|| {
        plug_cable();
        let (first, counts) = counter("first one")?;
        let link = XdpLink::attach(&first, "rx0", XdpMode::Generic)?;
        let before = named("rx0").xdp;
        for mode in MODES {
            let error = XdpLink::attach(&returning("second", PASS), "rx0", mode).unwrap_err();
            assert_eq!(error.kind(), Kind::Busy);
            let text = error.to_string();
            let number = format!("the XDP program number {} ", first.info()?.id);
            assert!(text.contains(&number) && text.contains("«first_one» (generic)"), "{text}");
            let holder = format!("end process {} (", std::process::id());
            assert!(text.contains(&holder), "{text}");
        }
        assert_eq!(named("rx0").xdp, before);
        send(5);
        awaits(&counts, 5);
        drop(link);
        Ok(())
    })
}

pub fn a_link_notices_that_its_interface_went() -> Outcome {
    with_right(|| {
        plug_cable();
        let link = XdpLink::attach(&returning("pass", PASS), "rx0", XdpMode::Native)?;
        Links::current()?.delete("rx0")?;
        assert!(!link.is_attached()?);
        assert!(link.exchange(&returning("other", PASS)).is_err());
        Ok(())
    })
}

pub fn programs_are_exchanged() -> Outcome {
    with_right(|| {
        plug_cable();
        let ((first, first_counts), (second, second_counts)) = (counter("a")?, counter("b")?);
        let link = XdpLink::attach(&first, "rx0", XdpMode::Native)?;
        send(3);
        awaits(&first_counts, 3);
        link.exchange(&second)?;
        send(4);
        awaits(&second_counts, 4);
        assert_eq!(first_counts.get(0, 0), 3);
        assert_eq!(named("rx0").xdp[0].program_id, second.info()?.id);
        Ok(())
    })
}

pub fn a_large_mtu_is_the_reason() -> Outcome {
    with_right(|| {
        plug_cable();
        for name in ["tx0", "rx0"] {
            Links::current()?.set_mtu(name, 9_000)?;
        }
        let program = returning("pass", PASS);
        let error = XdpLink::attach(&program, "rx0", XdpMode::Native).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported, "{error}");
        assert!(error.to_string().contains("MTU"), "{error}");
        XdpLink::attach(&program, "rx0", XdpMode::Generic)?;
        // A program for several buffers may have it natively.
        let instructions = [super::support::set(0, PASS), super::support::exit()];
        let spec = ProgramSpec {
            takes_several_buffers: true,
            ..ProgramSpec::new("jumbo", ProgramKind::Xdp, &instructions)
        };
        XdpLink::attach(&Program::load(&spec)?, "rx0", XdpMode::Native)?;
        Ok(())
    })
}

pub fn unknown_interfaces_are_named() -> Outcome {
    with_right(|| {
        plug_cable();
        let program = returning("pass", PASS);
        let error = XdpLink::attach(&program, "rx1", XdpMode::Native).unwrap_err();
        assert_eq!(error.kind(), Kind::NotFound);
        let error = XdpLink::attach(&program, "rx0", XdpMode::Hardware).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported, "{error}");
        Ok(())
    })
}
