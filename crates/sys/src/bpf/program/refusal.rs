//! Why a program was not loaded, in words that help.

use std::fmt;
use std::io;

use super::ProgramSpec;
use crate::bpf::rights;
use crate::{Error, Kind};

/// A program that the kernel did not take.
#[derive(Debug)]
pub struct LoadError {
    error: Error,
    log: String,
    instruction: Option<usize>,
}

/// What the verifier's most frequent complaints mean for somebody who asked for a job, not for a program.
const MEANINGS: [(&str, Kind, &str); 6] = [
    (
        "prohibited for !root",
        Kind::Permission,
        "a program that computes places in frames needs CAP_PERFMON, too: run as root, or give the \
         right once with: setcap cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw+ep PROGRAM",
    ),
    (
        "BPF program is too large",
        Kind::NoSpace,
        "the verifier gave up after a million steps: make the filter simpler or split the job",
    ),
    ("too complex", Kind::NoSpace, "it has too many branches: make the filter simpler"),
    (
        "unknown func",
        Kind::Unsupported,
        "this kernel is older than a function that the program calls",
    ),
    (
        "invalid func",
        Kind::Unsupported,
        "this kernel is older than a function that the program calls",
    ),
    (
        "kernel subsystem misconfigured",
        Kind::Unsupported,
        "this kernel was built without what the program needs",
    ),
];
/// `ENOTSUPP`, which the C library does not know: the translator to machine code has no such instruction.
const NOT_TRANSLATABLE: i32 = 524;

impl LoadError {
    pub(super) fn new(spec: &ProgramSpec<'_>, source: io::Error, log: String) -> Self {
        let action = format!(
            "loading the program {} of {} instructions",
            spec.name,
            spec.instructions.len()
        );
        let instruction = last_instruction(&log);
        let said = said(&log);
        let number = source.raw_os_error();
        let error = match said.is_empty() {
            true => Error::new(action, source),
            false => Error::new(
                format!("{action}: the kernel's verifier said «{said}»{}", at(instruction)),
                source,
            ),
        };
        let meaning = MEANINGS.iter().find(|(text, ..)| said.contains(text));
        let error = match (meaning, number) {
            (Some((_, kind, remedy)), _) => error.with_kind(*kind).remedy(*remedy),
            (None, Some(libc::EPERM)) => rights::explained(error),
            (None, Some(libc::E2BIG)) => error
                .with_kind(Kind::NoSpace)
                .remedy("the kernel takes a million instructions at most: make the filter simpler"),
            (None, Some(libc::ENOMEM)) => error
                .with_kind(Kind::NoSpace)
                .remedy("allow the process more memory (memory.max of its control group)"),
            (None, Some(libc::ENOSYS)) => {
                error.remedy("this kernel has no bpf(2): it needs CONFIG_BPF_SYSCALL")
            }
            (None, Some(NOT_TRANSLATABLE)) if said.is_empty() => error.with_kind(Kind::Unsupported).remedy(
                "this kernel cannot translate the program: use a newer one, or check net.core.bpf_jit_enable",
            ),
            // The verifier's «no» is EACCES, which is no lack of rights.
            (None, Some(libc::EACCES | NOT_TRANSLATABLE)) => error.with_kind(Kind::Invalid),
            _ => error,
        };
        Self { error, log, instruction }
    }

    pub(super) fn before_the_kernel(error: Error, instruction: usize) -> Self {
        Self { error, log: String::new(), instruction: Some(instruction) }
    }

    /// What kind of failure this is: [`Kind::Permission`] for a right that is missing, [`Kind::NoSpace`] for
    /// a program that is too large, [`Kind::Unsupported`] for a kernel that is too old, [`Kind::Invalid`] for
    /// one that the verifier finds wrong.
    pub fn kind(&self) -> Kind {
        self.error.kind()
    }

    /// The kernel's error number, if there was one.
    pub fn errno(&self) -> Option<i32> {
        self.error.errno()
    }

    /// What the verifier wrote about the path that it refused; empty if it did not get to read the program.
    pub fn log(&self) -> &str {
        &self.log
    }

    /// The place of the instruction that it refused, as far as the log tells.
    pub fn instruction(&self) -> Option<usize> {
        self.instruction
    }

    /// The error without the log.
    pub fn into_error(self) -> Error {
        self.error
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for LoadError {}

fn at(instruction: Option<usize>) -> String {
    instruction.map(|place| format!(" at instruction {place}")).unwrap_or_default()
}

/// The place in a line such as `12: (71) r1 = *(u8 *)(r2 +0)`.
fn instruction_of(line: &str) -> Option<usize> {
    let (place, rest) = line.split_once(": (")?;
    rest.as_bytes().get(2).filter(|byte| **byte == b')')?;
    place.parse().ok()
}

fn last_instruction(log: &str) -> Option<usize> {
    log.lines().rev().find_map(instruction_of)
}

/// What follows the last instruction that the log shows, without the figures at its end.
fn said(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let begin =
        lines.iter().rposition(|line| instruction_of(line).is_some()).map_or(0, |last| last + 1);
    let is_said = |line: &&&str| {
        let is_figure = line.starts_with("processed ") || line.starts_with("verification time");
        !line.is_empty() && !is_figure
    };
    let said: Vec<&str> =
        lines.get(begin..).unwrap_or_default().iter().filter(is_said).copied().collect();
    said.join("; ")
}

#[cfg(test)]
mod tests {
    use super::super::ProgramKind;
    use super::*;

    const OUTSIDE: &str = "0: R1=ctx() R10=fp0\n\
        0: (61) r2 = *(u32 *)(r1 +0)          ; R1=ctx() R2_w=pkt(r=0)\n\
        1: (71) r0 = *(u8 *)(r2 +0)\n\
        invalid access to packet, off=0 size=1, R2(id=0,off=0,r=0)\n\
        R2 offset is outside of the packet\n\
        processed 2 insns (limit 1000000) max_states_per_insn 0 total_states 0\n";

    fn error(number: i32, log: &str) -> LoadError {
        let spec = ProgramSpec::new("count", ProgramKind::Xdp, &[]);
        LoadError::new(&spec, io::Error::from_raw_os_error(number), log.to_owned())
    }

    #[test]
    fn a_refusal_names_the_instruction_and_the_reason() {
        let error = error(libc::EACCES, OUTSIDE);
        assert_eq!((error.kind(), error.instruction()), (Kind::Invalid, Some(1)));
        let text = error.to_string();
        assert!(text.contains("«invalid access to packet, off=0 size=1"), "{text}");
        assert!(text.contains("outside of the packet» at instruction 1"), "{text}");
        assert!(!text.contains("processed"), "{text}");
    }

    #[test]
    fn other_reasons_have_their_own_kinds() {
        let large = "BPF program is too large. Processed 1000001 insn\nprocessed 1000001 insns\n";
        assert_eq!(error(libc::E2BIG, large).kind(), Kind::NoSpace);
        assert_eq!(error(libc::E2BIG, "").kind(), Kind::NoSpace);
        let old = "3: (85) call unknown#299\ninvalid func unknown#299\n";
        assert_eq!(error(libc::EINVAL, old).kind(), Kind::Unsupported);
        assert_eq!(error(NOT_TRANSLATABLE, "").kind(), Kind::Unsupported);
        let right = "9: (0f) r1 += r3\nR1 has pointer with unsupported alu operation, pointer arithmetic \
                     with it prohibited for !root\n";
        let error_of_right = error(libc::EACCES, right);
        assert_eq!(error_of_right.kind(), Kind::Permission);
        assert!(error_of_right.to_string().contains("cap_perfmon"), "{error_of_right}");
        assert_eq!(error(libc::EPERM, "").kind(), Kind::Permission);
    }
}
