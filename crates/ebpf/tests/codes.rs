//! Instructions: what is written is read back, listings read as the kernel's do, mistakes are errors.
#![allow(clippy::unwrap_used, clippy::panic)]

use ebpf::operation::{
    Arithmetic, Atomic, ByteOrder, Comparison, Helper, Operand, Operation, Register, Size, Width,
    decode,
};
use ebpf::{Assembler, AssemblyError, Register::*, Verdict};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use sys::bpf::Instruction;

fn register() -> impl Strategy<Value = Register> {
    select(Register::ALL.to_vec())
}

fn width() -> impl Strategy<Value = Width> {
    select(vec![Width::Bits32, Width::Bits64])
}

fn size() -> impl Strategy<Value = Size> {
    select(vec![Size::Byte, Size::Half, Size::Word, Size::Double])
}

fn operand() -> impl Strategy<Value = Operand> {
    prop_oneof![
        register().prop_map(Operand::Register),
        any::<i32>().prop_map(Operand::Constant),
        (-2..70).prop_map(Operand::Constant),
    ]
}

fn arithmetic() -> impl Strategy<Value = Arithmetic> {
    use Arithmetic::*;
    select(vec![
        Add,
        Sub,
        Mul,
        Div,
        Or,
        And,
        ShiftLeft,
        ShiftRight,
        Mod,
        Xor,
        Move,
        ShiftRightSigned,
    ])
}

fn comparison() -> impl Strategy<Value = Comparison> {
    use Comparison::*;
    select(vec![
        Equal,
        Greater,
        GreaterEqual,
        AnyBit,
        NotEqual,
        GreaterSigned,
        GreaterEqualSigned,
        Less,
        LessEqual,
        LessSigned,
        LessEqualSigned,
    ])
}

fn atomic() -> impl Strategy<Value = (Atomic, bool)> {
    use Atomic::*;
    (select(vec![Add, Or, And, Xor, Exchange, CompareExchange]), any::<bool>())
        .prop_map(|(operator, fetches)| (operator, fetches || operator.always_fetches()))
}

fn operation() -> impl Strategy<Value = Operation> {
    let offset = || prop_oneof![any::<i16>(), -64..64i16];
    let distance = || prop_oneof![any::<i16>(), 0..12i16];
    prop_oneof![
        (width(), arithmetic(), register(), operand()).prop_map(
            |(width, operator, destination, source)| {
                Operation::Arithmetic { width, operator, destination, source }
            }
        ),
        (width(), register()).prop_map(|(width, register)| Operation::Negate { width, register }),
        (
            select(vec![ByteOrder::Little, ByteOrder::Big]),
            select(vec![Size::Half, Size::Word, Size::Double]),
            register()
        )
            .prop_map(|(order, size, register)| Operation::Order { order, size, register }),
        (register(), any::<u64>())
            .prop_map(|(destination, constant)| Operation::Wide { destination, constant }),
        (register(), 0..3u32)
            .prop_map(|(destination, place)| Operation::Map { destination, place }),
        (register(), 0..3u32, any::<u32>()).prop_map(|(destination, place, offset)| {
            Operation::MapValue { destination, place, offset }
        }),
        (size(), register(), register(), offset()).prop_map(|(size, destination, base, offset)| {
            Operation::Load { size, destination, base, offset }
        }),
        (size(), register(), offset(), register()).prop_map(|(size, base, offset, source)| {
            Operation::Store { size, base, offset, source }
        }),
        (size(), register(), offset(), any::<i32>()).prop_map(|(size, base, offset, constant)| {
            Operation::StoreConstant { size, base, offset, constant }
        }),
        (select(vec![Size::Word, Size::Double]), atomic(), register(), offset(), register())
            .prop_map(|(size, (operator, fetches), base, offset, source)| Operation::Atomic {
                size,
                operator,
                fetches,
                base,
                offset,
                source
            }),
        distance().prop_map(|distance| Operation::Jump { distance }),
        (width(), comparison(), register(), operand(), distance()).prop_map(
            |(width, comparison, left, right, distance)| Operation::JumpIf {
                width,
                comparison,
                left,
                right,
                distance
            }
        ),
        prop_oneof![any::<i32>(), 0..220]
            .prop_map(|number| Operation::Call { helper: Helper(number) }),
        any::<i32>().prop_map(|function| Operation::CallKernel { function }),
        Just(Operation::Exit),
    ]
}

fn slots(operation: &Operation) -> Vec<Instruction> {
    let slots = operation.encode();
    [Some(slots.first), slots.second].into_iter().flatten().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back(operation in operation()) {
        let slots = slots(&operation);
        prop_assert_eq!(slots.len(), operation.slots());
        prop_assert_eq!(decode(&slots), Ok(operation));
        prop_assert!(!operation.to_string().is_empty());
    }

    #[test]
    fn what_is_read_is_written_back(
        code in any::<u8>(), destination in 0..16u8, source in 0..16u8, offset in any::<i16>(),
        constant in any::<i32>(), second in any::<i32>(),
    ) {
        let given = [
            Instruction::new(code, destination, source, offset, constant),
            Instruction::new(0, 0, 0, 0, second),
        ];
        if let Ok(operation) = decode(&given) {
            let slots = slots(&operation);
            prop_assert_eq!(&slots[..], &given[..slots.len()]);
        }
    }
}

/// Whatever is put together, the kernel takes or refuses it; neither it nor we come to harm.
#[test]
fn the_verifier_takes_or_refuses_anything() {
    use sys::bpf::{Map, MapKind, MapSpec, Program, ProgramKind, ProgramSpec, TestContext};
    const NAME: &str = "bpf::the_verifier_takes_or_refuses_anything";
    let map = |kind| Map::create(&MapSpec::new("some", kind, 4, 64, 1));
    let maps = match (map(MapKind::Array), map(MapKind::Hash)) {
        (Ok(array), Ok(hash)) => [array, hash],
        (Err(error), _) | (_, Err(error)) => return testing::say_skipped(NAME, error),
    };
    let maps = [&maps[0], &maps[1]];
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut taken, mut refused) = (0, 0);
    // What begins and ends well is taken more often.
    let body = prop::collection::vec(operation(), 0..12);
    for _ in 0..3_000 {
        let body = body.new_tree(&mut runner).unwrap().current();
        let mut assembler = Assembler::new();
        for register in [R0, R2, R3, R4, R5, R6, R7, R8, R9] {
            assembler.set(register, 1);
        }
        for operation in body {
            assembler.push(operation);
        }
        assembler.set(R0, Verdict::Pass as i32);
        assembler.exit();
        let code = assembler.finish().unwrap();
        let spec = ProgramSpec::new("random", ProgramKind::Xdp, code.instructions());
        match Program::load(&ProgramSpec { maps: &maps, ..spec }) {
            Ok(program) => {
                taken += 1;
                program.test_run(&[0; 64], TestContext::default(), 1, &mut []).unwrap();
            }
            Err(error) => {
                refused += 1;
                assert_ne!(error.kind(), sys::Kind::Permission, "{error}");
                assert!(!error.to_string().is_empty());
            }
        }
    }
    assert!(taken >= 100 && refused >= 1_000, "{taken} taken, {refused} refused");
}

#[test]
fn listings_read_as_those_of_the_kernel() {
    let mut assembler = Assembler::new();
    let counts = assembler.declare_map("counts");
    let out = assembler.label("out");
    assembler.note("the type");
    assembler.load(Size::Half, R2, R1, -4);
    assembler.network_order(Size::Half, R2);
    assembler.jump_if32(R2, Comparison::NotEqual, 0x86dd, out);
    assembler.map_value(R3, counts, 8);
    assembler.set(R4, -1);
    assembler.atomic_add(R3, 0, R4);
    assembler.set_wide(R5, 0x1_0000_0000);
    assembler.call(Helper::RANDOM);
    assembler.place(out);
    assembler.compute32(Arithmetic::ShiftRight, R0, R5);
    assembler.exit();
    let listing = "      ; the type
   0: (69) r2 = *(u16 *)(r1 -4)
   1: (dc) r2 = be16 r2
   2: (56) if w2 != 0x86dd goto pc+7
   3: (18) r3 = map[counts][0]+8
   5: (b7) r4 = -1
   6: (db) lock *(u64 *)(r3 +0) += r4
   7: (18) r5 = 0x100000000
   9: (85) call bpf_get_prandom_u32#7
out:
  10: (7c) w0 >>= w5
  11: (95) exit
";
    assert_eq!(assembler.finish().unwrap().to_string(), listing);
}

#[test]
fn mistakes_are_errors() {
    assert_eq!(Assembler::new().finish(), Err(AssemblyError::Empty));

    let mut assembler = Assembler::new();
    let label = assembler.label("nowhere");
    assembler.jump(label);
    let error = assembler.finish().unwrap_err();
    assert_eq!(error, AssemblyError::Unplaced { label: "nowhere".into(), slot: 0 });

    let mut assembler = Assembler::new();
    let label = assembler.here("twice");
    assembler.exit();
    assembler.place(label);
    let error = assembler.finish().unwrap_err();
    assert_eq!(error, AssemblyError::PlacedTwice { label: "twice".into(), first: 0, second: 1 });

    let mut other = Assembler::new();
    let map = other.declare_map("other");
    let mut assembler = Assembler::new();
    assembler.map(R1, map);
    assert_eq!(assembler.finish(), Err(AssemblyError::Foreign { slot: 0 }));

    for (between, fits) in [(32_767, true), (32_768, false)] {
        let mut assembler = Assembler::new();
        let end = assembler.label("end");
        assembler.jump(end);
        for _ in 0..between {
            assembler.set(R0, 0);
        }
        assembler.place(end);
        assembler.exit();
        let error = AssemblyError::TooFar { label: "end".into(), slot: 0, distance: between };
        assert_eq!(assembler.finish().map(drop), if fits { Ok(()) } else { Err(error) });
    }
}

#[test]
fn a_refusal_names_label_and_remark() {
    let mut assembler = Assembler::new();
    assembler.here("begin");
    assembler.load(Size::Word, R2, R1, 0);
    assembler.here("look");
    assembler.note("the first byte");
    assembler.load(Size::Byte, R0, R2, 0);
    assembler.exit();
    let code = assembler.finish().unwrap();
    let error = match code.load_xdp("bad", &[]) {
        Ok(_) => panic!("it was taken"),
        Err(error) if error.kind() == sys::Kind::Permission => {
            return testing::say_skipped("bpf::a_refusal_names_label_and_remark", error);
        }
        Err(error) => error,
    };
    assert_eq!((error.kind(), error.slot()), (sys::Kind::Invalid, Some(1)));
    let text = error.to_string();
    assert!(text.contains("invalid access to packet"), "{text}");
    assert!(text.ends_with("(behind the label «look», at «the first byte»)"), "{text}");
    let explanation = error.explanation();
    assert!(explanation.contains("look:\n; the first byte\n1: (71) r0 = "), "{explanation}");
}
