//! What has to be so behind an interface before it sends frames that a program redirects to it.
//!
//! An end of a veth hands such frames to its far end's NAPI, which runs only while the far end has an XDP
//! program or GRO on (veth_xdp_xmit in drivers/net/veth.c); otherwise they vanish uncounted.

use ebpf::{Assembler, Code, Verdict, part};
use sys::Kind;
use sys::bpf::{Binding, XdpLink, XdpMode, takes_redirected};
use sys::link::{Link, Links};

use crate::error::{EngineError, Result};

/// Keeps an interface able to send redirected frames, and leaves all as it was when it is dropped or the
/// process ends.
#[derive(Debug)]
pub struct FarEnd {
    interface: String,
    program: Option<XdpLink>,
}

impl FarEnd {
    /// Sees to it that an interface of the calling thread's network namespace sends what is redirected to it:
    /// where it takes that, a program that lets every frame pass is put on its far end.
    ///
    /// # Errors
    /// The interface is down, its driver sends no redirected frames, or nothing can be done at its far end: in a
    /// namespace that is out of sight, or with another program on it.
    pub fn prepare(interface: &str) -> Result<Self> {
        let mut links = Links::current()?;
        let link = links.named(interface)?;
        link.check_up()?;
        let ready = Self { interface: interface.to_owned(), program: None };
        match takes_redirected(link.index)? {
            Some(true) => return Ok(ready),
            // Older kernels do not tell; of a veth all that is needed can be done, others may well be able to.
            None if !link.is_veth() => return Ok(ready),
            Some(false) if !link.is_veth() => return Err(refused(&link)),
            Some(false) | None => {}
        }
        let ready = Self { program: Some(enable(&mut links, &link)?), ..ready };
        match takes_redirected(link.index)? {
            Some(false) => Err(refused(&link)),
            Some(true) | None => Ok(ready),
        }
    }

    /// What was done, for people; `None` if all was well already.
    pub fn description(&self) -> Option<String> {
        let program = self.program.as_ref()?;
        Some(format!(
            "{}, the far end of {}, got a program that lets frames pass, for as long as this lasts",
            program.interface(),
            self.interface
        ))
    }
}

fn refused(link: &Link) -> EngineError {
    EngineError::Job {
        what: format!(
            "{} does not send frames that a program in the kernel redirects to it",
            link.name
        ),
        remedy: if link.is_veth() {
            "give its far end as many receive queues as it has transmit queues".into()
        } else {
            "use the user plane, or a driver with XDP".into()
        },
    }
}

/// Puts the program on the far end, wherever that is.
fn enable(links: &mut Links, near: &Link) -> Result<XdpLink> {
    let name = &near.name;
    let out_of_sight = || EngineError::Job {
        what: format!(
            "the far end of {name} is in a network namespace that cannot be reached from here, and without a \
             program or GRO there it takes no frames from a program"
        ),
        remedy: "run there: ethtool -K INTERFACE gro on; or use the user plane".into(),
    };
    let (namespace, far) = match links.far_end_at(near) {
        Ok(found) => found.ok_or_else(out_of_sight)?,
        Err(error) if error.kind() == Kind::Permission => return Err(out_of_sight()),
        Err(error) => return Err(error.into()),
    };
    let code = passing().map_err(|error| {
        sys::Error::new("writing the program for the far end", std::io::Error::other(error))
    })?;
    let attach = |several_buffers| {
        let program = code
            .load_xdp_for("lr_far_end", &[], several_buffers, Binding::default())
            .map_err(ebpf::Refused::into_error)?;
        XdpLink::attach(&program, &far.name, XdpMode::Native)
    };
    // A program for several buffers leaves offloads and large MTUs as they are; old kernels know none.
    let put = || attach(true).or_else(|error| attach(false).map_err(|_| error));
    Ok(namespace.run(put)??)
}

/// `return XDP_PASS`
fn passing() -> std::result::Result<Code, ebpf::AssemblyError> {
    let mut assembler = Assembler::new();
    part::end(&mut assembler, Verdict::Pass);
    assembler.finish()
}
