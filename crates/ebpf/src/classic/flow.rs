//! Which ways lead through a filter, and what a frame must have on each of them.

use super::step::{Answer, Step};

/// Where a way leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Accept,
    Reject,
    /// The block of this number.
    Block(usize),
}

/// Steps that follow each other, with the ways at their end.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) first: usize,
    /// One step behind the last.
    pub(super) end: usize,
    /// Bytes without which a frame is rejected, whatever way it takes from here; `u32::MAX` if it is in any case.
    pub(super) needs: u32,
    /// The same behind X, as X is at the beginning.
    pub(super) needs_indexed: u32,
}

/// What is read before it is set on some way: bits 0 to 15 words of memory, then A and X.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Unset(pub(super) u32);

pub(super) const A: u32 = 16;
pub(super) const X: u32 = 17;

impl Unset {
    pub(super) fn has(self, number: u32) -> bool {
        self.0 >> number & 1 == 1
    }
}

/// The blocks of a filter, in order. Jumps lead forward only.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) blocks: Vec<Block>,
    /// Of each step that is the first of a block, the block's number.
    numbers: Vec<usize>,
    pub(super) unset: Unset,
}

impl Flow {
    pub(super) fn of(steps: &[Step]) -> Self {
        let mut flow = Self::divided(steps);
        for number in (0..flow.blocks.len()).rev() {
            let block = flow.blocks[number].clone();
            let own = &steps[block.first..block.end];
            let ahead = flow.least_ahead(steps, &block, |block| block.needs);
            let needs = own.iter().map(Step::needs).max().unwrap_or(0);
            flow.blocks[number].needs = needs.max(ahead);
            flow.blocks[number].needs_indexed = flow.needs_indexed(steps, &block, block.first);
        }
        flow.unset = flow.read_unset(steps);
        flow
    }

    fn divided(steps: &[Step]) -> Self {
        let mut begins = vec![false; steps.len() + 1];
        begins[0] = true;
        for (place, step) in steps.iter().enumerate() {
            begins[place + 1] |= step.ends();
            match *step {
                Step::Jump(target) => begins[target] = true,
                Step::Test { yes, no, .. } => (begins[yes], begins[no]) = (true, true),
                _ => {}
            }
        }
        let firsts: Vec<usize> = (0..steps.len()).filter(|place| begins[*place]).collect();
        let ends = firsts.iter().skip(1).copied().chain([steps.len()]);
        let blocks: Vec<Block> = firsts
            .iter()
            .zip(ends)
            .map(|(&first, end)| Block { first, end, needs: 0, needs_indexed: 0 })
            .collect();
        let mut numbers = vec![0; steps.len()];
        for (number, block) in blocks.iter().enumerate() {
            numbers[block.first] = number;
        }
        Self { blocks, numbers, unset: Unset::default() }
    }

    /// Where a jump to a step leads: to the end itself, if the step is one or leads to no other.
    pub(super) fn target(&self, steps: &[Step], place: usize) -> Target {
        let number = self.numbers[place];
        match steps[place] {
            Step::Return(Answer::Accept) => Target::Accept,
            Step::Return(Answer::Reject) => Target::Reject,
            _ if self.blocks[number].needs == u32::MAX => Target::Reject,
            _ => Target::Block(number),
        }
    }

    /// Where the ways at the end of a block lead: where there is one way only, it is told twice.
    pub(super) fn targets(&self, steps: &[Step], block: &Block) -> [Target; 2] {
        match steps[block.end - 1] {
            Step::Jump(target) => [self.target(steps, target); 2],
            Step::Test { yes, no, .. } => [self.target(steps, yes), self.target(steps, no)],
            Step::Return(Answer::Accept) => [Target::Accept; 2],
            Step::Return(Answer::Reject) => [Target::Reject; 2],
            Step::Return(Answer::ByA) => [Target::Accept, Target::Reject],
            _ => [self.target(steps, block.end); 2],
        }
    }

    /// The least of what the ways from a block need.
    fn least_ahead(&self, steps: &[Step], block: &Block, need: impl Fn(&Block) -> u32) -> u32 {
        let of = |target| match target {
            Target::Accept => 0,
            Target::Reject => u32::MAX,
            Target::Block(number) => need(&self.blocks[number]),
        };
        let [yes, no] = self.targets(steps, block);
        of(yes).min(of(no))
    }

    /// Bytes behind X, as X is before step `from` of a block, without which a frame is rejected.
    pub(super) fn needs_indexed(&self, steps: &[Step], block: &Block, from: usize) -> u32 {
        let mut needs = 0;
        for step in &steps[from..block.end] {
            if step.sets_index() {
                return needs;
            }
            needs = needs.max(step.needs_indexed());
        }
        needs.max(self.least_ahead(steps, block, |block| block.needs_indexed))
    }

    /// The ends that answers lead to, on any way from the first step.
    pub(super) fn ends(&self, steps: &[Step]) -> Vec<Target> {
        let mut is_reached = vec![false; self.blocks.len()];
        let mut ends = Vec::new();
        let mut reach = |target, is_reached: &mut Vec<bool>| match target {
            Target::Block(number) => is_reached[number] = true,
            end => ends.push(end),
        };
        reach(self.target(steps, 0), &mut is_reached);
        for number in 0..self.blocks.len() {
            if is_reached[number] {
                for target in self.targets(steps, &self.blocks[number]) {
                    reach(target, &mut is_reached);
                }
            }
        }
        ends
    }

    fn read_unset(&self, steps: &[Step]) -> Unset {
        // Per block what is set on all ways to it; `None` where no way leads.
        let mut known: Vec<Option<u32>> = vec![None; self.blocks.len()];
        known[0] = Some(0);
        let mut unset = 0;
        for (number, block) in self.blocks.iter().enumerate() {
            let Some(mut set) = known[number] else { continue };
            for step in &steps[block.first..block.end] {
                let (read, written) = accesses(step);
                unset |= read & !set;
                set |= written;
            }
            for target in self.targets(steps, block) {
                if let Target::Block(next) = target {
                    known[next] = Some(known[next].map_or(set, |known| known & set));
                }
            }
        }
        Unset(unset)
    }
}

/// What a step reads and what it sets, as bits of [`Unset`].
fn accesses(step: &Step) -> (u32, u32) {
    let (a, x) = (1 << A, 1 << X);
    let index = |source| if source == super::step::Source::Index { x } else { 0 };
    match *step {
        Step::Load { .. } | Step::Constant(_) | Step::Length | Step::Interface => (0, a),
        Step::LoadIndexed { .. } | Step::FromIndex => (x, a),
        Step::Memory(word) => (1 << word, a),
        Step::IndexMemory(word) => (1 << word, x),
        Step::IndexConstant(_) | Step::IndexLength | Step::IndexHeader(_) => (0, x),
        Step::Store(word) => (a, 1 << word),
        Step::StoreIndex(word) => (x, 1 << word),
        Step::Compute(_, source) => (a | index(source), a),
        Step::Negate => (a, a),
        Step::ToIndex => (a, x),
        Step::Test { source, .. } => (a | index(source), 0),
        Step::Return(Answer::ByA) => (a, 0),
        Step::Return(_) | Step::Jump(_) | Step::Never => (0, 0),
    }
}
