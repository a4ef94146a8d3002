//! Ports of TCP, UDP and SCTP.

use std::ops::RangeInclusive;

use super::Compiler;
use super::link_type::{IPV4, IPV6};
use crate::condition::{Condition, Operand, Relation, Size, Test, Value, ValueId};
use crate::error::Result;
use crate::link::Place;
use crate::names::{PortName, number_in_front};
use crate::syntax::{Direction, Operator, Protocol};

const TCP: u32 = 6;
const UDP: u32 = 17;
const SCTP: u32 = 132;
/// In the order in which they are asked for where none is named.
const TRANSPORTS: [u32; 3] = [SCTP, TCP, UDP];

/// The offset in an IPv4 header's bytes 6 and 7 of a fragment that is not the first.
const FRAGMENT_OFFSET: u32 = 0x1fff;

impl Compiler<'_> {
    /// Any packet from or to one of `ports`.
    pub(super) fn ports(
        &mut self,
        ports: &RangeInclusive<u16>,
        transport: Option<u32>,
        direction: Option<Direction>,
    ) -> Result<Condition> {
        let over_ipv6 = self.ports_of(IPV6, ports, transport, direction)?;
        let over_ipv4 = self.ports_of(IPV4, ports, transport, direction)?;
        Ok(Condition::Or(vec![over_ipv6, over_ipv4]))
    }

    /// Packets of one version of IP from or to one of `ports`.
    pub(super) fn ports_of(
        &mut self,
        version: u32,
        ports: &RangeInclusive<u16>,
        transport: Option<u32>,
        direction: Option<Direction>,
    ) -> Result<Condition> {
        if direction == Some(Direction::Wireless) {
            return self.refuse("ports have src and dst, and no addresses of Wi-Fi");
        }
        let ip = self.link_type(version)?;
        let transports = transport.map_or(&TRANSPORTS[..], |one| {
            TRANSPORTS.iter().position(|other| *other == one).map_or(&[], |at| &TRANSPORTS[at..=at])
        });
        let of = |transport: &u32| self.ports_over(version, ports, *transport, direction);
        let any = transports.iter().map(of).collect();
        Ok(Condition::And(vec![ip, Condition::Or(any)]))
    }

    fn ports_over(
        &mut self,
        version: u32,
        ports: &RangeInclusive<u16>,
        transport: u32,
        direction: Option<Direction>,
    ) -> Condition {
        let network = self.headers.network_at();
        let protocol_at = if version == IPV4 { 9 } else { 6 };
        let mut parts = vec![self.equal(network.plus(protocol_at), Size::Byte, transport)];
        if version == IPV4 {
            parts.push(self.first_fragment());
        }
        let port = |compiler: &mut Self, offset| compiler.port_in(version, offset, ports);
        parts.push(match direction {
            Some(Direction::Source) => port(self, 0),
            Some(Direction::Destination) => port(self, 2),
            Some(Direction::Both) => Condition::And(vec![port(self, 0), port(self, 2)]),
            _ => Condition::Or(vec![port(self, 0), port(self, 2)]),
        });
        Condition::And(parts)
    }

    /// Whether the port at `offset` of the transport header is one of `ports`.
    fn port_in(&mut self, version: u32, offset: u32, ports: &RangeInclusive<u16>) -> Condition {
        let value = self.behind_network(version, offset, Size::Half);
        let test = |relation, constant: u16| {
            let operand = Operand::Constant(constant.into());
            Condition::Test(Test { value, mask: u32::MAX, relation, operand })
        };
        if ports.start() == ports.end() {
            return test(Relation::Equal, *ports.start());
        }
        let from = test(Relation::GreaterEqual, *ports.start());
        Condition::And(vec![from, !test(Relation::Greater, *ports.end())])
    }

    /// Whether an IPv4 packet is whole or the first of its fragments.
    pub(super) fn first_fragment(&mut self) -> Condition {
        self.masked(self.headers.network_at().plus(6), Size::Half, FRAGMENT_OFFSET, 0)
    }

    /// Bytes behind the network header, which in IPv6 is taken to have no extensions.
    pub(super) fn behind_network(&mut self, version: u32, offset: u32, size: Size) -> ValueId {
        let network = self.headers.network_at();
        if version == IPV6 {
            return self.load(network.plus(40 + offset), size);
        }
        let at = Some(self.ipv4_header_bytes());
        self.values.id(Value::Load { at, offset: network.offset.wrapping_add(offset), size })
    }

    /// Length of the IPv4 header, and what lies in front of the link's payload beyond a fixed offset.
    pub(super) fn ipv4_header_bytes(&mut self) -> ValueId {
        let network = self.headers.network_at();
        let Some(variable) = network.base else {
            return self.values.id(Value::HeaderBytes { offset: network.offset });
        };
        let base = self.values.id(Value::Variable(variable));
        let first = self.load(Place::at(variable).plus(network.offset), Size::Byte);
        let mut operation = |operator, left, right: u32| {
            let right = self.values.id(Value::Constant(right));
            self.values.id(Value::Operation(operator, left, right))
        };
        let words = operation(Operator::And, first, 0xf);
        let bytes = operation(Operator::ShiftLeft, words, 2);
        self.values.id(Value::Operation(Operator::Add, bytes, base))
    }

    /// The number of the transport protocol that qualifies a port.
    pub(super) fn transport(&self, protocol: Option<Protocol>) -> Result<Option<u32>> {
        Ok(match protocol {
            None => None,
            Some(Protocol::Tcp) => Some(TCP),
            Some(Protocol::Udp) => Some(UDP),
            Some(Protocol::Sctp) => Some(SCTP),
            Some(_) => return self.refuse("only tcp, udp and sctp have ports"),
        })
    }

    pub(super) fn port_number(&self, number: u32) -> Result<u16> {
        match u16::try_from(number) {
            Ok(port) => Ok(port),
            Err(_) => self.refuse(format!("port {number} is above 65535, the largest")),
        }
    }

    /// The port that `name` stands for, and the protocol that it is for if it is for one only.
    pub(super) fn port_named(&self, name: &str) -> Result<PortName> {
        match self.names.port(name) {
            Some(port) => Ok(port),
            None => self.refuse(format!("no service is named {name}: use its number")),
        }
    }

    /// What `80-90`, or with names `http-https`, stands for.
    pub(super) fn port_range(&self, text: &str) -> Result<(RangeInclusive<u16>, Option<u32>)> {
        let numbers = number_in_front(text).and_then(|(first, rest)| {
            let (last, _) = number_in_front(rest.strip_prefix('-')?)?;
            Some((first, last))
        });
        if let Some((first, last)) = numbers {
            let port = |number: i64| match u16::try_from(number) {
                Ok(port) => Ok(port),
                Err(_) => self.refuse(format!("port {number} is not from 0 to 65535")),
            };
            return Ok((ordered(port(first)?, port(last)?), None));
        }
        let Some((first, last)) = text.split_once('-') else {
            return self.refuse("expected two ports with a hyphen between, such as 80-90");
        };
        let (first, last) = (self.port_named(first)?, self.port_named(last)?);
        let transport = if first.transport == last.transport { first.transport } else { None };
        Ok((ordered(first.port, last.port), transport))
    }

    /// Puts the protocol in front of a port and the one that its name is for together.
    pub(super) fn common_transport(
        &self,
        asked: Option<u32>,
        named: Option<u32>,
    ) -> Result<Option<u32>> {
        match (asked, named) {
            (Some(asked), Some(named)) if asked != named => {
                self.refuse("the service of this name is one of another protocol")
            }
            _ => Ok(asked.or(named)),
        }
    }
}

fn ordered(a: u16, b: u16) -> RangeInclusive<u16> {
    a.min(b)..=a.max(b)
}
