//! Loading and trial runs.

use sys::Kind;
use sys::bpf::{
    Map, MapKind, MapSpec, Program, ProgramKind, ProgramSpec, SharedArray, TestContext,
};
use testing::Outcome;

use super::support::{
    DROP, PASS, copy, counting, exit, frame, ins, map, plug_cable, returning, set, with_right,
};

const ANYWHERE: TestContext = TestContext { interface_index: 0, rx_queue: 0 };

/// If the frame has 15 bytes: writes 0x77 to the last of them and returns [`PASS`]; else [`DROP`].
fn writing() -> Vec<sys::bpf::Instruction> {
    vec![
        ins(0x61, 2, 1, 0, 0),     // r2 = data
        ins(0x61, 3, 1, 4, 0),     // r3 = end
        copy(4, 2),                // r4 = r2
        ins(0x07, 4, 0, 0, 15),    // r4 += 15
        set(0, DROP),              // r0 = drop
        ins(0x2d, 4, 3, 2, 0),     // if r4 > r3 goto exit
        ins(0x72, 2, 0, 14, 0x77), // *(u8 *)(r2 + 14) = 0x77
        set(0, PASS),
        exit(),
    ]
}

pub fn verdict_and_changes_of_a_frame_come_back() -> Outcome {
    with_right(|| {
        let program = Program::load(&ProgramSpec::new("write", ProgramKind::Xdp, &writing()))?;
        let mut after = [0; 128];
        let run = program.test_run(&frame(60), ANYWHERE, 1, &mut after)?;
        assert_eq!((run.verdict, run.frame_bytes), (PASS as u32, 60));
        let mut expected = frame(60);
        expected[14] = 0x77;
        assert_eq!(after[..60], expected);
        let run = program.test_run(&frame(14), ANYWHERE, 1, &mut after)?;
        assert_eq!((run.verdict, run.frame_bytes), (DROP as u32, 14));
        let error = program.test_run(&frame(60), ANYWHERE, 1, &mut after[..59]).unwrap_err();
        assert_eq!(error.kind(), Kind::NoSpace, "{error}");

        // The context says where a frame came from: return the queue.
        plug_cable();
        let instructions = [ins(0x61, 0, 1, 12, 0), exit()];
        let program = Program::load(&ProgramSpec::new("where", ProgramKind::Xdp, &instructions))?;
        let index = super::support::named("rx0").index;
        // A veth has told the kernel of its queues once it has a program.
        let pass = returning("pass", PASS);
        let _link = sys::bpf::XdpLink::attach(&pass, "rx0", sys::bpf::XdpMode::Native)?;
        let context = TestContext { interface_index: index, rx_queue: 0 };
        assert_eq!(program.test_run(&frame(60), context, 1, &mut [])?.verdict, index);
        let context = TestContext { interface_index: index, rx_queue: 1 };
        assert!(program.test_run(&frame(60), context, 1, &mut []).is_err(), "there is one queue");
        Ok(())
    })
}

pub fn counters_are_read_without_a_call() -> Outcome {
    with_right(|| {
        let counts = Map::create(&MapSpec::mappable("counts", 32, 1))?;
        let shared = SharedArray::of(&counts)?;
        let instructions = counting(PASS);
        let spec = ProgramSpec {
            maps: &[&counts],
            ..ProgramSpec::new("count", ProgramKind::Xdp, &instructions)
        };
        let program = Program::load(&spec)?;
        program.test_run(&frame(60), ANYWHERE, 1_000, &mut [])?;
        assert_eq!(shared.get(0, 0), 1_000);
        program.test_run(&frame(60), ANYWHERE, 23, &mut [])?;
        assert_eq!(shared.get(0, 0), 1_023);
        assert_eq!((shared.values(), shared.words_per_value(), shared.get(0, 3)), (1, 4, 0));
        assert!(shared.word(1, 0).is_none() && shared.word(0, 4).is_none());
        let mut value = [0; 32];
        assert!(counts.get(&0u32.to_ne_bytes(), &mut value)?);
        assert_eq!(value[..8], 1_023u64.to_ne_bytes());
        // Longer than a page, and not a multiple of 8 bytes.
        let wide = SharedArray::of(&Map::create(&MapSpec::mappable("wide", 5_001, 3))?)?;
        assert_eq!((wide.values(), wide.words_per_value()), (3, 626));
        let last = wide.word(2, 625).ok_or("no last word")?;
        last.store(7, std::sync::atomic::Ordering::Relaxed);
        assert_eq!((wide.get(2, 625), wide.get(1, 625), wide.get(2, 626)), (7, 0, 0));
        let plain = Map::create(&MapSpec::new("plain", MapKind::Array, 4, 8, 4))?;
        assert_eq!(SharedArray::of(&plain).unwrap_err().kind(), Kind::Invalid);
        Ok(())
    })
}

pub fn the_verifier_says_what_is_wrong() -> Outcome {
    with_right(|| {
        let load = |instructions: &[sys::bpf::Instruction]| {
            Program::load(&ProgramSpec::new("bad", ProgramKind::Xdp, instructions)).unwrap_err()
        };
        // A byte is read without asking whether the frame has it.
        let error = load(&[ins(0x61, 2, 1, 0, 0), ins(0x71, 0, 2, 0, 0), exit()]);
        assert_eq!((error.kind(), error.instruction()), (Kind::Invalid, Some(1)), "{error}");
        assert!(error.to_string().contains("invalid access to packet"), "{error}");
        assert!(error.log().contains("0: (61) r2 = *(u32 *)(r1 +0)"), "{}", error.log());

        let error = load(&[set(0, PASS)]);
        assert_eq!(error.kind(), Kind::Invalid, "{error}");
        let error = load(&[]);
        assert_eq!(error.kind(), Kind::Invalid, "{error}");
        assert!(error.to_string().contains("ends with an exit"), "{error}");

        let error = load(&[set(1, 0), ins(0x85, 0, 0, 0, 9_999), exit()]);
        assert_eq!(error.kind(), Kind::Unsupported, "{error}");
        assert!(error.to_string().contains("older than a function"), "{error}");

        // More than a million slots.
        let mut long = vec![set(0, PASS); 1_000_001];
        long.push(exit());
        let error = load(&long);
        assert_eq!(error.kind(), Kind::NoSpace, "{error}");
        assert!(error.to_string().contains("a million instructions at most"), "{error}");
        Ok(())
    })
}

pub fn maps_are_named_by_their_place() -> Outcome {
    with_right(|| {
        let mut instructions = map(1, 1).to_vec();
        instructions.extend([set(0, PASS), exit()]);
        let one = Map::create(&MapSpec::new("one", MapKind::Array, 4, 8, 1))?;
        let two = Map::create(&MapSpec::new("two", MapKind::Hash, 4, 8, 1))?;
        let spec = ProgramSpec::new("maps", ProgramKind::Xdp, &instructions);
        Program::load(&ProgramSpec { maps: &[&one, &two], ..spec })?;
        let error = Program::load(&ProgramSpec { maps: &[&one], ..spec }).unwrap_err();
        assert_eq!((error.kind(), error.instruction()), (Kind::Invalid, Some(0)));
        assert!(error.to_string().contains("a map that is not in the list"), "{error}");
        // A descriptor's number is nothing that instructions may hold.
        let instructions = [ins(0x18, 1, 1, 0, 3), ins(0, 0, 0, 0, 0), set(0, PASS), exit()];
        let spec = ProgramSpec::new("maps", ProgramKind::Xdp, &instructions);
        assert_eq!(Program::load(&spec).unwrap_err().kind(), Kind::Invalid);
        Ok(())
    })
}

pub fn a_program_knows_itself() -> Outcome {
    with_right(|| {
        let program = returning("a name that is too long", PASS);
        let info = program.info()?;
        assert_eq!(info.name, "a_name_that_is_");
        assert_eq!(info.verified_instructions, 2);
        assert_eq!(info.translated_bytes, 16);
        assert_eq!(sys::bpf::ProgramInfo::of_id(info.id)?, info);
        assert_ne!(returning("other", DROP).info()?.tag, info.tag);
        drop(program);
        // The kernel frees it a moment later.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while sys::bpf::ProgramInfo::of_id(info.id).is_ok() {
            assert!(std::time::Instant::now() < deadline, "the program is still there");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        Ok(())
    })
}

pub fn frames_have_a_least_length() -> Outcome {
    with_right(|| {
        let program = returning("pass", PASS);
        let error = program.test_run(&[0; 13], ANYWHERE, 1, &mut []).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid);
        assert!(error.to_string().contains("14 bytes at least"), "{error}");
        Ok(())
    })
}
