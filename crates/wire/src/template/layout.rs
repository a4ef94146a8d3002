//! From a description to the constant frame and its columns.

use std::net::Ipv6Addr;

use super::column::{Column, Covered, Values};
use super::constants::{Constants, has_pseudo_header};
use super::range::{NarrowRange, WideRange};
use super::sizes::{LengthField, Sizes, VariedSizes};
use super::stamping::Stamping;
use super::{
    Checksum, Field, FieldValue, Ipv4Spec, Ipv6Spec, NetworkSpec, PayloadFill, Place, Template,
    TemplateError, TemplateSpec, TransportSpec,
};
use crate::parse::{MPLS_LABELS_MAX, VLAN_TAGS_MAX};
use crate::{MacAddress, ethertype, ip_protocol};

/// The length of the constant frame is a multiple of this.
const BLOCK_BYTES: usize = 128;

const TCP_BYTES: u8 = 20;
const ICMP_ECHO_REQUEST: u8 = 8;
const ICMPV6_ECHO_REQUEST: u8 = 128;

/// See [`TemplateSpec::compile`].
pub(super) fn compile(spec: &TemplateSpec, seed: u64) -> Result<Template, TemplateError> {
    check_composition(spec)?;
    let mut layout = Layout { seed, frame: Vec::new(), columns: Vec::new() };
    layout.link(spec)?;
    let network_offset = layout.frame.len();
    layout.network(spec)?;
    let transport_offset = layout.frame.len();
    let checksum_at = layout.transport(spec)?;
    let payload_offset = layout.frame.len();
    check(&spec.size, "size", u16::MAX.into())?;
    let (smallest, largest) = spec.size.bounds();
    check_size(smallest.into(), payload_offset, spec)?;
    let payload = (0..usize::from(largest) - payload_offset).map(|at| spec.payload.byte(at));
    layout.frame.extend(payload);
    let covered = checksum_at.is_some();
    let stamping = spec.stamp.map(|kind| {
        layout.clear(payload_offset, kind.bytes());
        Stamping { kind, offset: payload_offset, stream: spec.stream, covered }
    });

    let Layout { mut frame, columns, .. } = layout;
    let constants =
        Constants { spec, frame: &frame, network_offset, transport_offset, payload_offset };
    let network_checksum = constants.network_sum().map(|sum| Checksum {
        offset: network_offset + 10,
        sum,
        zero_means_none: false,
    });
    let length_sums = constants.length_sums(smallest.into());
    let mut transport_sum = constants.transport_sum();
    if let (Field::Fixed(_), [sum, ..]) = (&spec.size, length_sums.as_slice()) {
        transport_sum += u32::from(*sum);
    }
    let sizes = sizes(spec, seed, (network_offset, transport_offset), length_sums);
    let zero_means_none = matches!(spec.transport, TransportSpec::Udp(_));
    let transport_checksum =
        checksum_at.map(|offset| Checksum { offset, sum: transport_sum, zero_means_none });
    frame.resize(frame.len().next_multiple_of(BLOCK_BYTES), 0);
    let mut template = Template {
        frame,
        columns,
        sizes,
        network_checksum,
        transport_checksum,
        stamping,
        index: 0,
        stride: 1,
    };
    template.seek(0, 1);
    Ok(template)
}

/// Number of bytes that headers and stamp of `spec` need.
pub(super) fn frame_bytes_least(spec: &TemplateSpec) -> usize {
    let network = match spec.network {
        NetworkSpec::None { .. } => 0,
        NetworkSpec::Ipv4(_) => 20,
        NetworkSpec::Ipv6(_) => 40,
    };
    let transport = match spec.transport {
        TransportSpec::None { .. } => 0,
        TransportSpec::Udp(_) | TransportSpec::IcmpEcho(_) => 8,
        TransportSpec::Tcp(_) => usize::from(TCP_BYTES),
    };
    let tags = spec.vlan_tags.len() + spec.mpls_labels.len();
    14 + 4 * tags + network + transport + spec.stamp.map_or(0, |stamp| stamp.bytes())
}

fn check_composition(spec: &TemplateSpec) -> Result<(), TemplateError> {
    let tags = [
        ("VLAN tags", spec.vlan_tags.len(), VLAN_TAGS_MAX),
        ("MPLS labels", spec.mpls_labels.len(), MPLS_LABELS_MAX),
    ];
    for (kind, count, maximum) in tags {
        if count > maximum {
            return Err(TemplateError::TooManyTags { kind, count, maximum });
        }
    }
    if matches!(&spec.payload, PayloadFill::Pattern(bytes) if bytes.is_empty()) {
        return Err(TemplateError::EmptyPattern);
    }
    if !matches!(spec.network, NetworkSpec::None { .. }) {
        return Ok(());
    }
    let part = match &spec.transport {
        TransportSpec::Udp(_) => "UDP",
        TransportSpec::Tcp(_) => "TCP",
        TransportSpec::IcmpEcho(_) => "ICMP",
        TransportSpec::None { .. } if !spec.mpls_labels.is_empty() => "MPLS labels",
        TransportSpec::None { .. } => return Ok(()),
    };
    Err(TemplateError::WithoutIp { part })
}

fn check_size(
    size_bytes: usize,
    header_bytes: usize,
    spec: &TemplateSpec,
) -> Result<(), TemplateError> {
    let stamp_bytes = spec.stamp.map_or(0, |stamp| stamp.bytes());
    let minimum_bytes = header_bytes + stamp_bytes;
    if size_bytes >= minimum_bytes {
        return Ok(());
    }
    let parts = match stamp_bytes {
        0 => "its headers".into(),
        _ => format!("headers ({header_bytes}) and stamp ({stamp_bytes})"),
    };
    Err(TemplateError::FrameTooSmall { size_bytes, minimum_bytes, parts })
}

fn check<T: FieldValue>(
    field: &Field<T>,
    name: &'static str,
    maximum: u128,
) -> Result<(), TemplateError> {
    let (first, last) = match *field {
        Field::Fixed(value) => (value, value),
        Field::Step { step: 0, .. } => return Err(TemplateError::ZeroStep { field: name }),
        Field::Step { first, last, .. } | Field::Random { first, last } => (first, last),
    };
    if first > last {
        let (first, last) = (first.to_string(), last.to_string());
        return Err(TemplateError::Downwards { field: name, first, last });
    }
    if last.to_number() > maximum {
        let value = last.to_number();
        return Err(TemplateError::ValueTooLarge { field: name, value, maximum });
    }
    Ok(())
}

fn check_bits(field: &'static str, value: u8, maximum: u8) -> Result<(), TemplateError> {
    if value <= maximum {
        return Ok(());
    }
    let (value, maximum) = (value.into(), maximum.into());
    Err(TemplateError::ValueTooLarge { field, value, maximum })
}

/// The sizes and what follows from them, given where network and transport header begin.
fn sizes(
    spec: &TemplateSpec,
    seed: u64,
    (network_offset, transport_offset): (usize, usize),
    transport_sums: Vec<u16>,
) -> Sizes {
    let (smallest, largest) = spec.size.bounds();
    let range = match spec.size {
        Field::Fixed(_) => None,
        _ => NarrowRange::of(&spec.size, Place::Size.key(seed)),
    };
    let Some(range) = range else { return Sizes::Fixed(largest.into()) };
    let network = match spec.network {
        NetworkSpec::None { .. } => None,
        NetworkSpec::Ipv4(_) => Some((2, 0)),
        NetworkSpec::Ipv6(_) => Some((4, 40)),
    };
    let network = network.map(|(offset, more_bytes)| LengthField {
        offset: network_offset + offset,
        less_bytes: network_offset as u32 + more_bytes,
    });
    let transport = matches!(spec.transport, TransportSpec::Udp(_)).then_some(LengthField {
        offset: transport_offset + 4,
        less_bytes: transport_offset as u32,
    });
    Sizes::Varied(Box::new(VariedSizes {
        range,
        frame_bytes_min: smallest.into(),
        frame_bytes_max: largest.into(),
        network,
        network_covered: matches!(spec.network, NetworkSpec::Ipv4(_)),
        transport,
        transport_sums,
    }))
}

/// A field to be laid out.
struct Item<'a, T> {
    name: &'static str,
    place: Place,
    field: &'a Field<T>,
    maximum: u128,
    covered: Covered,
}

impl<'a, T> Item<'a, T> {
    fn new(name: &'static str, place: Place, field: &'a Field<T>) -> Self {
        Self { name, place, field, maximum: u128::MAX, covered: Covered::default() }
    }

    fn up_to(self, maximum: u128) -> Self {
        Self { maximum, ..self }
    }

    fn covered(self, covered: Covered) -> Self {
        Self { covered, ..self }
    }
}

/// The frame as far as it is laid out.
struct Layout {
    seed: u64,
    frame: Vec<u8>,
    columns: Vec<Column>,
}

impl Layout {
    fn put(&mut self, bytes: &[u8]) {
        self.frame.extend_from_slice(bytes);
    }

    /// Zeros where something else will be.
    fn clear(&mut self, offset: usize, bytes: usize) {
        if let Some(room) = self.frame.get_mut(offset..offset + bytes) {
            room.fill(0);
        }
    }

    /// Appends two bytes: the field together with `constant` bits.
    fn two(&mut self, item: Item<'_, u16>, constant: u16) -> Result<(), TemplateError> {
        let (first, _) = item.field.bounds();
        let make = |range| Values::Two { range, constant };
        self.append(&item, &(first | constant).to_be_bytes(), make)
    }

    /// Appends four bytes: the field shifted left together with `constant` bits.
    fn four<T: FieldValue>(
        &mut self,
        item: Item<'_, T>,
        shift: u32,
        constant: u32,
    ) -> Result<(), TemplateError> {
        let (first, _) = item.field.bounds();
        let first = (first.to_number() as u32) << shift | constant;
        let make = |range| Values::Four { range, shift, constant };
        self.append(&item, &first.to_be_bytes(), make)
    }

    /// Appends six bytes.
    fn mac(&mut self, item: Item<'_, MacAddress>) -> Result<(), TemplateError> {
        let (first, _) = item.field.bounds();
        self.append(&item, &first.0, |range| Values::Six { range })
    }

    /// Appends sixteen bytes, of which the lower half changes, or all.
    fn ipv6_address(&mut self, item: Item<'_, Ipv6Addr>) -> Result<(), TemplateError> {
        let (first, _) = item.field.bounds();
        let key = item.place.key(self.seed);
        if NarrowRange::of(item.field, key).is_some() {
            let octets = first.octets();
            let (upper, lower) = octets.split_at(8);
            self.put(upper);
            return self.append(&item, lower, |range| Values::Eight { range });
        }
        check(item.field, item.name, item.maximum)?;
        let values = Values::Sixteen { range: WideRange::of(item.field, key) };
        let offset = self.frame.len();
        self.columns.push(Column { offset, covered: item.covered, values });
        self.put(&[0; 16]);
        Ok(())
    }

    /// Appends `bytes` if the field is fixed, else as many zeros and a column.
    fn append<T: FieldValue>(
        &mut self,
        item: &Item<'_, T>,
        bytes: &[u8],
        make: impl FnOnce(NarrowRange) -> Values,
    ) -> Result<(), TemplateError> {
        check(item.field, item.name, item.maximum)?;
        let offset = self.frame.len();
        self.put(bytes);
        if let Field::Fixed(_) = item.field {
            return Ok(());
        }
        if let Some(range) = NarrowRange::of(item.field, item.place.key(self.seed)) {
            self.clear(offset, bytes.len());
            self.columns.push(Column { offset, covered: item.covered, values: make(range) });
        }
        Ok(())
    }

    /// Ethernet, VLAN tags and MPLS labels.
    fn link(&mut self, spec: &TemplateSpec) -> Result<(), TemplateError> {
        let macs = [
            ("destination MAC address", Place::DestinationMac, &spec.destination_mac),
            ("source MAC address", Place::SourceMac, &spec.source_mac),
        ];
        for (name, place, field) in macs {
            self.mac(Item::new(name, place, field))?;
        }
        for (tag, place) in spec.vlan_tags.iter().zip(0..) {
            check_bits("VLAN priority", tag.priority, 7)?;
            self.put(&tag.tpid.to_be_bytes());
            let constant = u16::from(tag.priority) << 13 | u16::from(tag.drop_eligible) << 12;
            let item = Item::new("VLAN id", Place::VlanId(place), &tag.id);
            self.two(item.up_to(0xfff), constant)?;
        }
        let ethertype = match spec.network {
            _ if !spec.mpls_labels.is_empty() => ethertype::MPLS_UNICAST,
            NetworkSpec::None { ethertype } => ethertype,
            NetworkSpec::Ipv4(_) => ethertype::IPV4,
            NetworkSpec::Ipv6(_) => ethertype::IPV6,
        };
        self.put(&ethertype.to_be_bytes());
        let bottom = spec.mpls_labels.len();
        for (entry, place) in spec.mpls_labels.iter().zip(0..) {
            check_bits("MPLS traffic class", entry.traffic_class, 7)?;
            let is_bottom = usize::from(place) + 1 == bottom;
            let constant = u32::from(entry.traffic_class) << 9
                | u32::from(is_bottom) << 8
                | u32::from(entry.ttl);
            let item = Item::new("MPLS label", Place::MplsLabel(place), &entry.label);
            self.four(item.up_to(0xf_ffff), 12, constant)?;
        }
        Ok(())
    }

    /// The IP header, with its length if all frames have the same.
    fn network(&mut self, spec: &TemplateSpec) -> Result<(), TemplateError> {
        let covered = Covered { network: true, transport: has_pseudo_header(spec) };
        match &spec.network {
            NetworkSpec::None { .. } => Ok(()),
            NetworkSpec::Ipv4(ipv4) => {
                let length = self.length_here(spec, 0);
                self.ipv4(ipv4, length, spec.transport.protocol(4), covered)
            }
            NetworkSpec::Ipv6(ipv6) => {
                let length = self.length_here(spec, 40);
                self.ipv6(ipv6, length, spec.transport.protocol(6), covered.transport)
            }
        }
    }

    /// Bytes from here to the end of the frame, less `less_bytes`; 0 if that differs from
    /// frame to frame.
    fn length_here(&self, spec: &TemplateSpec, less_bytes: u16) -> u16 {
        match spec.size {
            Field::Fixed(bytes) => bytes.saturating_sub(self.frame.len() as u16 + less_bytes),
            _ => 0,
        }
    }

    fn ipv4(
        &mut self,
        ipv4: &Ipv4Spec,
        total_bytes: u16,
        protocol: u8,
        covered: Covered,
    ) -> Result<(), TemplateError> {
        self.put(&[0x45, ipv4.tos]);
        self.put(&total_bytes.to_be_bytes());
        let header_only = Covered { network: true, transport: false };
        let id = Item::new("IPv4 identification", Place::Identification, &ipv4.id);
        self.two(id.covered(header_only), 0)?;
        let dont_fragment = u8::from(ipv4.dont_fragment) << 6;
        self.put(&[dont_fragment, 0, ipv4.ttl, protocol, 0, 0]);
        let addresses = [
            ("IPv4 source address", Place::SourceAddress, &ipv4.source),
            ("IPv4 destination address", Place::DestinationAddress, &ipv4.destination),
        ];
        for (name, place, field) in addresses {
            self.four(Item::new(name, place, field).covered(covered), 0, 0)?;
        }
        Ok(())
    }

    fn ipv6(
        &mut self,
        ipv6: &Ipv6Spec,
        payload_bytes: u16,
        next_header: u8,
        covered: bool,
    ) -> Result<(), TemplateError> {
        let constant = 6 << 28 | u32::from(ipv6.traffic_class) << 20;
        let label = Item::new("IPv6 flow label", Place::FlowLabel, &ipv6.flow_label);
        self.four(label.up_to(0xf_ffff), 0, constant)?;
        self.put(&payload_bytes.to_be_bytes());
        self.put(&[next_header, ipv6.hop_limit]);
        let covered = Covered { network: false, transport: covered };
        let addresses = [
            ("IPv6 source address", Place::SourceAddress, &ipv6.source),
            ("IPv6 destination address", Place::DestinationAddress, &ipv6.destination),
        ];
        for (name, place, field) in addresses {
            self.ipv6_address(Item::new(name, place, field).covered(covered))?;
        }
        Ok(())
    }

    /// The transport header; the offset of its checksum if it has one.
    fn transport(&mut self, spec: &TemplateSpec) -> Result<Option<usize>, TemplateError> {
        let offset = self.frame.len();
        let covered = Covered { network: false, transport: true };
        match &spec.transport {
            TransportSpec::None { .. } => Ok(None),
            TransportSpec::Udp(udp) => {
                let length = self.length_here(spec, 0);
                self.ports(&udp.source_port, &udp.destination_port, covered)?;
                self.put(&length.to_be_bytes());
                self.put(&[0; 2]);
                Ok(udp.checksum.then_some(offset + 6))
            }
            TransportSpec::Tcp(tcp) => {
                self.ports(&tcp.source_port, &tcp.destination_port, covered)?;
                let item = Item::new("TCP sequence number", Place::TcpSequence, &tcp.sequence);
                self.four(item.covered(covered), 0, 0)?;
                self.put(&tcp.acknowledgment.to_be_bytes());
                self.put(&[(TCP_BYTES / 4) << 4, tcp.flags.bits()]);
                self.put(&tcp.window.to_be_bytes());
                self.put(&[0; 4]);
                Ok(Some(offset + 16))
            }
            TransportSpec::IcmpEcho(echo) => {
                let is_ipv6 = matches!(spec.network, NetworkSpec::Ipv6(_));
                let kind = if is_ipv6 { ICMPV6_ECHO_REQUEST } else { ICMP_ECHO_REQUEST };
                self.put(&[kind, 0, 0, 0]);
                let fields = [
                    ("ICMP identifier", Place::IcmpIdentifier, &echo.identifier),
                    ("ICMP sequence number", Place::IcmpSequence, &echo.sequence),
                ];
                for (name, place, field) in fields {
                    self.two(Item::new(name, place, field).covered(covered), 0)?;
                }
                Ok(Some(offset + 2))
            }
        }
    }

    fn ports(
        &mut self,
        source: &Field<u16>,
        destination: &Field<u16>,
        covered: Covered,
    ) -> Result<(), TemplateError> {
        let source = Item::new("source port", Place::SourcePort, source);
        self.two(source.covered(covered), 0)?;
        let destination = Item::new("destination port", Place::DestinationPort, destination);
        self.two(destination.covered(covered), 0)
    }
}

impl TransportSpec {
    /// IP protocol number over IP of this version.
    pub(super) fn protocol(&self, version: u8) -> u8 {
        match self {
            Self::None { protocol } => *protocol,
            Self::Udp(_) => ip_protocol::UDP,
            Self::Tcp(_) => ip_protocol::TCP,
            Self::IcmpEcho(_) if version == 6 => ip_protocol::ICMPV6,
            Self::IcmpEcho(_) => ip_protocol::ICMP,
        }
    }
}
