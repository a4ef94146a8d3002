//! Where the far end of a veth is.
//!
//! A link tells a number of the other network namespace; what it takes to do something there is the namespace
//! itself. It is looked for wherever the kernel shows namespaces: names of ip-netns(8), threads of
//! processes, and descriptors that they hold.

use std::collections::HashSet;
use std::fs;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use super::{Link, Links};
use crate::Result;
use crate::namespace::Namespace;
use crate::netlink::attribute_u32;
use crate::netlink::generic::Attributes;

/// Names given by ip-netns(8).
const NAMED: &str = "/run/netns";
/// Of linux/rtnetlink.h and linux/net_namespace.h.
const GET_NAMESPACE_NUMBER: u16 = 90;
const NAMESPACE_NUMBER: u16 = 1;
const NAMESPACE_FILE: u16 = 3;
/// `struct rtgenmsg`: the family, and what fills it up to a multiple of 4.
const HEADER_BYTES: usize = 4;

impl Links {
    /// The other end of a veth together with its namespace; `None` for other interfaces, and where no
    /// process that the caller may look into has that namespace.
    ///
    /// # Errors
    /// As [`Links::far_end`].
    pub fn far_end_at(&mut self, link: &Link) -> Result<Option<(Namespace, Link)>> {
        let Some(far) = self.far_end(link)? else { return Ok(None) };
        let Some(number) = link.peer_namespace else {
            return Ok(Some((Namespace::current()?, far)));
        };
        let mut seen = HashSet::new();
        for path in candidates() {
            let Some(namespace) = unseen(&path, &mut seen) else { continue };
            if self.number_of(&namespace) == Some(number) {
                return Ok(Some((namespace, far)));
            }
        }
        Ok(None)
    }

    /// The number under which the namespace of these links knows another one.
    fn number_of(&mut self, namespace: &Namespace) -> Option<i32> {
        let mut attributes = Attributes::default();
        attributes.push_u32(NAMESPACE_FILE, namespace.as_fd().as_raw_fd().cast_unsigned());
        let payload = [&[0; HEADER_BYTES], attributes.bytes()].concat();
        let action = "asking for the number of a network namespace";
        let answers = self.socket.request(action, GET_NAMESPACE_NUMBER, 0, &payload).ok()?;
        let number = |payload: &[u8]| attribute_u32(payload.get(HEADER_BYTES..)?, NAMESPACE_NUMBER);
        answers.iter().find_map(|answer| number(&answer.payload)).map(u32::cast_signed)
    }
}

/// Opens what has not been looked at under another name. What cannot be opened says nothing.
fn unseen(path: &Path, seen: &mut HashSet<u64>) -> Option<Namespace> {
    let namespace = Namespace::open(path).ok()?;
    seen.insert(namespace.inode()).then_some(namespace)
}

/// Files that may be network namespaces, the likely ones first.
fn candidates() -> impl Iterator<Item = PathBuf> {
    let processes = || entries("/proc".as_ref()).filter(|path| is_number(path));
    let named = entries(NAMED.as_ref());
    let of_processes = processes().map(|process| process.join("ns/net"));
    let of_threads = processes().flat_map(|process| {
        entries(&process.join("task")).map(|thread| thread.join("ns/net")).collect::<Vec<_>>()
    });
    let held = processes().flat_map(|process| {
        entries(&process.join("fd")).filter(|path| is_namespace(path)).collect::<Vec<_>>()
    });
    named.chain(of_processes).chain(of_threads).chain(held)
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn is_number(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

/// Other descriptors are left closed: opening a device or a pipe can do something.
fn is_namespace(descriptor: &Path) -> bool {
    fs::read_link(descriptor).is_ok_and(|target| target.to_string_lossy().starts_with("net:["))
}
