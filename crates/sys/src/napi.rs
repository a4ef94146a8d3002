//! Where an interface's frames are received: NAPI threads and receive steering.
//!
//! Vocabulary: *NAPI* is the routine by which a driver is polled for received frames, one instance
//! per queue (Documentation/networking/napi.rst). It runs in the soft interrupt of whatever
//! processor asked for it, or, *threaded*, in a kernel thread of its own. *Receive steering* (RPS,
//! Documentation/networking/scaling.rst) hands frames, once received, to other processors by a
//! hash of their flow.
//!
//! Limits: the netlink way to threads came with Linux 6.17 and asks for rights over the machine;
//! the sysfs way (5.12) is open to the root of a user namespace too. Receive steering asks for
//! rights over the machine always. A veth has NAPI only with GRO on or an XDP program attached.

use std::io;

use netlink_packet_core::NLM_F_DUMP;

use crate::link::Links;
use crate::namespace::{Namespace, Sysfs};
use crate::netlink::attribute_u32;
use crate::netlink::generic::{Attributes, Family};
use crate::{Error, Kind, Result};

// Constants of linux/netdev.h.
const COMMAND_NAPI_GET: u8 = 11;
const COMMAND_NAPI_SET: u8 = 14;
const NAPI_INTERFACE: u16 = 1;
const NAPI_ID: u16 = 2;
const NAPI_IRQ: u16 = 3;
const NAPI_PROCESS: u16 = 4;
const NAPI_THREADED: u16 = 8;

/// One NAPI instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Napi {
    /// Its number on this machine.
    pub id: u32,
    /// The interrupt that wakes it, for hardware.
    pub irq: Option<u32>,
    /// The process number of its kernel thread, whose affinity says where frames are received;
    /// `None` while it runs in soft interrupts.
    pub thread: Option<u32>,
}

/// How threaded NAPI was switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Per instance, by the generic netlink family `netdev`.
    Netlink,
    /// For the whole interface, by `/sys/class/net/NAME/threaded`.
    Sysfs,
}

/// The state after [`set_threaded`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Threaded {
    /// Which way worked.
    pub way: Way,
    /// The instances as they are now; empty where the kernel (before 6.8) cannot list them.
    pub instances: Vec<Napi>,
}

/// The NAPI instances of the interface `name` of `namespace`, by number.
///
/// # Errors
/// [`Kind::NotFound`] for the interface; [`Kind::Unsupported`] before Linux 6.8.
pub fn instances(namespace: &Namespace, name: &str) -> Result<Vec<Napi>> {
    let index = Links::of(namespace)?.named(name)?.index;
    namespace.run(|| list(&mut open_family()?, name, index))?
}

/// Gives each NAPI instance of the interface a kernel thread, or takes it away.
///
/// # Errors
/// [`Kind::NotFound`] for the interface; [`Kind::Unsupported`] when it has no NAPI now or the
/// kernel has neither way; [`Kind::Permission`] when both ways were refused.
pub fn set_threaded(namespace: &Namespace, name: &str, on: bool) -> Result<Threaded> {
    let index = Links::of(namespace)?.named(name)?.index;
    let by_netlink = namespace.run(|| -> Result<Vec<Napi>> {
        let mut family = open_family()?;
        for instance in list(&mut family, name, index)? {
            let mut attributes = Attributes::default();
            attributes.push_u32(NAPI_ID, instance.id);
            attributes.push_u32(NAPI_THREADED, u32::from(on));
            family.command(&action(name, on), COMMAND_NAPI_SET, 0, &attributes)?;
        }
        list(&mut family, name, index)
    })?;
    let (way, instances) = match by_netlink {
        Ok(instances) if instances.is_empty() => return Err(without_napi(name, on)),
        Ok(instances) if agree(&instances, on) => (Way::Netlink, instances),
        // Kernels before 6.17 ignore the attribute or lack the command; a user namespace may not
        // use it.
        _ => {
            let sysfs = Sysfs::of(namespace)?;
            let path = format!("class/net/{name}/threaded");
            sysfs
                .write(&path, if on { "1" } else { "0" })
                .map_err(|error| explain(error, "run as root"))?;
            (Way::Sysfs, instances(namespace, name).unwrap_or_default())
        }
    };
    if agree(&instances, on) {
        return Ok(Threaded { way, instances });
    }
    Err(Error::new(action(name, on), io::Error::from_raw_os_error(libc::EOPNOTSUPP))
        .remedy("the kernel took the setting without obeying; look into its log"))
}

/// The processors to which received frames of the interface are handed, per receive queue.
///
/// # Errors
/// [`Kind::NotFound`] for the interface; as [`Sysfs::to_read`].
pub fn receive_steering(namespace: &Namespace, name: &str) -> Result<Vec<Vec<u32>>> {
    Links::of(namespace)?.named(name)?;
    let sysfs = Sysfs::to_read(namespace)?;
    let paths = steering_paths(&sysfs, name)?;
    paths.iter().map(|path| Ok(processors(&sysfs.read(path)?))).collect()
}

/// Hands received frames of all queues of the interface to `cpus`; to none switches it off.
///
/// # Errors
/// [`Kind::NotFound`] for the interface; [`Kind::Permission`] in a user namespace;
/// [`Kind::Invalid`] for processors that the machine cannot have.
pub fn set_receive_steering(namespace: &Namespace, name: &str, cpus: &[u32]) -> Result<()> {
    Links::of(namespace)?.named(name)?;
    let sysfs = Sysfs::of(namespace)?;
    for path in steering_paths(&sysfs, name)? {
        sysfs.write(&path, &mask(cpus)).map_err(|error| {
            explain(error, "run as root of the machine: the kernel keeps receive steering for it")
        })?;
        let mut wanted = cpus.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        if processors(&sysfs.read(&path)?) != wanted {
            let source = io::Error::from_raw_os_error(libc::EINVAL);
            return Err(Error::new(format!("steering received frames of {name}"), source)
                .remedy("name processors that are online and not isolated"));
        }
    }
    Ok(())
}

fn action(name: &str, on: bool) -> String {
    format!("switching threaded NAPI of {name} {}", if on { "on" } else { "off" })
}

fn without_napi(name: &str, on: bool) -> Error {
    Error::new(action(name, on), io::Error::from_raw_os_error(libc::EOPNOTSUPP)).remedy(
        "it has no NAPI now: switch it on; for a veth, also switch GRO on or attach an XDP program",
    )
}

fn explain(error: Error, remedy: &str) -> Error {
    if error.kind() == Kind::Permission { error.remedy(remedy) } else { error }
}

fn agree(instances: &[Napi], on: bool) -> bool {
    instances.iter().all(|instance| instance.thread.is_some() == on)
}

fn open_family() -> Result<Family> {
    Family::open("netdev").map_err(|error| match error.kind() {
        Kind::NotFound => {
            error.with_kind(Kind::Unsupported).remedy("use Linux 6.8 or later to see NAPI")
        }
        _ => error,
    })
}

fn list(family: &mut Family, name: &str, index: u32) -> Result<Vec<Napi>> {
    let mut attributes = Attributes::default();
    attributes.push_u32(NAPI_INTERFACE, index);
    let action = format!("listing the NAPI instances of {name}");
    let answers = family.command(&action, COMMAND_NAPI_GET, NLM_F_DUMP, &attributes)?;
    let mut instances: Vec<Napi> = answers
        .iter()
        .filter_map(|answer| {
            Some(Napi {
                id: attribute_u32(answer, NAPI_ID)?,
                irq: attribute_u32(answer, NAPI_IRQ),
                thread: attribute_u32(answer, NAPI_PROCESS),
            })
        })
        .collect();
    instances.sort_by_key(|instance| instance.id);
    Ok(instances)
}

fn steering_paths(sysfs: &Sysfs, name: &str) -> Result<Vec<String>> {
    let folder = format!("class/net/{name}/queues");
    let mut queues: Vec<(u32, String)> = sysfs
        .names(&folder)?
        .into_iter()
        .filter_map(|queue| Some((queue.strip_prefix("rx-")?.parse().ok()?, queue)))
        .collect();
    queues.sort_unstable();
    Ok(queues.into_iter().map(|(_, queue)| format!("{folder}/{queue}/rps_cpus")).collect())
}

/// Processors as the kernel reads them: groups of 32 bits in hexadecimal, the highest first.
fn mask(cpus: &[u32]) -> String {
    let groups = cpus.iter().max().map_or(0, |highest| *highest as usize / 32) + 1;
    let mut bits = vec![0u32; groups];
    for cpu in cpus {
        if let Some(group) = bits.get_mut(*cpu as usize / 32) {
            *group |= 1 << (cpu % 32);
        }
    }
    let words: Vec<String> = bits.iter().rev().map(|group| format!("{group:08x}")).collect();
    words.join(",")
}

fn processors(mask: &str) -> Vec<u32> {
    let mut cpus = Vec::new();
    for (group, word) in mask.trim().rsplit(',').enumerate() {
        let bits = u32::from_str_radix(word, 16).unwrap_or(0);
        cpus.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| group as u32 * 32 + bit));
    }
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_read_back_as_written() {
        assert_eq!(mask(&[]), "00000000");
        assert_eq!(mask(&[0, 1]), "00000003");
        assert_eq!(mask(&[64, 33, 31]), "00000001,00000002,80000000");
        for cpus in [vec![], vec![0], vec![31, 32], vec![1, 63, 64, 127]] {
            assert_eq!(processors(&mask(&cpus)), cpus);
        }
        assert_eq!(processors("3\n"), [0, 1]);
    }
}
