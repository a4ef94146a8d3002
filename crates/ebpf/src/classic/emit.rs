//! Writes the blocks of a filter.

use super::FRAME_BYTES_MAX;
use super::flow::{self, Block, Flow, Target};
use super::step::{Source, Step, bytes};
use crate::assembler::{Assembler, Label};
use crate::operation::Register::{R0, R1, R2, R5, R10};
use crate::operation::{Arithmetic, Comparison, Operand, Operation, Register, Size, Width};
use crate::part::{INTERFACE, Packet};

/// The accumulator,
const A: Register = R0;
/// the index,
const X: Register = R1;
/// what a question needs,
const TEMPORARY: Register = R2;
/// and the address that lies X behind the beginning of the frame.
const INDEXED: Register = R5;

/// The most that X can be after the length of an IPv4 header was put there.
const HEADER_BYTES_MAX: u32 = 60;

/// What is known at a place, on whatever way it was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Facts {
    /// Bytes that the frame has at least.
    checked: u32,
    /// What [`INDEXED`] is good for, if it is set.
    indexed: Option<Indexed>,
    /// X is not more.
    index_max: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Indexed {
    /// Bytes that the frame has at least behind that address.
    checked: u32,
    /// Bytes up to which the verifier follows it.
    room: u32,
}

impl Facts {
    const NONE: Self = Self { checked: 0, indexed: None, index_max: u32::MAX };

    fn of_both(self, other: Self) -> Self {
        let indexed = self.indexed.zip(other.indexed).map(|(one, two)| Indexed {
            checked: one.checked.min(two.checked),
            room: one.room.min(two.room),
        });
        Self {
            checked: self.checked.min(other.checked),
            indexed,
            index_max: self.index_max.max(other.index_max),
        }
    }
}

pub(super) struct Emitter<'a> {
    assembler: &'a mut Assembler,
    packet: &'a Packet,
    accept: Label,
    reject: Label,
    steps: &'a [Step],
    flow: &'a Flow,
    labels: Vec<Label>,
    /// Per block what is known on all ways that were written so far; `None` if none leads there.
    known: Vec<Option<Facts>>,
    facts: Facts,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(
        assembler: &'a mut Assembler,
        packet: &'a Packet,
        accept: Label,
        reject: Label,
        steps: &'a [Step],
        flow: &'a Flow,
    ) -> Self {
        let label = |block: &Block| assembler.label(&format!("filter_{}", block.first));
        let labels = flow.blocks.iter().map(label).collect();
        let known = vec![None; flow.blocks.len()];
        let facts = Facts::NONE;
        Self { assembler, packet, accept, reject, steps, flow, labels, known, facts }
    }

    pub(super) fn emit(mut self) {
        self.use_both_ends();
        self.set_what_is_read_unset();
        match self.flow.target(self.steps, 0) {
            Target::Block(_) => self.known[0] = Some(Facts::NONE),
            end => self.go(end),
        }
        for number in 0..self.flow.blocks.len() {
            // Blocks to which no way leads are refused by the verifier.
            if let Some(facts) = self.known[number] {
                self.facts = facts;
                self.block(number);
            }
        }
    }

    fn set_what_is_read_unset(&mut self) {
        let unset = self.flow.unset;
        for word in (0..flow::A).filter(|word| unset.has(*word)) {
            self.assembler.store_constant(Size::Word, R10, place_of(word), 0);
        }
        for (number, register) in [(flow::A, A), (flow::X, X)] {
            if unset.has(number) {
                self.assembler.set(register, 0);
            }
        }
    }

    fn block(&mut self, number: usize) {
        let block = &self.flow.blocks[number];
        self.assembler.place(self.labels[number]);
        if block.needs > self.facts.checked {
            self.require(self.packet.data, block.needs);
            self.facts.checked = block.needs;
        }
        for place in block.first..block.end {
            self.step(block, place);
        }
        let targets = self.flow.targets(self.steps, block);
        for target in targets {
            if let Target::Block(next) = target {
                let known = &mut self.known[next];
                *known = Some(known.map_or(self.facts, |known| known.of_both(self.facts)));
            }
        }
        let next = (number + 1..self.known.len()).find(|next| self.known[*next].is_some());
        self.leave(block, targets, next.map(Target::Block));
    }

    /// Goes where the block's last step says; `next` is what is written behind it.
    fn leave(&mut self, block: &Block, [yes, no]: [Target; 2], next: Option<Target>) {
        if yes == no {
            if next != Some(yes) {
                self.go(yes);
            }
            return;
        }
        let (comparison, right) = match self.steps[block.end - 1] {
            Step::Test { comparison, source, .. } => (comparison, operand(source)),
            // A return of A.
            _ => (Comparison::NotEqual, Operand::Constant(0)),
        };
        let (comparison, to, other) = match comparison.opposite() {
            Some(opposite) if next == Some(yes) => (opposite, no, yes),
            _ => (comparison, yes, no),
        };
        let label = self.label(to);
        self.assembler.jump_if32(A, comparison, right, label);
        if next != Some(other) {
            self.go(other);
        }
    }

    fn go(&mut self, target: Target) {
        let label = self.label(target);
        self.assembler.jump(label);
    }

    fn label(&self, target: Target) -> Label {
        match target {
            Target::Accept => self.accept,
            Target::Reject => self.reject,
            Target::Block(number) => self.labels[number],
        }
    }

    /// The verifier refuses places to which no jump leads: to an end that no answer leads to leads a jump that
    /// is never taken.
    fn use_both_ends(&mut self) {
        let ends = self.flow.ends(self.steps);
        for (end, label) in [(Target::Accept, self.accept), (Target::Reject, self.reject)] {
            if !ends.contains(&end) {
                self.assembler.set(A, 0);
                self.assembler.jump_if(A, Comparison::NotEqual, 0, label);
            }
        }
    }

    fn step(&mut self, block: &Block, place: usize) {
        let step = self.steps[place];
        match step {
            Step::Load { size, offset } => self.load(size, A, self.packet.data, offset),
            Step::LoadIndexed { size, offset } => {
                self.index(self.flow.needs_indexed(self.steps, block, place));
                self.load(size, A, INDEXED, offset);
            }
            Step::Constant(constant) => self.set(A, constant),
            Step::IndexConstant(constant) => self.set(X, constant),
            Step::Length => self.copy_length(A),
            Step::IndexLength => self.copy_length(X),
            Step::Interface => {
                self.assembler.load(Size::Word, A, self.packet.context, INTERFACE);
            }
            Step::Memory(word) => self.assembler.load(Size::Word, A, R10, place_of(word)),
            Step::IndexMemory(word) => self.assembler.load(Size::Word, X, R10, place_of(word)),
            Step::Store(word) => self.assembler.store(Size::Word, R10, place_of(word), A),
            Step::StoreIndex(word) => self.assembler.store(Size::Word, R10, place_of(word), X),
            Step::IndexHeader(offset) => {
                self.load(Size::Byte, X, self.packet.data, offset);
                self.assembler.compute32(Arithmetic::And, X, 0xf);
                self.assembler.compute32(Arithmetic::ShiftLeft, X, 2);
            }
            Step::Compute(operator, source) => self.compute(operator, source),
            Step::Negate => {
                self.assembler.push(Operation::Negate { width: Width::Bits32, register: A });
            }
            Step::ToIndex => self.assembler.compute32(Arithmetic::Move, X, A),
            Step::FromIndex => self.assembler.compute32(Arithmetic::Move, A, X),
            // A block with the former is not written; the others are its end.
            Step::Never | Step::Jump(_) | Step::Test { .. } | Step::Return(_) => {}
        }
        if step.sets_index() {
            self.facts.indexed = None;
            self.facts.index_max = match step {
                Step::IndexConstant(constant) => constant,
                Step::IndexHeader(_) => HEADER_BYTES_MAX,
                _ => u32::MAX,
            };
        }
    }

    fn set(&mut self, register: Register, constant: u32) {
        self.assembler.compute32(Arithmetic::Move, register, constant.cast_signed());
    }

    fn copy_length(&mut self, register: Register) {
        if let Some(length) = self.packet.length {
            self.assembler.compute32(Arithmetic::Move, register, length);
        }
    }

    /// Goes on only if the frame has `bytes` from `base` on.
    fn require(&mut self, base: Register, bytes: u32) {
        self.assembler.copy(TEMPORARY, base);
        self.assembler.compute(Arithmetic::Add, TEMPORARY, bytes.cast_signed());
        self.assembler.jump_if(TEMPORARY, Comparison::Greater, self.packet.end, self.reject);
    }

    /// Makes [`INDEXED`] good for `bytes`.
    fn index(&mut self, bytes: u32) {
        let bytes = bytes.min(FRAME_BYTES_MAX);
        let indexed = match self.facts.indexed {
            Some(indexed) if bytes <= indexed.room => indexed,
            _ => self.set_indexed(bytes),
        };
        let checked = indexed.checked.max(bytes);
        if checked > indexed.checked {
            self.require(INDEXED, bytes);
        }
        self.facts.indexed = Some(Indexed { checked, ..indexed });
    }

    fn set_indexed(&mut self, bytes: u32) -> Indexed {
        let most = FRAME_BYTES_MAX - bytes;
        if self.facts.index_max > most {
            // What is beyond is longer than any frame.
            self.assembler.jump_if(X, Comparison::Greater, most.cast_signed(), self.reject);
            self.facts.index_max = most;
        }
        self.assembler.copy(INDEXED, self.packet.data);
        self.assembler.compute(Arithmetic::Add, INDEXED, X);
        Indexed { checked: 0, room: FRAME_BYTES_MAX - self.facts.index_max }
    }

    /// Reads what was made sure of.
    fn load(&mut self, size: Size, to: Register, base: Register, offset: u32) {
        match i16::try_from(offset) {
            Ok(offset) => self.assembler.load(size, to, base, offset),
            Err(_) => {
                self.assembler.copy(TEMPORARY, base);
                self.assembler.compute(Arithmetic::Add, TEMPORARY, offset.cast_signed());
                self.assembler.load(size, to, TEMPORARY, 0);
            }
        }
        debug_assert!(bytes(size) <= 4);
        self.assembler.network_order(size, to);
    }

    fn compute(&mut self, operator: Arithmetic, source: Source) {
        match (operator, source) {
            (Arithmetic::Div | Arithmetic::Mod, Source::Index) => {
                self.assembler.jump_if32(X, Comparison::Equal, 0, self.reject);
                self.assembler.compute32(operator, A, X);
            }
            (Arithmetic::ShiftLeft | Arithmetic::ShiftRight, Source::Index) => {
                let (far, end) =
                    (self.assembler.label("shift_out"), self.assembler.label("shifted"));
                self.assembler.jump_if32(X, Comparison::Greater, 31, far);
                self.assembler.compute32(operator, A, X);
                self.assembler.jump(end);
                self.assembler.place(far);
                self.assembler.set(A, 0);
                self.assembler.place(end);
            }
            _ => self.assembler.compute32(operator, A, operand(source)),
        }
    }
}

fn operand(source: Source) -> Operand {
    match source {
        Source::Constant(constant) => Operand::Constant(constant.cast_signed()),
        Source::Index => Operand::Register(X),
    }
}

/// Where a word of memory lies on the stack.
fn place_of(word: u32) -> i16 {
    4 * word as i16 - 64
}
