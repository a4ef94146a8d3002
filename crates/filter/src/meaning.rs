//! What a tree means on a link: a condition.
//!
//! Each file gives the meaning of one kind of test. The order of the parts of a condition is
//! libpcap's, since a load beyond the captured bytes ends the filter: which one comes first decides
//! about cut packets.

mod address;
mod arithmetic;
mod link_type;
mod llc;
mod port;
mod protocol;
mod tag;

pub(crate) use arithmetic::operate;

use std::ops::Range;

use crate::condition::{
    Condition, Operand, Relation, Size, Test, Value, ValueId, Values, Variable,
};
use crate::error::{FilterError, Result};
use crate::link::{Headers, Layer, Link, Place};
use crate::names::Names;
use crate::syntax::{ByteTest, Direction, Expression, Primitive, Protocol};

/// Where the kernel's facts about a packet stand in classic BPF (`SKF_AD_OFF` in
/// include/uapi/linux/filter.h).
pub(crate) const ANCILLARY: u32 = 0xffff_f000;
/// Of these: who the packet is for (`SKF_AD_PKTTYPE`),
pub(crate) const PACKET_TYPE: u32 = ANCILLARY + 4;
/// and the interface's number (`SKF_AD_IFINDEX`).
pub(crate) const INTERFACE: u32 = ANCILLARY + 8;
/// `PACKET_OUTGOING` in include/uapi/linux/if_packet.h, in all places where it is asked for.
pub(crate) const OUTGOING: u32 = 4;

/// An expression's meaning.
pub(crate) struct Meaning {
    pub values: Values,
    pub condition: Condition,
}

/// Gives `expression` its meaning on `link`.
pub(crate) fn of(
    expression: &Expression,
    link: Link,
    netmask: Option<u32>,
    names: &dyn Names,
) -> Result<Meaning> {
    let mut compiler = Compiler {
        values: Values::default(),
        headers: Headers::of(link),
        variables: 0,
        registers: 0,
        netmask,
        names,
        span: 0..0,
    };
    let condition = compiler.expression(expression)?;
    Ok(Meaning { values: compiler.values, condition })
}

struct Compiler<'a> {
    values: Values,
    headers: Headers,
    variables: u32,
    /// Of libpcap, in use.
    registers: u32,
    /// Of the network whose broadcast address `ip broadcast` means.
    netmask: Option<u32>,
    names: &'a dyn Names,
    /// The primitive that is being given its meaning.
    span: Range<usize>,
}

impl Compiler<'_> {
    fn expression(&mut self, expression: &Expression) -> Result<Condition> {
        Ok(match expression {
            Expression::Primitive(primitive, span) => {
                self.span = span.clone();
                self.primitive(primitive)?
            }
            Expression::Not(inner) => !self.expression(inner)?,
            Expression::Chain(first, joined) => {
                let first = self.expression(first)?;
                let mut others = Vec::with_capacity(joined.len());
                for (joint, next) in joined {
                    others.push((*joint, self.expression(next)?));
                }
                Condition::Chain(Box::new(first), others)
            }
        })
    }

    fn primitive(&mut self, primitive: &Primitive) -> Result<Condition> {
        match primitive {
            Primitive::Id { qualifiers, id } => self.id(*qualifiers, id),
            Primitive::Protocol(protocol) => self.protocol(*protocol),
            Primitive::Relation { left, comparison, right } => {
                self.relation(left, *comparison, right)
            }
            Primitive::Broadcast(protocol) => self.broadcast(*protocol),
            Primitive::Multicast(protocol) => self.multicast(*protocol),
            Primitive::Less(bytes) => Ok(!self.length(Relation::Greater, *bytes)),
            Primitive::Greater(bytes) => Ok(self.length(Relation::GreaterEqual, *bytes)),
            Primitive::Byte { at, test, with } => Ok(self.byte(*at, *test, *with)),
            Primitive::Inbound => Ok(!self.outbound()),
            Primitive::Outbound => Ok(self.outbound()),
            Primitive::Interface(number) => Ok(self.interface(*number)),
            Primitive::Vlan(id) => self.vlan(*id),
            Primitive::Mpls(label) => self.mpls(*label),
            Primitive::PppoeDiscovery => self.link_type(link_type::PPPOE_DISCOVERY),
            Primitive::PppoeSession(session) => self.pppoe_session(*session),
            Primitive::Geneve(vni) => self.geneve(*vni),
            Primitive::Llc(kind) => self.llc(*kind),
        }
    }

    /// An error about the primitive at hand.
    fn refuse<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(FilterError::new(self.span.clone(), message))
    }

    fn length(&mut self, relation: Relation, bytes: u32) -> Condition {
        let value = self.values.id(Value::Length);
        let operand = Operand::Constant(bytes);
        Condition::Test(Test { value, mask: u32::MAX, relation, operand })
    }

    fn byte(&mut self, at: u32, test: ByteTest, with: u32) -> Condition {
        let link = self.headers.link;
        let place = match link.base {
            None => Place::fixed(arithmetic::place_of(link.offset, at)),
            Some(_) => link.plus(at),
        };
        match test {
            ByteTest::Equal => self.equal(place, Size::Byte, with),
            ByteTest::Greater => self.compare(place, Size::Byte, Relation::Greater, with),
            ByteTest::Less => !self.compare(place, Size::Byte, Relation::GreaterEqual, with),
            ByteTest::And => !self.masked(place, Size::Byte, with, 0),
            // A byte with bits set is 0 only if none is to be set.
            ByteTest::Or if with != 0 => Condition::Always,
            ByteTest::Or => !self.equal(place, Size::Byte, 0),
        }
    }

    fn outbound(&mut self) -> Condition {
        let link = self.headers.link;
        match self.headers.layer {
            Layer::LinuxCooked => self.equal(link, Size::Half, OUTGOING),
            Layer::LinuxCooked2 => self.equal(link.plus(10), Size::Byte, OUTGOING),
            // A fact about the packet, wherever its headers were moved to.
            _ => self.equal(Place::fixed(PACKET_TYPE), Size::Half, OUTGOING),
        }
    }

    fn interface(&mut self, number: u32) -> Condition {
        let link = self.headers.link;
        match self.headers.layer {
            Layer::LinuxCooked2 => self.equal(link.plus(4), Size::Word, number),
            _ => self.equal(Place::fixed(INTERFACE), Size::Word, number),
        }
    }

    fn broadcast(&mut self, protocol: Option<Protocol>) -> Result<Condition> {
        match (protocol, self.headers.layer) {
            (None | Some(Protocol::Link), Layer::Ethernet) => {
                let broadcast = self.mac([0xff; 6], Some(Direction::Destination))?;
                Ok(Condition::And(vec![self.link_header_there(), broadcast]))
            }
            (None | Some(Protocol::Link), layer) => {
                self.refuse(format!("{} has no broadcast address", layer.name()))
            }
            (Some(Protocol::Ip), _) => {
                let Some(netmask) = self.netmask else {
                    return self.refuse(
                        "ip broadcast needs the netmask of the network, which is not known here",
                    );
                };
                let ip = self.link_type(link_type::IPV4)?;
                let destination = self.headers.network_at().plus(16);
                let zeros = self.masked(destination, Size::Word, !netmask, 0);
                let ones = self.masked(destination, Size::Word, !netmask, !netmask);
                Ok(Condition::And(vec![ip, Condition::Or(vec![zeros, ones])]))
            }
            _ => self.refuse("only ether and ip have broadcast addresses"),
        }
    }

    fn multicast(&mut self, protocol: Option<Protocol>) -> Result<Condition> {
        let network = self.headers.network_at();
        match (protocol, self.headers.layer) {
            (None | Some(Protocol::Link), Layer::Ethernet) => {
                let there = self.link_header_there();
                let group = !self.masked(self.headers.link, Size::Byte, 1, 0);
                Ok(Condition::And(vec![there, group]))
            }
            (None | Some(Protocol::Link), layer) => {
                self.refuse(format!("{} has no multicast addresses", layer.name()))
            }
            (Some(Protocol::Ip), _) => {
                let ip = self.link_type(link_type::IPV4)?;
                let class_d =
                    self.compare(network.plus(16), Size::Byte, Relation::GreaterEqual, 224);
                Ok(Condition::And(vec![ip, class_d]))
            }
            (Some(Protocol::Ip6), _) => {
                let ip6 = self.link_type(link_type::IPV6)?;
                Ok(Condition::And(vec![ip6, self.equal(network.plus(24), Size::Byte, 255)]))
            }
            _ => self.refuse("only ether, ip and ip6 have multicast addresses"),
        }
    }

    /// Whether the frame that a Geneve header carries is an Ethernet frame; elsewhere it always is.
    fn link_header_there(&mut self) -> Condition {
        if !self.headers.in_geneve {
            return Condition::Always;
        }
        let [link, payload] =
            [self.headers.link, self.headers.payload].map(|place| match place.base {
                Some(variable) => self.values.id(Value::Variable(variable)),
                None => self.values.id(Value::Constant(0)),
            });
        !Condition::Test(Test {
            value: link,
            mask: u32::MAX,
            relation: Relation::Equal,
            operand: Operand::Value(payload),
        })
    }

    /// A new variable.
    fn variable(&mut self) -> Variable {
        self.variables += 1;
        Variable(self.variables - 1)
    }

    /// Bytes at a place.
    fn load(&mut self, place: Place, size: Size) -> ValueId {
        let at = place.base.map(|variable| self.values.id(Value::Variable(variable)));
        self.values.id(Value::Load { at, offset: place.offset, size })
    }

    fn equal(&mut self, place: Place, size: Size, constant: u32) -> Condition {
        self.masked(place, size, u32::MAX, constant)
    }

    /// Whether the bits of `mask` are those of `constant`.
    fn masked(&mut self, place: Place, size: Size, mask: u32, constant: u32) -> Condition {
        let value = self.load(place, size);
        let operand = Operand::Constant(constant);
        Condition::Test(Test { value, mask, relation: Relation::Equal, operand })
    }

    fn compare(
        &mut self,
        place: Place,
        size: Size,
        relation: Relation,
        constant: u32,
    ) -> Condition {
        let value = self.load(place, size);
        let operand = Operand::Constant(constant);
        Condition::Test(Test { value, mask: u32::MAX, relation, operand })
    }

    /// Whether `bytes` stand there; the last four are asked first, then those in front.
    fn bytes(&mut self, place: Place, bytes: &[u8]) -> Condition {
        let mut parts = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let size = match rest.len() {
                4.. => Size::Word,
                2..4 => Size::Half,
                _ => Size::Byte,
            };
            let (front, part) = rest.split_at(rest.len() - size.bytes() as usize);
            let constant = part.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
            parts.push(self.equal(place.plus(front.len() as u32), size, constant));
            rest = front;
        }
        Condition::And(parts)
    }
}
