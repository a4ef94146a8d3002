//! What stands between the link's header and the network's: VLAN tags, MPLS labels, PPPoE, Geneve.
//! Each moves the place of the headers that later tests look at.

use super::Compiler;
use super::link_type::{ETHERNET_IN_GENEVE, IPV4, IPV6, MPLS, PPP_MPLS, PPPOE_SESSION, VLAN};
use crate::condition::{Condition, Operand, Relation, Size, Test, Value, ValueId, Variable};
use crate::error::Result;
use crate::link::{Layer, Place};
use crate::syntax::{Direction, Operator};

const VLAN_MAX: u32 = 0xfff;
const LABEL_MAX: u32 = 0xf_ffff;
const SESSION_MAX: u32 = 0xffff;
const VNI_MAX: u32 = 0xff_ffff;
const GENEVE_PORT: u16 = 6081;
const UDP: u32 = 17;

impl Compiler<'_> {
    pub(super) fn vlan(&mut self, id: Option<u32>) -> Result<Condition> {
        if self.headers.labels > 0 {
            return self.refuse("behind MPLS labels VLAN tags cannot be recognised");
        }
        if self.headers.layer != Layer::Ethernet {
            let message = format!("{} has no VLAN tags", self.headers.layer.name());
            return self.refuse(message);
        }
        let kinds = VLAN.map(|number| self.link_type(number));
        let kinds: Vec<Condition> = kinds.into_iter().collect::<Result<_>>()?;
        let mut parts = vec![Condition::Or(kinds)];
        if let Some(id) = id {
            self.check("VLAN id", id, VLAN_MAX)?;
            parts.push(self.masked(self.headers.network_at(), Size::Half, VLAN_MAX, id));
        }
        self.headers.payload = self.headers.payload.plus(4);
        self.headers.link_type = self.headers.link_type.plus(4);
        Ok(Condition::And(parts))
    }

    pub(super) fn mpls(&mut self, label: Option<u32>) -> Result<Condition> {
        let network = self.headers.network_at();
        let mut parts = vec![match (self.headers.labels, self.headers.layer) {
            // The label in front is not the last one.
            (1.., _) => self.masked(network.plus(2u32.wrapping_neg()), Size::Byte, 1, 0),
            (0, Layer::Ethernet) => self.link_type(MPLS)?,
            (0, Layer::Ppp) => self.link_type(PPP_MPLS)?,
            (0, layer) => return self.refuse(format!("{} has no MPLS labels", layer.name())),
        }];
        if let Some(label) = label {
            self.check("MPLS label", label, LABEL_MAX)?;
            parts.push(self.masked(network, Size::Word, 0xffff_f000, label << 12));
        }
        self.headers.network += 4;
        self.headers.network_without_snap += 4;
        self.headers.labels += 1;
        Ok(Condition::And(parts))
    }

    pub(super) fn pppoe_session(&mut self, session: Option<u32>) -> Result<Condition> {
        let mut parts = vec![self.link_type(PPPOE_SESSION)?];
        let network = self.headers.network_at();
        if let Some(session) = session {
            self.check("PPPoE session", session, SESSION_MAX)?;
            parts.push(self.masked(network, Size::Word, 0xffff, session));
        }
        // Version, type, code, session and length, then PPP's protocol number.
        let headers = &mut self.headers;
        headers.layer = Layer::Ppp;
        headers.link = network.plus(6);
        headers.in_geneve = false;
        headers.link_type = headers.link;
        headers.payload.offset = headers.link.offset.wrapping_add(2);
        headers.network = 0;
        headers.network_without_snap = 0;
        Ok(Condition::And(parts))
    }

    /// RFC 8926: UDP to port 6081, version 0; then a header whose length and content it says itself.
    pub(super) fn geneve(&mut self, vni: Option<u32>) -> Result<Condition> {
        if let Some(vni) = vni {
            self.check("Geneve network", vni, VNI_MAX)?;
        }
        self.take_registers(3)?;
        let [link, link_type, payload] = std::array::from_fn(|_| self.variable());
        let over_ipv4 = self.geneve_over(IPV4, vni, link_type)?;
        let over_ipv6 = self.geneve_over(IPV6, vni, link_type)?;
        let mut parts = vec![Condition::Or(vec![over_ipv4, over_ipv6])];
        // The options are counted in words of 4 bytes, in the header's first byte.
        let first = self.load(Place::at(link_type), Size::Byte);
        let words = self.operation(Operator::And, first, 0x3f);
        let options = self.operation(Operator::Mul, words, 4);
        let bytes = self.operation(Operator::Add, options, 8);
        let start = self.values.id(Value::Variable(link_type));
        let end = Value::Operation(Operator::Add, bytes, start);
        parts.push(Condition::Set(link, self.values.id(end)));
        let ethernet = self.equal(Place::at(link_type).plus(2), Size::Half, ETHERNET_IN_GENEVE);
        let with_header = Condition::And(vec![
            ethernet,
            self.set(link_type, link, 10),
            self.set(payload, link, 14),
        ]);
        parts.push(Condition::Or(vec![with_header, self.set(payload, link, 0)]));
        let headers = &mut self.headers;
        headers.layer = Layer::Ethernet;
        headers.link = Place::at(link);
        headers.link_type = Place::at(link_type).plus(2);
        headers.payload = Place::at(payload);
        headers.network = 0;
        headers.in_geneve = true;
        Ok(Condition::And(parts))
    }

    /// A Geneve header over one version of IP; its start, two bytes in front of its type, goes to
    /// `link_type`.
    fn geneve_over(
        &mut self,
        version: u32,
        vni: Option<u32>,
        link_type: Variable,
    ) -> Result<Condition> {
        let destination = Some(Direction::Destination);
        let ports = GENEVE_PORT..=GENEVE_PORT;
        let mut parts = vec![self.ports_of(version, &ports, Some(UDP), destination)?];
        let mut masked = |compiler: &mut Self, offset, size, mask, bits| {
            let value = compiler.behind_network(version, offset, size);
            let operand = Operand::Constant(bits);
            parts.push(Condition::Test(Test { value, mask, relation: Relation::Equal, operand }));
        };
        masked(self, 8, Size::Byte, 0xc0, 0);
        if let Some(vni) = vni {
            masked(self, 12, Size::Word, 0xffff_ff00, vni << 8);
        }
        let header = self.network_bytes(version);
        // Behind the network header: 8 bytes of UDP.
        let more = self.headers.network_at().offset.wrapping_add(8);
        let start = self.operation(Operator::Add, header, more);
        parts.push(Condition::Set(link_type, start));
        Ok(Condition::And(parts))
    }

    /// Bytes from the base of the link's payload to the end of the network header, without what is
    /// fixed.
    fn network_bytes(&mut self, version: u32) -> ValueId {
        if version == IPV4 {
            return self.ipv4_header_bytes();
        }
        match self.headers.payload.base {
            Some(variable) => {
                let base = self.values.id(Value::Variable(variable));
                self.operation(Operator::Add, base, 40)
            }
            None => self.values.id(Value::Constant(40)),
        }
    }

    /// Gives `variable` the value of another one and so many bytes more.
    fn set(&mut self, variable: Variable, of: Variable, plus: u32) -> Condition {
        let of = self.values.id(Value::Variable(of));
        let value = if plus == 0 { of } else { self.operation(Operator::Add, of, plus) };
        Condition::Set(variable, value)
    }

    fn operation(&mut self, operator: Operator, left: ValueId, right: u32) -> ValueId {
        let right = self.values.id(Value::Constant(right));
        self.values.id(Value::Operation(operator, left, right))
    }

    fn check(&self, what: &str, number: u32, maximum: u32) -> Result<()> {
        if number <= maximum {
            return Ok(());
        }
        self.refuse(format!("{what} {number} is above {maximum}, the largest"))
    }
}
