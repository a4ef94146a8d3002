//! What bpf(2) is allowed to do here, and what helps if it is not.

use std::fs;

use super::{Instruction, Program, ProgramKind, ProgramSpec};
use crate::namespace::Rights;
use crate::{Error, Kind, Result};

const JIT: &str = "/proc/sys/net/core/bpf_jit_enable";
const JIT_HARDENED: &str = "/proc/sys/net/core/bpf_jit_harden";
const UNPRIVILEGED: &str = "/proc/sys/kernel/unprivileged_bpf_disabled";
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

/// Whether programs are translated to machine code (`net.core.bpf_jit_enable`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Jit {
    /// They are.
    On,
    /// They are interpreted, at a fraction of the speed.
    Off,
    /// The kernel does not say; where it is built without an interpreter, they are translated.
    Unknown,
}

/// What this machine and this process have for XDP programs.
#[derive(Debug)]
pub struct Support {
    /// Whether a program that lets every frame pass could be loaded, or why not.
    pub loading: Result<()>,
    /// Whether programs are translated.
    pub jit: Jit,
    /// Whether constants are blinded for everybody, which makes programs slower
    /// (`net.core.bpf_jit_harden` of 2).
    pub is_jit_hardened: bool,
    /// What ordinary users may load: no XDP in any case.
    pub is_unprivileged_disabled: bool,
    /// The kernel's lockdown, if there is one (kernel_lockdown(7)). XDP is allowed in all of its modes.
    pub lockdown: Option<String>,
}

impl Support {
    /// Tries it.
    pub fn probe() -> Self {
        let number = |path| fs::read_to_string(path).ok()?.trim().parse::<u32>().ok();
        Self {
            loading: check_right(),
            jit: match number(JIT) {
                Some(0) => Jit::Off,
                Some(_) => Jit::On,
                None => Jit::Unknown,
            },
            is_jit_hardened: number(JIT_HARDENED) == Some(2),
            is_unprivileged_disabled: number(UNPRIVILEGED).is_some_and(|value| value != 0),
            lockdown: fs::read_to_string(LOCKDOWN).ok().and_then(|text| chosen(&text)),
        }
    }
}

/// Whether this thread may load XDP programs; the program is gone again afterwards.
///
/// # Errors
/// [`Kind::Permission`] with the right that is missing; [`Kind::Unsupported`] without bpf(2).
fn check_right() -> Result<()> {
    const EXIT: u8 = 0x95;
    const MOVE: u8 = 0xb7;
    const PASS: i32 = 2;
    let instructions = [Instruction::new(MOVE, 0, 0, 0, PASS), Instruction::new(EXIT, 0, 0, 0, 0)];
    let spec = ProgramSpec::new("trial", ProgramKind::Xdp, &instructions);
    Program::load(&spec).map(drop).map_err(super::LoadError::into_error)
}

/// The mode in brackets, but for `none`.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    let (mode, _) = rest.split_once(']')?;
    (mode != "none").then(|| mode.to_owned())
}

/// An error of permission with the right that is missing.
pub(super) fn explained(error: Error) -> Error {
    let remedy = remedy(Rights::probe());
    error.with_kind(Kind::Permission).remedy(remedy)
}

fn remedy(rights: Rights) -> &'static str {
    if !rights.initial {
        return "the machine's kernel runs such programs, so a user namespace does not give the \
                right: run as root outside of it";
    }
    match (rights.bpf || rights.sys_admin, rights.net_admin) {
        (true, true) => {
            "the capabilities are there: a sandbox (seccomp, LSM) forbids it, or on kernels before \
             5.11 the limit of locked memory is too low (ulimit -l)"
        }
        (true, false) => "run as root, or give the program CAP_NET_ADMIN beside CAP_BPF",
        (false, true) => "run as root, or give the program CAP_BPF beside CAP_NET_ADMIN",
        (false, false) => {
            "run as root, or give the program the right once with: \
             setcap cap_bpf,cap_net_admin,cap_net_raw+ep PROGRAM"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_capability_is_named() {
        let none = Rights {
            net_admin: false,
            net_raw: false,
            sys_admin: false,
            ipc_lock: false,
            bpf: false,
            initial: true,
        };
        assert!(remedy(none).contains("cap_bpf,cap_net_admin"));
        assert!(remedy(Rights { bpf: true, ..none }).contains("CAP_NET_ADMIN beside"));
        assert!(remedy(Rights { net_admin: true, ..none }).contains("CAP_BPF beside"));
        let all = Rights { net_admin: true, sys_admin: true, ..none };
        assert!(remedy(all).contains("sandbox"));
        assert!(remedy(Rights { initial: false, ..all }).contains("user namespace"));
    }

    #[test]
    fn lockdown_is_read() {
        assert_eq!(chosen("none [integrity] confidentiality\n").as_deref(), Some("integrity"));
        assert_eq!(chosen("[none] integrity confidentiality\n"), None);
        assert_eq!(chosen(""), None);
    }
}
