//! A finished program.

mod refused;

pub use refused::Refused;

use std::fmt;

use sys::bpf::{Binding, Instruction, Map, Program, ProgramKind, ProgramSpec};

use crate::operation::Operation;

/// A label or remark at a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) slot: usize,
    pub(crate) text: String,
    pub(crate) is_label: bool,
}

/// Instructions, with the names of their labels and maps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    operations: Vec<Operation>,
    instructions: Vec<Instruction>,
    /// In the order of their slots.
    marks: Vec<Mark>,
    maps: Vec<String>,
}

impl Code {
    pub(crate) fn new(operations: Vec<Operation>, marks: Vec<Mark>, maps: Vec<String>) -> Self {
        let slots = operations.iter().map(Operation::encode);
        let instructions = slots.flat_map(|slots| [Some(slots.first), slots.second]).flatten();
        Self { instructions: instructions.collect(), operations, marks, maps }
    }

    /// The instructions as the kernel takes them, with maps by their places.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// What they do.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Names of the maps that it wants, in order.
    pub fn maps(&self) -> &[String] {
        &self.maps
    }

    /// Loads it for XDP, with its maps in the order in which they were declared.
    ///
    /// # Errors
    /// [`Refused`], which says at which label and remark the verifier stopped.
    pub fn load_xdp(&self, name: &str, maps: &[&Map]) -> Result<Program, Refused> {
        self.load(&ProgramSpec {
            maps,
            ..ProgramSpec::new(name, ProgramKind::Xdp, &self.instructions)
        })
    }

    /// As [`Code::load_xdp`], for frames of several buffers or for one interface alone.
    ///
    /// # Errors
    /// As [`Code::load_xdp`].
    pub fn load_xdp_for(
        &self,
        name: &str,
        maps: &[&Map],
        takes_several_buffers: bool,
        binding: Binding,
    ) -> Result<Program, Refused> {
        let spec = ProgramSpec::new(name, ProgramKind::Xdp, &self.instructions);
        self.load(&ProgramSpec { maps, takes_several_buffers, binding, ..spec })
    }

    fn load(&self, spec: &ProgramSpec<'_>) -> Result<Program, Refused> {
        Program::load(spec).map_err(|error| Refused::new(error, self))
    }

    fn marks_at(&self, slot: usize) -> impl Iterator<Item = &Mark> {
        let begin = self.marks.partition_point(|mark| mark.slot < slot);
        self.marks.iter().skip(begin).take_while(move |mark| mark.slot == slot)
    }

    /// The last label at or before a slot, and the last remark since then.
    fn last_marks(&self, slot: usize) -> (Option<&str>, Option<&str>) {
        let end = self.marks.partition_point(|mark| mark.slot <= slot);
        let before = self.marks.get(..end).unwrap_or_default();
        let label = before.iter().rposition(|mark| mark.is_label);
        let since = before.get(label.map_or(0, |label| label + 1)..).unwrap_or_default();
        (
            label.and_then(|label| before.get(label)).map(|mark| mark.text.as_str()),
            since.last().map(|mark| mark.text.as_str()),
        )
    }
}

impl fmt::Display for Code {
    /// One instruction a line, with its number, in the notation of `bpftool prog dump xlated`; labels
    /// and remarks stand before the instruction that they belong to.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut slot = 0;
        for operation in &self.operations {
            for mark in self.marks_at(slot) {
                match mark.is_label {
                    true => writeln!(f, "{}:", mark.text)?,
                    false => writeln!(f, "      ; {}", mark.text)?,
                }
            }
            let code = operation.encode().first.code;
            match *operation {
                Operation::Map { destination, place } => {
                    writeln!(f, "{slot:4}: ({code:02x}) {destination} = map[{}]", self.map(place))?;
                }
                Operation::MapValue { destination, place, offset } => {
                    let map = self.map(place);
                    writeln!(f, "{slot:4}: ({code:02x}) {destination} = map[{map}][0]+{offset}")?;
                }
                _ => writeln!(f, "{slot:4}: ({code:02x}) {operation}")?,
            }
            slot += operation.slots();
        }
        Ok(())
    }
}

impl Code {
    fn map(&self, place: u32) -> &str {
        self.maps.get(place as usize).map_or("?", String::as_str)
    }
}
