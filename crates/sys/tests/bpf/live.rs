//! Frames that a program makes.

use sys::Kind;
use sys::bpf::{
    Live, LiveRun, Map, MapKind, MapSpec, Program, ProgramKind, ProgramSpec, SharedArray,
    TestContext, XdpLink, XdpMode, takes_redirected,
};
use sys::thread::Interruptible;
use testing::Outcome;

use super::support::{
    DROP, PASS, REDIRECT, call, counting, exit, frame, map, named, plug_cable, returning, set,
    with_right,
};

const FRAMES: u32 = 10_000;
const REDIRECT_MAP: i32 = 51;

pub fn frames_are_redirected_and_counted_exactly() -> Outcome {
    with_right(|| {
        plug_cable();
        let counts = Map::create(&MapSpec::mappable("counts", 8, 1))?;
        let (instructions, shared) = (counting(DROP), SharedArray::of(&counts)?);
        let spec = ProgramSpec::new("count", ProgramKind::Xdp, &instructions);
        let counter = Program::load(&ProgramSpec { maps: &[&counts], ..spec })?;
        let _link = XdpLink::attach(&counter, "rx0", XdpMode::Native)?;

        let devices = Map::create(&MapSpec::new("devices", MapKind::DevMap, 4, 4, 1))?;
        devices.set_number(0, named("tx0").index)?;
        let mut instructions = map(1, 0).to_vec();
        instructions.extend([set(2, 0), set(3, 0), call(REDIRECT_MAP), exit()]);
        let spec = ProgramSpec::new("redirect", ProgramKind::Xdp, &instructions);
        let redirect = Program::load(&ProgramSpec { maps: &[&devices], ..spec })?;
        let frame = frame(60);
        let trial = redirect.test_run(&frame, TestContext::default(), 1, &mut [])?;
        assert_eq!(trial.verdict, REDIRECT as u32);

        let before = named("tx0").statistics;
        let run = LiveRun {
            frame: &frame,
            context: TestContext::default(),
            count: FRAMES,
            batch_frames: 32,
        };
        assert_eq!(redirect.run_live(&run)?, Live::Complete);
        let (deadline, pause) =
            (std::time::Duration::from_secs(20), std::time::Duration::from_millis(1));
        let begun = std::time::Instant::now();
        let accounted = || {
            let sent = named("tx0").statistics;
            let transmitted = sent.tx_packets - before.tx_packets;
            let dropped = sent.tx_dropped - before.tx_dropped;
            (transmitted, dropped)
        };
        // The far end's ring holds 256 frames: some may be refused there, and are counted as dropped.
        while shared.get(0, 0) + accounted().1 < u64::from(FRAMES) && begun.elapsed() < deadline {
            std::thread::sleep(pause);
        }
        let (transmitted, dropped) = accounted();
        assert_eq!(shared.get(0, 0), transmitted);
        assert_eq!(transmitted + dropped, u64::from(FRAMES));
        Ok(())
    })
}

pub fn frames_that_do_not_fit_are_refused() -> Outcome {
    with_right(|| {
        let program = returning("drop", DROP);
        let (short, long, good) = (frame(14), frame(3_900), frame(1_514));
        let run = |frame, batch_frames| {
            program.run_live(&LiveRun {
                frame,
                context: TestContext::default(),
                count: 1,
                batch_frames,
            })
        };
        assert_eq!(run(&good, 0)?, Live::Complete);
        assert_eq!(run(&short, 256)?, Live::Complete);
        let errors = [run(&short[..13], 0), run(&long, 0), run(&good, 257)];
        for error in errors.map(Result::unwrap_err) {
            assert_eq!(error.kind(), Kind::Invalid, "{error}");
        }
        Ok(())
    })
}

pub fn a_run_is_called_back() -> Outcome {
    with_right(|| {
        let counts = Map::create(&MapSpec::mappable("counts", 8, 1))?;
        let (instructions, shared) = (counting(DROP), SharedArray::of(&counts)?);
        let spec = ProgramSpec::new("count", ProgramKind::Xdp, &instructions);
        let program = Program::load(&ProgramSpec { maps: &[&counts], ..spec })?;
        let (frame, context) = (frame(60), TestContext::default());
        // Hours of work, were it not for the signal.
        let run = LiveRun { frame: &frame, context, count: u32::MAX, batch_frames: 0 };
        let (sender, receiver) = std::sync::mpsc::channel();
        let outcome = std::thread::scope(|scope| -> sys::Result<Live> {
            let worker = scope.spawn(|| {
                let _ = sender.send(Interruptible::current());
                program.run_live(&run)
            });
            let thread = receiver.recv().unwrap()?;
            while !worker.is_finished() {
                std::thread::sleep(std::time::Duration::from_millis(1));
                if shared.get(0, 0) > 0 {
                    thread.interrupt();
                }
            }
            worker.join().unwrap()
        })?;
        assert_eq!(outcome, Live::Interrupted);
        let done = shared.get(0, 0);
        assert!(done > 0 && done < u64::from(u32::MAX), "{done}");
        Ok(())
    })
}

pub fn a_veth_takes_frames_for_a_far_end_with_a_program() -> Outcome {
    with_right(|| {
        plug_cable();
        let index = named("tx0").index;
        assert_eq!(takes_redirected(index)?, Some(false));
        let link = XdpLink::attach(&returning("pass", PASS), "rx0", XdpMode::Native)?;
        assert_eq!(takes_redirected(index)?, Some(true));
        drop(link);
        assert_eq!(takes_redirected(index)?, Some(false));
        let error = takes_redirected(999_999).unwrap_err();
        assert_eq!(error.kind(), Kind::NotFound, "{error}");
        Ok(())
    })
}
