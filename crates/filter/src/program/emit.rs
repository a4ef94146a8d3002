//! From a graph to instructions.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    ABS, ALU, B, H, IMM, IND, Instruction, JA, JEQ, JGE, JGT, JMP, JSET, KEEP_BYTES, LD, LDX, LEN,
    MEM, MEMORY_WORDS, MISC, MSH, RET, ST, TAX, W, X,
};
use crate::condition::{Operand, Relation, Size, Test, Value, ValueId, Values, Variable};
use crate::graph::{Graph, Node, Target};
use crate::syntax::Operator;

/// The longest jump of an instruction that asks something.
const JUMP_MAX: usize = 255;

/// The instructions of `graph`; `None` if memory does not suffice.
pub(super) fn emit(graph: &Graph) -> Option<Vec<Instruction>> {
    let order = graph.order();
    let variables = Variables::of(graph, &order);
    if variables.count > MEMORY_WORDS {
        return None;
    }
    let mut known: Vec<Option<Registers>> = vec![None; graph.nodes.len()];
    let mut blocks = Vec::with_capacity(order.len());
    let mut emitter = Emitter { values: &graph.values, variables: &variables, code: Vec::new() };
    let mut start = Registers::default();
    if !variables.unset.is_empty() {
        emitter.code.push(Instruction::new(LD | IMM, 0));
        for variable in &variables.unset {
            emitter.code.push(Instruction::new(ST, variables.word(*variable)));
        }
        start.a = None;
    }
    let prologue = std::mem::take(&mut emitter.code);
    arrive(&mut known, graph.root, &start);
    for number in &order {
        let node = graph.nodes[*number as usize];
        let mut registers = known[*number as usize].take().unwrap_or_default();
        let jump = emitter.node(&node, &mut registers)?;
        for target in node.targets() {
            arrive(&mut known, target, &registers);
        }
        blocks.push(Block { number: *number, code: std::mem::take(&mut emitter.code), jump });
    }
    Some(link(graph, prologue, &blocks))
}

/// What the registers hold for certain.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Registers {
    /// A value and the mask that was put on it.
    a: Option<(ValueId, u32)>,
    x: Option<ValueId>,
}

fn arrive(known: &mut [Option<Registers>], target: Target, registers: &Registers) {
    let Target::Node(number) = target else { return };
    let place = &mut known[number as usize];
    *place = Some(match place.take() {
        None => *registers,
        Some(before) => Registers {
            a: before.a.filter(|a| registers.a == Some(*a)),
            x: before.x.filter(|x| registers.x == Some(*x)),
        },
    });
}

/// The variables' words of memory.
struct Variables {
    words: BTreeMap<Variable, u32>,
    count: u32,
    /// Those that may be read before they are set.
    unset: BTreeSet<Variable>,
}

impl Variables {
    fn of(graph: &Graph, order: &[u32]) -> Self {
        let mut words = BTreeMap::new();
        let mut unset = BTreeSet::new();
        // Those that are set on all ways to a node.
        let mut set: Vec<Option<BTreeSet<Variable>>> = vec![None; graph.nodes.len()];
        for number in order {
            let mut here = set[*number as usize].take().unwrap_or_default();
            let node = graph.nodes[*number as usize];
            let mut read = BTreeSet::new();
            match node {
                Node::Set { variable, value, .. } => {
                    variables_in(&graph.values, value, &mut read);
                    unset.extend(read.difference(&here).copied());
                    here.insert(variable);
                    read.insert(variable);
                }
                Node::Test { test, .. } => {
                    variables_in(&graph.values, test.value, &mut read);
                    if let Operand::Value(value) = test.operand {
                        variables_in(&graph.values, value, &mut read);
                    }
                    unset.extend(read.difference(&here).copied());
                }
            }
            for variable in read {
                let next = words.len() as u32;
                words.entry(variable).or_insert(next);
            }
            for target in node.targets() {
                let Target::Node(next) = target else { continue };
                let place = &mut set[next as usize];
                *place = Some(match place.take() {
                    None => here.clone(),
                    Some(before) => before.intersection(&here).copied().collect(),
                });
            }
        }
        Self { count: words.len() as u32, words, unset }
    }

    fn word(&self, variable: Variable) -> u32 {
        self.words.get(&variable).copied().unwrap_or_default()
    }
}

fn variables_in(values: &Values, value: ValueId, into: &mut BTreeSet<Variable>) {
    match values.get(value) {
        Value::Variable(variable) => {
            into.insert(variable);
        }
        Value::Load { at: Some(at), .. } => variables_in(values, at, into),
        Value::Operation(_, left, right) => {
            variables_in(values, left, into);
            variables_in(values, right, into);
        }
        _ => {}
    }
}

/// A node's instructions, and how they end.
struct Block {
    number: u32,
    code: Vec<Instruction>,
    jump: Option<Jump>,
}

/// The question at a block's end.
#[derive(Clone, Copy)]
struct Jump {
    code: u16,
    k: u32,
    /// Whether yes and no are exchanged.
    is_reversed: bool,
}

struct Emitter<'a> {
    values: &'a Values,
    variables: &'a Variables,
    code: Vec<Instruction>,
}

impl Emitter<'_> {
    fn push(&mut self, code: u16, k: u32) {
        self.code.push(Instruction::new(code, k));
    }

    fn node(&mut self, node: &Node, registers: &mut Registers) -> Option<Option<Jump>> {
        match node {
            Node::Test { test, .. } => self.test(test, registers).map(Some),
            Node::Set { variable, value, .. } => {
                self.fill_a(*value, 0, registers)?;
                self.push(ST, self.variables.word(*variable));
                registers.x = registers.x.filter(|held| !self.values.depends_on(*held, *variable));
                registers.a =
                    registers.a.filter(|(held, _)| !self.values.depends_on(*held, *variable));
                Some(None)
            }
        }
    }

    fn test(&mut self, test: &Test, registers: &mut Registers) -> Option<Jump> {
        let code = JMP
            | match test.relation {
                Relation::Equal => JEQ,
                Relation::Greater => JGT,
                Relation::GreaterEqual => JGE,
            };
        match test.operand {
            Operand::Constant(0)
                if test.relation == Relation::Equal && test.mask != u32::MAX && test.mask != 0 =>
            {
                // Bits that are not set: no mask needs to be put on A.
                self.load(test.value, u32::MAX, registers)?;
                Some(Jump { code: JMP | JSET, k: test.mask, is_reversed: true })
            }
            Operand::Constant(k) => {
                self.load(test.value, test.mask, registers)?;
                Some(Jump { code, k, is_reversed: false })
            }
            Operand::Value(value) => {
                registers.a = None;
                if self.is_index(value) {
                    self.fill_a(test.value, 0, registers)?;
                    self.mask(test.mask);
                    self.fill_x(value, 0, registers)?;
                } else {
                    self.fill_a(value, 0, registers)?;
                    let word = self.word(0)?;
                    self.push(ST, word);
                    self.fill_a(test.value, 1, registers)?;
                    self.mask(test.mask);
                    self.push(LDX | MEM, word);
                    registers.x = None;
                }
                registers.a = None;
                Some(Jump { code: code | X, k: 0, is_reversed: false })
            }
        }
    }

    fn mask(&mut self, mask: u32) {
        if mask != u32::MAX {
            self.push(ALU | 0x50, mask);
        }
    }

    /// Puts the masked value into A, if it is not there.
    fn load(&mut self, value: ValueId, mask: u32, registers: &mut Registers) -> Option<()> {
        if registers.a == Some((value, mask)) {
            return Some(());
        }
        if registers.a != Some((value, u32::MAX)) {
            self.fill_a(value, 0, registers)?;
        }
        self.mask(mask);
        registers.a = Some((value, mask));
        Some(())
    }

    /// Whether X takes it without A.
    fn is_index(&self, value: ValueId) -> bool {
        matches!(
            self.values.get(value),
            Value::HeaderBytes { .. } | Value::Variable(_) | Value::Constant(_)
        )
    }

    /// Puts a value into A, with `used` words of memory behind the variables in use.
    fn fill_a(&mut self, value: ValueId, used: u32, registers: &mut Registers) -> Option<()> {
        match self.values.get(value) {
            Value::Constant(constant) => self.push(LD | IMM, constant),
            Value::Length => self.push(LD | LEN, 0),
            Value::Variable(variable) => self.push(LD | MEM, self.variables.word(variable)),
            Value::Load { at: None, offset, size } => self.push(LD | ABS | code_of(size), offset),
            Value::Load { at: Some(at), offset, size } => {
                self.fill_x(at, used, registers)?;
                self.push(LD | IND | code_of(size), offset);
            }
            Value::HeaderBytes { .. } => {
                self.fill_x(value, used, registers)?;
                self.push(MISC | 0x80, 0);
            }
            Value::Operation(operator, left, right) => {
                self.operation(operator, left, right, used, registers)?;
            }
        }
        registers.a = Some((value, u32::MAX));
        Some(())
    }

    fn operation(
        &mut self,
        operator: Operator,
        left: ValueId,
        right: ValueId,
        used: u32,
        registers: &mut Registers,
    ) -> Option<()> {
        let code = ALU | code_of_operator(operator);
        if let Some(constant) = self.values.constant(right).filter(|k| is_immediate(operator, *k)) {
            self.fill_a(left, used, registers)?;
            self.push(code, constant);
        } else if self.is_index(right) {
            self.fill_a(left, used, registers)?;
            self.fill_x(right, used, registers)?;
            self.push(code | X, 0);
        } else if words(self.values, left) > words(self.values, right) {
            self.fill_a(left, used, registers)?;
            let word = self.word(used)?;
            self.push(ST, word);
            self.fill_a(right, used + 1, registers)?;
            self.push(MISC | TAX, 0);
            registers.x = None;
            self.push(LD | MEM, word);
            self.push(code | X, 0);
        } else {
            self.fill_a(right, used, registers)?;
            let word = self.word(used)?;
            self.push(ST, word);
            self.fill_a(left, used + 1, registers)?;
            self.push(LDX | MEM, word);
            registers.x = None;
            self.push(code | X, 0);
        }
        registers.a = None;
        Some(())
    }

    /// Puts a value into X; A may change.
    fn fill_x(&mut self, value: ValueId, used: u32, registers: &mut Registers) -> Option<()> {
        if registers.x == Some(value) {
            return Some(());
        }
        match self.values.get(value) {
            Value::HeaderBytes { offset } => self.push(LDX | MSH | B, offset),
            Value::Variable(variable) => self.push(LDX | MEM, self.variables.word(variable)),
            Value::Constant(constant) => self.push(LDX | IMM, constant),
            _ => {
                self.fill_a(value, used, registers)?;
                self.push(MISC | TAX, 0);
            }
        }
        registers.x = Some(value);
        Some(())
    }

    /// A word of memory behind those of the variables.
    fn word(&self, used: u32) -> Option<u32> {
        let word = self.variables.count + used;
        (word < MEMORY_WORDS).then_some(word)
    }
}

/// Whether an operation may have this constant in its instruction: the machine checks these
/// for what it would do with them in X.
fn is_immediate(operator: Operator, constant: u32) -> bool {
    match operator {
        Operator::Div | Operator::Mod => constant != 0,
        Operator::ShiftLeft | Operator::ShiftRight => constant < 32,
        _ => true,
    }
}

/// Words of memory that computing a value takes, if the larger side of an operation comes first.
fn words(values: &Values, value: ValueId) -> u32 {
    match values.get(value) {
        Value::Load { at: Some(at), .. } => words(values, at),
        Value::Operation(_, left, right) => {
            let (left, right_words) = (words(values, left), words(values, right));
            match values.get(right) {
                Value::Constant(_) | Value::Variable(_) | Value::HeaderBytes { .. } => left,
                _ => left.max(right_words).max(1 + left.min(right_words)),
            }
        }
        _ => 0,
    }
}

fn code_of(size: Size) -> u16 {
    match size {
        Size::Byte => B,
        Size::Half => H,
        Size::Word => W,
    }
}

fn code_of_operator(operator: Operator) -> u16 {
    match operator {
        Operator::Add => 0x00,
        Operator::Sub => 0x10,
        Operator::Mul => 0x20,
        Operator::Div => 0x30,
        Operator::Or => 0x40,
        Operator::And => 0x50,
        Operator::ShiftLeft => 0x60,
        Operator::ShiftRight => 0x70,
        Operator::Mod => 0x90,
        Operator::Xor => 0xa0,
    }
}

/// Puts the blocks one after the other and fills in the jumps. A block whose jump would be too long
/// gets one more instruction for each such way, that has room for it.
fn link(graph: &Graph, prologue: Vec<Instruction>, blocks: &[Block]) -> Vec<Instruction> {
    let mut is_long = vec![[false; 2]; blocks.len()];
    loop {
        let layout = Layout::of(graph, prologue.len(), blocks, &is_long);
        let mut is_stable = true;
        for (place, block) in blocks.iter().enumerate() {
            let Some(jump) = block.jump else { continue };
            let end = layout.starts[place] + block.code.len() + 1;
            for (way, target) in ways(graph, block, jump).into_iter().enumerate() {
                let distance = layout.place(target) - end;
                if distance > JUMP_MAX && !is_long[place][way] {
                    is_long[place][way] = true;
                    is_stable = false;
                }
            }
        }
        if is_stable {
            return layout.code(graph, prologue, blocks, &is_long);
        }
    }
}

/// Where a block's question leads: jt first, then jf.
fn ways(graph: &Graph, block: &Block, jump: Jump) -> [Target; 2] {
    let [yes, no] = graph.nodes[block.number as usize].targets();
    if jump.is_reversed { [no, yes] } else { [yes, no] }
}

struct Layout {
    starts: Vec<usize>,
    places: Vec<usize>,
    /// Of the two ends.
    accept: usize,
    reject: usize,
    /// Where to begin, which may be an end.
    root: Target,
}

impl Layout {
    fn of(graph: &Graph, first: usize, blocks: &[Block], is_long: &[[bool; 2]]) -> Self {
        let mut starts = Vec::with_capacity(blocks.len());
        let mut places = vec![0; graph.nodes.len()];
        let mut at = first;
        for (place, block) in blocks.iter().enumerate() {
            starts.push(at);
            places[block.number as usize] = at;
            at += block.code.len();
            at += match block.jump {
                Some(_) => 1 + is_long[place].iter().filter(|long| **long).count(),
                // To the next block it falls.
                None => usize::from(!falls(graph, blocks, place)),
            };
        }
        Self { starts, places, accept: at, reject: at + 1, root: graph.root }
    }

    fn place(&self, target: Target) -> usize {
        match target {
            Target::Accept => self.accept,
            Target::Reject => self.reject,
            Target::Node(number) => self.places[number as usize],
        }
    }

    fn code(
        &self,
        graph: &Graph,
        mut code: Vec<Instruction>,
        blocks: &[Block],
        is_long: &[[bool; 2]],
    ) -> Vec<Instruction> {
        match self.root {
            Target::Reject => return vec![Instruction::new(RET, 0)],
            Target::Accept => return vec![Instruction::new(RET, KEEP_BYTES)],
            Target::Node(_) => {}
        }
        for (place, block) in blocks.iter().enumerate() {
            code.extend(&block.code);
            let end = code.len() + 1;
            let Some(jump) = block.jump else {
                if !falls(graph, blocks, place) {
                    let [next, _] = graph.nodes[block.number as usize].targets();
                    code.push(Instruction::new(JMP | JA, (self.place(next) - end) as u32));
                }
                continue;
            };
            let mut trampolines = Vec::new();
            let mut jumps = [0u8; 2];
            for (way, target) in ways(graph, block, jump).into_iter().enumerate() {
                let distance = self.place(target) - end;
                jumps[way] = match is_long[place][way] {
                    false => distance as u8,
                    true => {
                        trampolines.push(distance);
                        trampolines.len() as u8 - 1
                    }
                };
            }
            let [jt, jf] = jumps;
            code.push(Instruction { code: jump.code, jt, jf, k: jump.k });
            for (number, distance) in trampolines.into_iter().enumerate() {
                code.push(Instruction::new(JMP | JA, (distance - number - 1) as u32));
            }
        }
        code.push(Instruction::new(RET, KEEP_BYTES));
        code.push(Instruction::new(RET, 0));
        code
    }
}

/// Whether what follows the block is the next one, or the end that comes first.
fn falls(graph: &Graph, blocks: &[Block], place: usize) -> bool {
    let [next, _] = graph.nodes[blocks[place].number as usize].targets();
    match (next, blocks.get(place + 1)) {
        (Target::Node(number), Some(following)) => following.number == number,
        (Target::Accept, None) => true,
        _ => false,
    }
}
