//! Where a filter would run on a port: in the kernel, or in this program.

use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;

use filter::{Filter, Program};
use port::{PortKind, PortSpec};
use serde_json::{Value, json};
use sys::packet::{BpfInstruction, attach_filter};

use crate::exit::Usage;

/// Where frames of a port would be asked.
pub(super) struct Place {
    port: String,
    /// `None` if by the kernel, else why not.
    reason: Option<String>,
}

impl Place {
    /// Refuses ports that are not there, and those that say themselves what their frames are.
    pub(super) fn of(port: &PortSpec, filter: &Filter) -> anyhow::Result<Self> {
        if port.kind == PortKind::Pcap {
            let text =
                format!("{port}: its frames are what the file says; use --read with --explain");
            return Err(Usage(text).into());
        }
        let reason = match port.interface() {
            None => Some("no socket stands behind this port".into()),
            Some(name) => {
                sys::link::Link::by_name(name)?;
                refusal(filter.program().as_ref())
            }
        };
        Ok(Self { port: port.to_string(), reason })
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        match &self.reason {
            None => format!("on {}: the kernel takes this program for a socket", self.port),
            Some(reason) => format!("on {}: in user space, since {reason}", self.port),
        }
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let side = if self.reason.is_none() { "kernel" } else { "user" };
        json!({ "port": self.port, "where": side, "reason": self.reason })
    }
}

/// Why the kernel does not take the program: it is asked, with a socket that nothing is sent to.
fn refusal(program: Option<&Program>) -> Option<String> {
    let Some(program) = program else {
        return Some("the arithmetic needs more memory than the kernel's machine has".into());
    };
    let same =
        |i: &filter::Instruction| BpfInstruction { code: i.code, jt: i.jt, jf: i.jf, k: i.k };
    let instructions: Vec<BpfInstruction> = program.0.iter().map(same).collect();
    match UnixDatagram::unbound() {
        Ok(socket) => {
            attach_filter(socket.as_fd(), &instructions).err().map(|error| error.to_string())
        }
        Err(error) => Some(format!("there is no socket to ask the kernel by: {error}")),
    }
}
