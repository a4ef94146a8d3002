//! Whether this process may put programs into the kernel, and how those are run.

use serde_json::json;
use sys::bpf::{Jit, Support};

use super::{Area, Finding, Severity};

const CHECK: &str = "kernel programs";

/// Tries it. The kernel plane and `xdp:` ports need it, nothing else does.
pub fn look() -> Vec<Finding> {
    vec![judge(&Support::probe())]
}

fn judge(support: &Support) -> Finding {
    let why =
        "xdp: ports and the kernel plane are programs that linerate writes and the kernel runs";
    let finding = |seen: String| Finding::new(Area::Rights, CHECK, seen, why).facts(facts(support));
    match (&support.loading, support.jit) {
        (Err(error), _) => finding(format!("cannot be loaded ({:?})", error.kind()).to_lowercase())
            .is(
                Severity::Note,
                format!("{error}; without that, use packet: ports and the user plane"),
            ),
        (Ok(()), Jit::Off) => finding("can be loaded, and are interpreted".into())
            .is(Severity::Warning, "have them translated: interpreted they are many times slower")
            .command("sudo sysctl -w net.core.bpf_jit_enable=1"),
        (Ok(()), _) if support.is_jit_hardened => {
            finding("can be loaded, and are translated with blinded constants".into())
                .is(Severity::Note, "blind those of ordinary users only: programs are then faster")
                .command("sudo sysctl -w net.core.bpf_jit_harden=1")
        }
        (Ok(()), jit) => {
            let how = if jit == Jit::On { ", and are translated to machine code" } else { "" };
            let lockdown = support.lockdown.as_ref();
            let under = lockdown.map(|mode| format!(" (lockdown: {mode}, which allows that)"));
            finding(format!("can be loaded{how}{}", under.unwrap_or_default()))
        }
    }
}

fn facts(support: &Support) -> serde_json::Value {
    json!({
        "allowed": support.loading.is_ok(),
        "jit": match support.jit {
            Jit::On => Some("on"),
            Jit::Off => Some("off"),
            Jit::Unknown => None,
        },
        "jit_hardened": support.is_jit_hardened,
        "lockdown": support.lockdown,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn support() -> Support {
        Support {
            loading: Ok(()),
            jit: Jit::On,
            is_jit_hardened: false,
            is_unprivileged_disabled: true,
            lockdown: None,
        }
    }

    #[test]
    fn what_makes_programs_slow_is_said_with_the_cure() {
        let well = judge(&support());
        assert_eq!((well.severity, well.command), (Severity::Ok, None));
        let off = judge(&Support { jit: Jit::Off, ..support() });
        assert_eq!(off.severity, Severity::Warning);
        assert!(off.command.is_some_and(|command| command.contains("bpf_jit_enable=1")));
        let hardened = judge(&Support { is_jit_hardened: true, ..support() });
        assert!(hardened.command.is_some_and(|command| command.contains("bpf_jit_harden=1")));
        let locked = judge(&Support { lockdown: Some("integrity".into()), ..support() });
        assert_eq!(locked.severity, Severity::Ok);
        assert!(locked.seen.contains("integrity"), "{}", locked.seen);
    }

    #[test]
    fn a_missing_right_is_a_note_with_its_remedy() {
        let source = std::io::Error::from_raw_os_error(rustix::io::Errno::PERM.raw_os_error());
        let error = sys::Error::new("loading", source).remedy("run as root");
        let finding = judge(&Support { loading: Err(error), ..support() });
        assert_eq!(finding.severity, Severity::Note);
        assert_eq!(finding.facts["allowed"], false);
        assert!(finding.remedy.is_some_and(|remedy| remedy.contains("run as root")));
    }
}
