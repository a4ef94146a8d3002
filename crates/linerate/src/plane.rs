//! Which plane carries a run: this process, or a program of its own in the kernel.

use std::fmt;

use clap::ValueEnum;
use port::{PortKind, PortSpec};

use crate::exit::Usage;
use crate::run_args::{RequireArg, RunArgs};

/// Where frames are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Plane {
    /// By a program in the kernel; frames never come to this process
    Kernel,
    /// By this process
    User,
}

impl fmt::Display for Plane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel => "kernel",
            Self::User => "user",
        })
    }
}

/// What a command line asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The user plane.
    User,
    /// The kernel plane where it can be had, and otherwise the user plane, with the reason.
    KernelIfPossible,
    /// The kernel plane or nothing.
    Kernel,
}

impl Choice {
    /// From `--plane` and `--require`. Without either, `xdp:` ports try the kernel if `prefers_kernel`.
    ///
    /// # Errors
    /// The two contradict each other.
    pub fn of(
        plane: Option<Plane>,
        run: &RunArgs,
        port: &PortSpec,
        prefers_kernel: bool,
    ) -> Result<Self, Usage> {
        match (plane, run.require) {
            (Some(Plane::User), Some(RequireArg::Kernel)) => Err(Usage(
                "--plane user and --require kernel exclude each other; leave one of them out".into(),
            )),
            (_, Some(RequireArg::Kernel)) => Ok(Self::Kernel),
            (Some(Plane::Kernel), Some(_)) => Err(Usage(
                "--require zerocopy, native and xdp are about the user plane; with --plane kernel use \
                 --require kernel"
                    .into(),
            )),
            (Some(Plane::Kernel), None) => Ok(Self::KernelIfPossible),
            (None, None) if prefers_kernel && port.kind == PortKind::Xdp => {
                Ok(Self::KernelIfPossible)
            }
            (Some(Plane::User) | None, _) => Ok(Self::User),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(plane: Option<Plane>, require: Option<RequireArg>, port: &str) -> Option<Choice> {
        let run = RunArgs { json: false, duration: None, cpu: None, require };
        Choice::of(plane, &run, &port.parse().unwrap(), true).ok()
    }

    #[test]
    fn what_is_asked_for_is_what_one_gets() {
        use Choice::{KernelIfPossible, User};
        let (kernel, user) = (Some(Plane::Kernel), Some(Plane::User));
        let (insist, native) = (Some(RequireArg::Kernel), Some(RequireArg::Native));
        for (plane, require, port, expected) in [
            (None, None, "eth0", Some(User)),
            (None, None, "xdp:eth0", Some(KernelIfPossible)),
            (None, native, "xdp:eth0", Some(User)),
            (None, insist, "eth0", Some(Choice::Kernel)),
            (kernel, None, "eth0", Some(KernelIfPossible)),
            (kernel, insist, "eth0", Some(Choice::Kernel)),
            (kernel, native, "xdp:eth0", None),
            (user, None, "xdp:eth0", Some(User)),
            (user, native, "xdp:eth0", Some(User)),
            (user, insist, "xdp:eth0", None),
        ] {
            assert_eq!(choice(plane, require, port), expected, "{plane:?} {require:?} {port}");
        }
    }
}
