//! The kernel's netlink sockets, used synchronously: one request, all of its answers.
//!
//! Vocabulary: a *request* is one message to the kernel, an *answer* one message of its reply; a
//! *dump* is a request for a whole table, answered by many messages and an end mark; a *group* is
//! a set of notifications that a socket subscribes to (netlink(7), rtnetlink(7)).
//!
//! A socket belongs to the network namespace of the thread that opened it, for good, and may be
//! used from any thread afterwards. Answers are limited to 64 KiB per datagram, twice what the
//! kernel puts into one (`NLMSG_GOODSIZE` and `netlink_dump` in net/netlink/af_netlink.c).

pub mod generic;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::{
    DoneBuffer, Emitable, ErrorBuffer, NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NLMSG_DONE,
    NLMSG_ERROR, NLMSG_NOOP, NLMSG_OVERRUN, NetlinkBuffer, NetlinkHeader, NlasIterator, Parseable,
};
use netlink_sys::{Socket, SocketAddr};

use crate::{Error, Result};

const HEADER_BYTES: usize = 16;
const BUFFER_BYTES: usize = 64 << 10;

/// `NLM_F_DUMP_INTR` of linux/netlink.h: the table changed while it was being dumped.
const DUMP_INTERRUPTED: u16 = 0x10;
/// How often a dump that was overtaken by a change is begun again.
const DUMP_ATTEMPTS: u32 = 8;
/// `NLMSGERR_ATTR_MSG` of linux/netlink.h: the kernel's own words about a refusal.
const ERROR_ATTRIBUTE_MESSAGE: u16 = 1;

/// The netlink protocol that a socket speaks (netlink(7), "netlink_family").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// `NETLINK_ROUTE`: links, addresses, routes.
    Route,
    /// `NETLINK_GENERIC`: families that register by name.
    Generic,
}

/// One message of the kernel, without its netlink header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The message type of the header, for example `RTM_NEWLINK`.
    pub message_type: u16,
    /// What follows the header: the family's own header and its attributes.
    pub payload: Vec<u8>,
}

/// A netlink socket with its receive buffer.
#[derive(Debug)]
pub struct NetlinkSocket {
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
}

impl NetlinkSocket {
    /// Opens a socket in the network namespace of the calling thread; needs no right.
    ///
    /// # Errors
    /// What socket(2) and bind(2) report: no file descriptor left, or netlink forbidden by a
    /// sandbox.
    pub fn open(protocol: Protocol) -> Result<Self> {
        let number = match protocol {
            Protocol::Route => libc::NETLINK_ROUTE,
            Protocol::Generic => libc::NETLINK_GENERIC,
        };
        let failed = |source| Error::new("opening a netlink socket", source);
        let mut socket = Socket::new(number as isize).map_err(failed)?;
        socket.bind_auto().map_err(failed)?;
        // With both options a refusal carries the kernel's explanation right after the header of
        // the request. Kernels before 4.12 have neither; then there is just no explanation.
        let _ = socket.set_cap_ack(true);
        let _ = socket.set_ext_ack(true);
        Ok(Self { socket, sequence: 0, buffer: Vec::with_capacity(BUFFER_BYTES) })
    }

    /// Subscribes to a group of notifications, for example `RTNLGRP_LINK`.
    ///
    /// # Errors
    /// What setsockopt(2) reports: the group does not exist or needs a right.
    pub fn subscribe(&mut self, group: u32) -> Result<()> {
        self.socket
            .add_membership(group)
            .map_err(|source| Error::new("subscribing to kernel notifications", source))
    }

    /// Sends one request and collects its answers until the kernel has acknowledged it.
    ///
    /// `action` is the gerund phrase for errors, `flags` are added to `NLM_F_REQUEST`; a request
    /// with `NLM_F_DUMP` is repeated when the table changed meanwhile.
    ///
    /// # Errors
    /// The kernel's refusal with its explanation, or what the socket reports.
    pub fn request(
        &mut self,
        action: &str,
        message_type: u16,
        flags: u16,
        payload: &[u8],
    ) -> Result<Vec<Answer>> {
        let failed = |source| Error::new(action, source);
        for _ in 0..DUMP_ATTEMPTS {
            let sequence = self.send(message_type, flags, payload).map_err(failed)?;
            let mut answers = Vec::new();
            let mut interrupted = false;
            loop {
                self.receive(0).map_err(failed)?;
                match collect(&self.buffer, sequence, &mut answers, &mut interrupted) {
                    Ok(Progress::More) => {}
                    Ok(Progress::Complete) => break,
                    Err(refusal) => return Err(refusal.into_error(action)),
                }
            }
            if !interrupted {
                return Ok(answers);
            }
        }
        Err(failed(io::Error::from_raw_os_error(libc::EBUSY))
            .remedy("repeat it when fewer interfaces come and go"))
    }

    /// Takes the notifications that have arrived, without waiting; empty if there are none.
    ///
    /// # Errors
    /// `ENOBUFS` when notifications were lost because nobody took them in time.
    pub fn notifications(&mut self) -> io::Result<Vec<Answer>> {
        match self.receive(libc::MSG_DONTWAIT) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Vec::new()),
            Err(error) => return Err(error),
        }
        let mut answers = Vec::new();
        for message in Messages(&self.buffer) {
            let (header, payload) = message?;
            answers.push(Answer { message_type: header.message_type, payload: payload.to_vec() });
        }
        Ok(answers)
    }

    fn send(&mut self, message_type: u16, flags: u16, payload: &[u8]) -> io::Result<u32> {
        self.sequence = self.sequence.wrapping_add(1);
        let length = HEADER_BYTES + payload.len();
        let mut header = NetlinkHeader::default();
        header.length = u32::try_from(length).map_err(|_| io::ErrorKind::InvalidInput)?;
        header.message_type = message_type;
        // A dump is ended by its own mark; everything else by the acknowledgement.
        header.flags =
            NLM_F_REQUEST | flags | if flags & NLM_F_DUMP == NLM_F_DUMP { 0 } else { NLM_F_ACK };
        header.sequence_number = self.sequence;
        let mut message = vec![0; HEADER_BYTES];
        header.emit(&mut message);
        message.extend_from_slice(payload);
        self.socket.send_to(&message, &SocketAddr::new(0, 0), 0)?;
        Ok(self.sequence)
    }

    fn receive(&mut self, flags: i32) -> io::Result<()> {
        loop {
            self.buffer.clear();
            match self.socket.recv_from(&mut self.buffer, flags | libc::MSG_TRUNC) {
                // Only the kernel has port 0; other processes may send to this socket too.
                Ok((_, sender)) if sender.port_number() != 0 => {}
                Ok((length, _)) if length > self.buffer.len() => {
                    return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
                }
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for NetlinkSocket {
    /// For poll(2): readable when notifications wait.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

enum Progress {
    More,
    Complete,
}

/// What the kernel refused, before it is known what was being done.
struct Refusal {
    source: io::Error,
    explanation: Option<String>,
}

impl Refusal {
    fn into_error(self, action: &str) -> Error {
        match self.explanation {
            Some(text) => {
                Error::new(format!("{action} (the kernel explains: {text})"), self.source)
            }
            None => Error::new(action, self.source),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(source: io::Error) -> Self {
        Self { source, explanation: None }
    }
}

/// Sorts one datagram into `answers`, leaving out what belongs to earlier requests.
fn collect(
    datagram: &[u8],
    sequence: u32,
    answers: &mut Vec<Answer>,
    interrupted: &mut bool,
) -> Result<Progress, Refusal> {
    for message in Messages(datagram) {
        let (header, payload) = message?;
        if header.sequence_number != sequence {
            continue;
        }
        *interrupted |= header.flags & DUMP_INTERRUPTED != 0;
        match header.message_type {
            NLMSG_NOOP => {}
            NLMSG_OVERRUN => return Err(io::Error::from_raw_os_error(libc::ENOBUFS).into()),
            NLMSG_ERROR => {
                let error = ErrorBuffer::new_checked(payload).map_err(undecodable)?;
                return match error.code() {
                    None => Ok(Progress::Complete),
                    Some(code) => Err(refusal(code.get(), error.payload())),
                };
            }
            NLMSG_DONE => {
                let code = DoneBuffer::new_checked(payload).map_or(0, |done| done.code());
                return if code < 0 { Err(refusal(code, &[])) } else { Ok(Progress::Complete) };
            }
            message_type => answers.push(Answer { message_type, payload: payload.to_vec() }),
        }
    }
    Ok(Progress::More)
}

fn refusal(code: i32, after_code: &[u8]) -> Refusal {
    let attributes = after_code.get(HEADER_BYTES..).unwrap_or_default();
    Refusal {
        source: io::Error::from_raw_os_error(code.saturating_neg()),
        explanation: attribute(attributes, ERROR_ATTRIBUTE_MESSAGE).map(text),
    }
}

/// The value of the first attribute of that kind in a run of attributes.
pub(crate) fn attribute(attributes: &[u8], kind: u16) -> Option<&[u8]> {
    NlasIterator::new(attributes).map_while(Result::ok).find_map(|found| {
        let (start, length) = (4, found.value_length());
        // The iterator has checked the length; the slice is taken again here because the view's
        // own accessor borrows from the view.
        (found.kind() == kind).then(|| found.into_inner().get(start..start + length)).flatten()
    })
}

/// The value of a 32-bit attribute in host order.
pub(crate) fn attribute_u32(attributes: &[u8], kind: u16) -> Option<u32> {
    attribute(attributes, kind)?.try_into().ok().map(u32::from_ne_bytes)
}

/// A zero-terminated string of the kernel as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// An answer that does not have the shape which the kernel promises.
pub(crate) fn undecodable(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

/// The messages of one datagram, each with its header.
struct Messages<'a>(&'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = io::Result<(NetlinkHeader, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let rest = self.0;
        let decoded = NetlinkBuffer::new_checked(rest).and_then(|message| {
            NetlinkHeader::parse(&message).map(|header| (header, message.length() as usize))
        });
        match decoded {
            Ok((header, length)) => {
                self.0 = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
                Some(Ok((header, rest.get(HEADER_BYTES..length).unwrap_or_default())))
            }
            Err(error) => {
                self.0 = &[];
                Some(Err(undecodable(error)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(message_type: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&(16 + payload.len() as u32).to_ne_bytes());
        bytes.extend_from_slice(&message_type.to_ne_bytes());
        bytes.extend_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(&sequence.to_ne_bytes());
        bytes.extend_from_slice(&0u32.to_ne_bytes());
        bytes.extend_from_slice(payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn answers_to_other_requests_are_left_out() {
        let mut datagram = message(16, 2, 6, b"late");
        datagram.extend(message(16, 2, 7, b"mine!"));
        datagram.extend(message(NLMSG_DONE, 2, 7, &[0; 4]));
        let (mut answers, mut interrupted) = (Vec::new(), false);
        let progress = collect(&datagram, 7, &mut answers, &mut interrupted);
        assert!(matches!(progress, Ok(Progress::Complete)));
        assert_eq!(answers, [Answer { message_type: 16, payload: b"mine!".to_vec() }]);
        assert!(!interrupted);
    }

    #[test]
    fn a_refusal_carries_the_kernels_words() {
        let mut payload = (-libc::EPERM).to_ne_bytes().to_vec();
        payload.extend_from_slice(&[0; HEADER_BYTES]);
        payload.extend_from_slice(&[11, 0, 1, 0]);
        payload.extend_from_slice(b"no way\0\0");
        let refused =
            collect(&message(NLMSG_ERROR, 0x200, 1, &payload), 1, &mut vec![], &mut false)
                .err()
                .expect("refused");
        let error = refused.into_error("moving a mountain");
        assert_eq!(error.errno(), Some(libc::EPERM));
        assert!(error.to_string().starts_with("moving a mountain (the kernel explains: no way): "));
    }

    #[test]
    fn cut_and_overlong_messages_are_errors_not_panics() {
        let whole = message(NLMSG_ERROR, 0, 1, &[0; 20]);
        for length in 1..whole.len() {
            let cut = collect(&whole[..length], 1, &mut vec![], &mut false);
            assert!(cut.is_err(), "{length} bytes of a message of {} passed", whole.len());
        }
        let short = message(NLMSG_ERROR, 0, 1, &[0; 2]);
        assert!(collect(&short, 1, &mut vec![], &mut false).is_err());
    }

    #[test]
    fn the_kernel_answers_a_dump_of_links() {
        let mut socket = NetlinkSocket::open(Protocol::Route).unwrap();
        let answers =
            socket.request("listing links", libc::RTM_GETLINK, NLM_F_DUMP, &[0; 16]).unwrap();
        assert!(answers.iter().all(|answer| answer.message_type == libc::RTM_NEWLINK));
        assert!(answers.iter().any(|a| attribute(&a.payload[16..], 3) == Some(b"lo\0")));
    }
}
