//! Instructions one after the other, with jumps to places that are not known yet.

use thiserror::Error;

use crate::code::{Code, Mark};
use crate::operation::{
    Arithmetic, Atomic, ByteOrder, Comparison, Helper, Operand, Operation, Register, Size, Width,
};

/// A place to jump to, of the assembler that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Label(u32);

/// A map, of the assembler that declared it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MapPlace(u32);

/// Why instructions are no program.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AssemblyError {
    /// Nothing was written.
    #[error("a program without instructions")]
    Empty,
    /// A jump leads to a label that has no place.
    #[error("the label «{label}» is jumped to at slot {slot}, but it was never placed")]
    Unplaced {
        /// Its name.
        label: String,
        /// Where the jump is.
        slot: usize,
    },
    /// A label was placed a second time.
    #[error("the label «{label}» is placed at slots {first} and {second}")]
    PlacedTwice {
        /// Its name.
        label: String,
        /// Where it was placed,
        first: usize,
        /// and where again.
        second: usize,
    },
    /// A label or map comes from another assembler.
    #[error("slot {slot} names a label or map of another program")]
    Foreign {
        /// Where it is named.
        slot: usize,
    },
    /// A jump reaches 32,767 slots.
    #[error("the jump at slot {slot} to «{label}» is {distance} slots long: 32767 is the most")]
    TooFar {
        /// Its name.
        label: String,
        /// Where the jump is.
        slot: usize,
        /// Its length.
        distance: i64,
    },
}

#[derive(Debug)]
struct Place {
    name: String,
    slot: Option<usize>,
}

/// Writes a program.
///
/// Mistakes are kept until [`Assembler::finish`], which tells the first of them.
#[derive(Debug, Default)]
pub struct Assembler {
    operations: Vec<(Operation, Option<Label>)>,
    slots: usize,
    labels: Vec<Place>,
    maps: Vec<String>,
    notes: Vec<Mark>,
    error: Option<AssemblyError>,
}

impl Assembler {
    /// An empty program.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a label; its name is for people, and need not be the only one of it.
    pub fn label(&mut self, name: &str) -> Label {
        self.labels.push(Place { name: name.to_owned(), slot: None });
        Label(self.labels.len() as u32 - 1)
    }

    /// The next instruction is where `label` leads.
    pub fn place(&mut self, label: Label) {
        let slot = self.slots;
        match self.labels.get_mut(label.0 as usize) {
            None => self.fail(AssemblyError::Foreign { slot }),
            Some(Place { slot: Some(first), name }) => {
                let error =
                    AssemblyError::PlacedTwice { label: name.clone(), first: *first, second: slot };
                self.fail(error);
            }
            Some(place) => place.slot = Some(slot),
        }
    }

    /// Makes a label that leads to the next instruction.
    pub fn here(&mut self, name: &str) -> Label {
        let label = self.label(name);
        self.place(label);
        label
    }

    /// Declares the next one of the program's maps.
    pub fn declare_map(&mut self, name: &str) -> MapPlace {
        self.maps.push(name.to_owned());
        MapPlace(self.maps.len() as u32 - 1)
    }

    /// A remark about the next instruction, for the listing and for errors.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(Mark { slot: self.slots, text: text.into(), is_label: false });
    }

    /// Slots written so far.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Any operation; a jump with the distance that it has.
    pub fn push(&mut self, operation: Operation) {
        self.slots += operation.slots();
        self.operations.push((operation, None));
    }

    /// `destination = constant`, with its sign.
    pub fn set(&mut self, destination: Register, constant: i32) {
        self.compute(Arithmetic::Move, destination, constant);
    }

    /// `destination = source`
    pub fn copy(&mut self, destination: Register, source: Register) {
        self.compute(Arithmetic::Move, destination, source);
    }

    /// `destination = constant`, of 64 bits; in the fewest slots.
    pub fn set_wide(&mut self, destination: Register, constant: u64) {
        match i32::try_from(constant.cast_signed()) {
            Ok(constant) => self.set(destination, constant),
            Err(_) => self.push(Operation::Wide { destination, constant }),
        }
    }

    /// An operation on 64 bits.
    pub fn compute(&mut self, operator: Arithmetic, to: Register, source: impl Into<Operand>) {
        self.arithmetic(Width::Bits64, operator, to, source.into());
    }

    /// An operation on 32 bits; those above become 0.
    pub fn compute32(&mut self, operator: Arithmetic, to: Register, source: impl Into<Operand>) {
        self.arithmetic(Width::Bits32, operator, to, source.into());
    }

    fn arithmetic(&mut self, width: Width, operator: Arithmetic, to: Register, source: Operand) {
        self.push(Operation::Arithmetic { width, operator, destination: to, source });
    }

    /// Puts the lower bytes of a register in network order, or back.
    pub fn network_order(&mut self, size: Size, register: Register) {
        if size != Size::Byte {
            self.push(Operation::Order { order: ByteOrder::Big, size, register });
        }
    }

    /// `destination = map`
    pub fn map(&mut self, destination: Register, map: MapPlace) {
        self.check_map(map);
        self.push(Operation::Map { destination, place: map.0 });
    }

    /// `destination = address of byte offset of the map's only value`
    pub fn map_value(&mut self, destination: Register, map: MapPlace, offset: u32) {
        self.check_map(map);
        self.push(Operation::MapValue { destination, place: map.0, offset });
    }

    /// `destination = *(base + offset)`
    pub fn load(&mut self, size: Size, destination: Register, base: Register, offset: i16) {
        self.push(Operation::Load { size, destination, base, offset });
    }

    /// `*(base + offset) = source`
    pub fn store(&mut self, size: Size, base: Register, offset: i16, source: Register) {
        self.push(Operation::Store { size, base, offset, source });
    }

    /// `*(base + offset) = constant`
    pub fn store_constant(&mut self, size: Size, base: Register, offset: i16, constant: i32) {
        self.push(Operation::StoreConstant { size, base, offset, constant });
    }

    /// `*(base + offset) += source` in 64 bits, whole for all CPUs.
    pub fn atomic_add(&mut self, base: Register, offset: i16, source: Register) {
        let (size, operator, fetches) = (Size::Double, Atomic::Add, false);
        self.push(Operation::Atomic { size, operator, fetches, base, offset, source });
    }

    /// Calls a helper.
    pub fn call(&mut self, helper: Helper) {
        self.push(Operation::Call { helper });
    }

    /// `return r0`
    pub fn exit(&mut self) {
        self.push(Operation::Exit);
    }

    /// Goes to `label`.
    pub fn jump(&mut self, label: Label) {
        self.push_jump(Operation::Jump { distance: 0 }, label);
    }

    /// Goes to `label` if the comparison of 64 bits holds.
    pub fn jump_if(
        &mut self,
        left: Register,
        comparison: Comparison,
        right: impl Into<Operand>,
        label: Label,
    ) {
        self.compare(Width::Bits64, comparison, left, right.into(), label);
    }

    /// Goes to `label` if the comparison of the lower 32 bits holds.
    pub fn jump_if32(
        &mut self,
        left: Register,
        comparison: Comparison,
        right: impl Into<Operand>,
        label: Label,
    ) {
        self.compare(Width::Bits32, comparison, left, right.into(), label);
    }

    fn compare(
        &mut self,
        width: Width,
        comparison: Comparison,
        left: Register,
        right: Operand,
        label: Label,
    ) {
        let distance = 0;
        self.push_jump(Operation::JumpIf { width, comparison, left, right, distance }, label);
    }

    fn push_jump(&mut self, jump: Operation, label: Label) {
        self.operations.push((jump, Some(label)));
        self.slots += 1;
    }

    fn check_map(&mut self, map: MapPlace) {
        if map.0 as usize >= self.maps.len() {
            self.fail(AssemblyError::Foreign { slot: self.slots });
        }
    }

    fn fail(&mut self, error: AssemblyError) {
        self.error.get_or_insert(error);
    }

    /// The program.
    ///
    /// # Errors
    /// [`AssemblyError`]: labels without a place or with two, jumps that are too long, nothing at all.
    pub fn finish(self) -> Result<Code, AssemblyError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.operations.is_empty() {
            return Err(AssemblyError::Empty);
        }
        let mut operations = Vec::with_capacity(self.operations.len());
        let mut slot = 0;
        for (operation, label) in self.operations {
            let operation = match label {
                Some(label) => with_distance(operation, slot, self.labels.get(label.0 as usize))?,
                None => operation,
            };
            slot += operation.slots();
            operations.push(operation);
        }
        let placed = self.labels.into_iter().filter_map(|label| {
            label.slot.map(|slot| Mark { slot, text: label.name, is_label: true })
        });
        let mut marks: Vec<Mark> = placed.chain(self.notes).collect();
        marks.sort_by_key(|mark| (mark.slot, !mark.is_label));
        Ok(Code::new(operations, marks, self.maps))
    }
}

fn with_distance(
    operation: Operation,
    slot: usize,
    label: Option<&Place>,
) -> Result<Operation, AssemblyError> {
    let label = label.ok_or(AssemblyError::Foreign { slot })?;
    let name = || label.name.clone();
    let target = label.slot.ok_or_else(|| AssemblyError::Unplaced { label: name(), slot })?;
    let far = target as i64 - (slot as i64 + 1);
    let distance = i16::try_from(far).map_err(|_| AssemblyError::TooFar {
        label: name(),
        slot,
        distance: far,
    })?;
    Ok(match operation {
        Operation::JumpIf { width, comparison, left, right, .. } => {
            Operation::JumpIf { width, comparison, left, right, distance }
        }
        _ => Operation::Jump { distance },
    })
}
