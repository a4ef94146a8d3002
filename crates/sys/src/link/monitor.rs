//! Notices when interfaces come, go and change.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Link, Links};
use crate::namespace::Namespace;
use crate::{Error, Result};

const ACTION: &str = "watching the interfaces";
/// `RTNLGRP_LINK` of linux/rtnetlink.h.
const GROUP_LINK: u32 = 1;

/// What happened to an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkChange {
    /// It was made, or moved into this namespace.
    Appeared,
    /// It was removed, or moved into another namespace.
    Gone,
    /// It has another name now; this was the earlier one.
    Renamed(String),
    /// Frames can pass from now on.
    Up,
    /// Frames cannot pass any more: switched off, or the other end is.
    Down,
}

/// One change of one interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkEvent {
    /// The interface's number.
    pub index: u32,
    /// Its name, the new one if it was renamed.
    pub name: String,
    /// What happened.
    pub change: LinkChange,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    name: String,
    running: bool,
}

/// Reports changes of the interfaces of one namespace since it was opened.
///
/// Changes that are undone before anybody asks may be reported or not; the last state is always
/// reported, even when the kernel had to discard notifications.
#[derive(Debug)]
pub struct LinkMonitor {
    links: Links,
    known: BTreeMap<u32, Known>,
    events: VecDeque<LinkEvent>,
    dump: Links,
}

impl LinkMonitor {
    /// Begins to watch `namespace`.
    ///
    /// # Errors
    /// As [`Namespace::run`] and what the netlink sockets report.
    pub fn open(namespace: &Namespace) -> Result<Self> {
        let (mut links, dump) = namespace.run(|| Ok((Links::current()?, Links::current()?)))??;
        // Before the first listing, so that nothing falls between the two.
        links.socket.subscribe(GROUP_LINK)?;
        let mut monitor = Self { links, known: BTreeMap::new(), events: VecDeque::new(), dump };
        monitor.compare_all()?;
        monitor.events.clear();
        Ok(monitor)
    }

    /// The next change, `None` if nothing has happened; never waits.
    ///
    /// # Errors
    /// What the netlink socket reports.
    pub fn next_event(&mut self) -> Result<Option<LinkEvent>> {
        while self.events.is_empty() {
            match self.links.socket.notifications() {
                Ok(answers) if answers.is_empty() => break,
                Ok(answers) => {
                    for answer in &answers {
                        let decoded = Link::decode(answer);
                        let Some(link) = decoded.map_err(|source| Error::new(ACTION, source))?
                        else {
                            continue;
                        };
                        match answer.message_type {
                            libc::RTM_NEWLINK => self.present(link),
                            libc::RTM_DELLINK => self.gone(link.index),
                            _ => {}
                        }
                    }
                }
                Err(error) if is_overrun(&error) => self.start_over()?,
                Err(error) => return Err(Error::new(ACTION, error)),
            }
        }
        Ok(self.events.pop_front())
    }

    /// Finds out anew what there is, after notifications were lost.
    ///
    /// Those still waiting are older than the loss, and the kernel discards without a word until
    /// all of them are taken (netlink_overrun and netlink_rcv_wake in net/netlink/af_netlink.c).
    fn start_over(&mut self) -> Result<()> {
        loop {
            match self.links.socket.notifications() {
                Ok(answers) if answers.is_empty() => return self.compare_all(),
                Ok(_) => {}
                Err(error) if is_overrun(&error) => {}
                Err(error) => return Err(Error::new(ACTION, error)),
            }
        }
    }

    /// The next change, waiting for it at most `timeout`; `None` when nothing happened.
    ///
    /// # Errors
    /// What the netlink socket and poll(2) report.
    pub fn wait_event(&mut self, timeout: Duration) -> Result<Option<LinkEvent>> {
        let start = Instant::now();
        loop {
            if let Some(event) = self.next_event()? {
                return Ok(Some(event));
            }
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            let left = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(left.subsec_nanos()),
            };
            match poll(&mut [PollFd::new(&self.links.socket, PollFlags::IN)], Some(&left)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Error::new(ACTION, error)),
            }
        }
    }

    fn compare_all(&mut self) -> Result<()> {
        let now = self.dump.list()?;
        let vanished: Vec<u32> = self
            .known
            .keys()
            .copied()
            .filter(|index| now.iter().all(|link| link.index != *index))
            .collect();
        for index in vanished {
            self.gone(index);
        }
        for link in now {
            self.present(link);
        }
        Ok(())
    }

    fn present(&mut self, link: Link) {
        let now = Known { name: link.name, running: link.up && link.running };
        let before = self.known.insert(link.index, now.clone());
        let mut changes = Vec::new();
        let was_running = match before {
            None => {
                changes.push(LinkChange::Appeared);
                false
            }
            Some(before) => {
                if before.name != now.name {
                    changes.push(LinkChange::Renamed(before.name));
                }
                before.running
            }
        };
        match (was_running, now.running) {
            (false, true) => changes.push(LinkChange::Up),
            (true, false) => changes.push(LinkChange::Down),
            _ => {}
        }
        for change in changes {
            self.events.push_back(LinkEvent { index: link.index, name: now.name.clone(), change });
        }
    }

    fn gone(&mut self, index: u32) {
        if let Some(known) = self.known.remove(&index) {
            let change = LinkChange::Gone;
            self.events.push_back(LinkEvent { index, name: known.name, change });
        }
    }
}

fn is_overrun(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}

impl AsFd for LinkMonitor {
    /// For poll(2): readable when [`LinkMonitor::next_event`] may have something.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.links.socket.as_fd()
    }
}
