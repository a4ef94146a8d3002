//! What the frames of a run are, as people write it.

use std::net::{Ipv4Addr, Ipv6Addr};

use clap::{Args, ValueEnum};
use wire::MacAddress;
use wire::stamp::StampKind;
use wire::template::{
    Field, IcmpEchoSpec, Ipv4Spec, Ipv6Spec, MplsSpec, NetworkSpec, PayloadFill, TcpSpec,
    TemplateSpec, TransportSpec, UdpSpec, VlanSpec,
};

use crate::exit::Usage;

/// Bytes without FCS of the smallest Ethernet frame (IEEE 802.3, clause 3.2.8: 64 with FCS).
const SMALLEST_FRAME_BYTES: u16 = 60;

/// What frames are made of.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Frame")]
pub struct FrameArgs {
    /// Source MAC address [default: that of the interface]
    #[arg(long, value_name = "MAC")]
    pub src_mac: Option<Field<MacAddress>>,
    /// Destination MAC address
    #[arg(long, value_name = "MAC", default_value = "02:00:00:00:00:02")]
    pub dst_mac: Field<MacAddress>,
    /// VLAN tags, the outer one first
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub vlan: Vec<Field<u16>>,
    /// MPLS labels, the outer one first
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    pub mpls: Vec<Field<u32>>,
    /// Source IPv4 or IPv6 addresses [default: 198.18.0.1 or 2001:2::1]
    #[arg(long, value_name = "IP")]
    pub src: Option<String>,
    /// Destination IPv4 or IPv6 addresses [default: 198.19.0.1 or 2001:2:0:1::1]
    #[arg(long, value_name = "IP")]
    pub dst: Option<String>,
    /// Time to live or hop limit
    #[arg(long, default_value = "64")]
    pub ttl: u8,
    /// Transport protocol
    #[arg(long, value_enum, default_value = "udp")]
    pub proto: Proto,
    /// Source ports
    #[arg(long, value_name = "PORT", default_value = "1024")]
    pub sport: Field<u16>,
    /// Destination ports
    #[arg(long, value_name = "PORT", default_value = "9")]
    pub dport: Field<u16>,
    /// Payload behind the stamp
    #[arg(long, value_enum, default_value = "zeros")]
    pub payload: Payload,
    /// What to put at the beginning of the payload for the receiver
    #[arg(long, value_enum, default_value = "linerate")]
    pub stamp: StampArg,
    /// Number of the stream in the stamp
    #[arg(long, default_value = "0")]
    pub stream: u16,
}

/// Transport protocols that frames are made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Proto {
    /// UDP
    Udp,
    /// TCP, a SYN
    Tcp,
    /// ICMP or ICMPv6 echo request
    Icmp,
    /// IP without a transport header
    None,
}

/// Payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Payload {
    /// Zeros
    Zeros,
    /// 0, 1, 2, …
    Increment,
}

/// Stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StampArg {
    /// Sequence and ns time, 64 bits each
    Linerate,
    /// The header of the kernel's pktgen
    Pktgen,
    /// Nothing
    None,
}

impl FrameArgs {
    /// The template that these options describe.
    pub fn template(
        &self,
        size: Option<Field<u16>>,
        interface_mac: Option<MacAddress>,
    ) -> Result<TemplateSpec, Usage> {
        let mut spec = TemplateSpec { stream: self.stream, ..TemplateSpec::default() };
        if let Some(mac) = interface_mac {
            spec.source_mac = Field::Fixed(mac);
        }
        if let Some(mac) = self.src_mac {
            spec.source_mac = mac;
        }
        spec.destination_mac = self.dst_mac;
        spec.vlan_tags = self.vlan_tags();
        let label = |label: &Field<u32>| MplsSpec { label: *label, ..MplsSpec::default() };
        spec.mpls_labels = self.mpls.iter().map(label).collect();
        spec.network = self.network()?;
        spec.transport = self.transport();
        spec.payload = match self.payload {
            Payload::Zeros => PayloadFill::Zeros,
            Payload::Increment => PayloadFill::Incrementing,
        };
        spec.stamp = match self.stamp {
            StampArg::Linerate => Some(StampKind::Linerate),
            StampArg::Pktgen => Some(StampKind::Pktgen),
            StampArg::None => None,
        };
        spec.size = size.unwrap_or_else(|| {
            let least = u16::try_from(spec.frame_bytes_least()).unwrap_or(u16::MAX);
            Field::Fixed(least.max(SMALLEST_FRAME_BYTES))
        });
        Ok(spec)
    }

    /// A single tag is a customer's (0x8100); of several the outer one is a provider's (0x88a8).
    fn vlan_tags(&self) -> Vec<VlanSpec> {
        let outer = self.vlan.len().saturating_sub(1);
        let tag = |(place, id): (usize, &Field<u16>)| VlanSpec {
            tpid: if place < outer { 0x88a8 } else { 0x8100 },
            id: *id,
            ..VlanSpec::default()
        };
        self.vlan.iter().enumerate().map(tag).collect()
    }

    fn network(&self) -> Result<NetworkSpec, Usage> {
        // `random:` holds a colon itself; what follows decides.
        let is_ipv6 = |text: &String| text.trim_start_matches("random:").contains(':');
        if self.src.iter().chain(&self.dst).any(is_ipv6) {
            let mut ipv6 = Ipv6Spec { hop_limit: self.ttl, ..Ipv6Spec::default() };
            ipv6.source = parsed::<Ipv6Addr>("--src", &self.src)?.unwrap_or(ipv6.source);
            ipv6.destination = parsed::<Ipv6Addr>("--dst", &self.dst)?.unwrap_or(ipv6.destination);
            return Ok(NetworkSpec::Ipv6(ipv6));
        }
        let mut ipv4 = Ipv4Spec { ttl: self.ttl, ..Ipv4Spec::default() };
        ipv4.source = parsed::<Ipv4Addr>("--src", &self.src)?.unwrap_or(ipv4.source);
        ipv4.destination = parsed::<Ipv4Addr>("--dst", &self.dst)?.unwrap_or(ipv4.destination);
        Ok(NetworkSpec::Ipv4(ipv4))
    }

    fn transport(&self) -> TransportSpec {
        let (source_port, destination_port) = (self.sport, self.dport);
        match self.proto {
            Proto::Udp => {
                TransportSpec::Udp(UdpSpec { source_port, destination_port, ..UdpSpec::default() })
            }
            Proto::Tcp => {
                TransportSpec::Tcp(TcpSpec { source_port, destination_port, ..TcpSpec::default() })
            }
            Proto::Icmp => TransportSpec::IcmpEcho(IcmpEchoSpec::default()),
            Proto::None => TransportSpec::none(),
        }
    }
}

fn parsed<T>(option: &str, text: &Option<String>) -> Result<Option<Field<T>>, Usage>
where
    Field<T>: std::str::FromStr<Err: std::fmt::Display>,
{
    let parse = |text: &String| text.parse().map_err(|error| Usage(format!("{option}: {error}")));
    text.as_ref().map(parse).transpose()
}
