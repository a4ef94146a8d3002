//! A program that somebody else put on an interface.

use std::fmt;
use std::fs;

use super::{ProgramInfo, XdpAttachment};

/// Who has an interface's place for a program, as far as this process may know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupant {
    /// Where and under which number the program runs.
    pub attachment: XdpAttachment,
    /// The program's name; `None` without `CAP_SYS_ADMIN`, empty if it has none.
    pub name: Option<String>,
    /// The processes that hold it by a descriptor: number and name. Empty if nobody does (it was attached
    /// by netlink, as `ip link` does) or they belong to others.
    pub holders: Vec<(u32, String)>,
}

impl Occupant {
    /// Looks up what is behind `attachment`.
    pub fn of(attachment: XdpAttachment) -> Self {
        let name = ProgramInfo::of_id(attachment.program_id).ok().map(|info| info.name);
        Self { attachment, name, holders: holders(attachment.program_id) }
    }

    /// What frees the interface's place, as an imperative sentence without a full stop.
    pub fn remedy(&self, interface: &str) -> String {
        match self.holders.first() {
            Some((process, name)) => {
                format!(
                    "end process {process} ({name}), which holds it, or choose another interface"
                )
            }
            None => format!(
                "end the program that put it there, or remove it with: ip link set dev {interface} {} off",
                self.attachment.mode.keyword()
            ),
        }
    }
}

impl fmt::Display for Occupant {
    /// `the XDP program number 7 «count» (native)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the XDP program number {}", self.attachment.program_id)?;
        if let Some(name) = self.name.as_deref().filter(|name| !name.is_empty()) {
            write!(f, " «{name}»")?;
        }
        write!(f, " ({})", self.attachment.mode)
    }
}

/// Processes with a descriptor of the program, or of a link on it: proc(5) shows its number.
fn holders(program_id: u32) -> Vec<(u32, String)> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|process| is_holder(*process, program_id))
        .map(|process| {
            let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
            (process, name.trim().to_owned())
        })
        .collect()
}

fn is_holder(process: u32, program_id: u32) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    descriptors.filter(|entry| is_of_bpf(&entry.path())).any(|entry| {
        let number = entry.file_name();
        let facts = format!("/proc/{process}/fdinfo/{}", number.display());
        fs::read_to_string(facts).is_ok_and(|facts| names(&facts, program_id))
    })
}

/// `anon_inode:bpf-prog`, `anon_inode:bpf_link`, `anon_inode:[bpf:xdp]` and the like.
fn is_of_bpf(descriptor: &std::path::Path) -> bool {
    fs::read_link(descriptor).is_ok_and(|target| {
        let target = target.to_string_lossy();
        target.starts_with("anon_inode:") && target.contains("bpf")
    })
}

fn names(facts: &str, program_id: u32) -> bool {
    let number = |line: &str| line.strip_prefix("prog_id:")?.trim().parse().ok();
    facts.lines().filter_map(number).any(|number: u32| number == program_id)
}

#[cfg(test)]
mod tests {
    use super::super::XdpMode;
    use super::*;

    #[test]
    fn the_file_of_a_descriptor_names_its_program() {
        let facts = "pos:\t0\nflags:\t02000000\nlink_type:\txdp\nlink_id:\t4\nprog_tag:\t57cd\nprog_id:\t31\n";
        assert!(names(facts, 31));
        assert!(!names(facts, 3) && !names(facts, 4));
    }

    #[test]
    fn the_remedy_depends_on_who_holds_it() {
        let attachment = XdpAttachment { mode: XdpMode::Generic, program_id: 9 };
        let mut occupant = Occupant { attachment, name: Some("watch".into()), holders: Vec::new() };
        assert_eq!(occupant.to_string(), "the XDP program number 9 «watch» (generic)");
        assert!(occupant.remedy("eth0").ends_with("ip link set dev eth0 xdpgeneric off"));
        occupant.holders.push((12, "xdp-filter".into()));
        assert!(occupant.remedy("eth0").contains("process 12 (xdp-filter)"));
    }
}
