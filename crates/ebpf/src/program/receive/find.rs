//! Finding the stamp of a frame: where the user plane's pass over the headers sees the payload begin
//! (crates/wire, `parse` and `stamp`), and as that reads it.
//!
//! Registers: R3 is where the payload begins by what is known so far, R4 where it ends, R5 the EtherType, then
//! the protocol; R1 the address of what is looked at. Where a header is not whole or makes no sense, the
//! payload is what it was before it. Only the first buffer of a frame is looked into.

use super::{NUMBER, SENT, STREAM};
use crate::assembler::{Assembler, Label};
use crate::operation::Register::{R0, R1, R2, R3, R4, R5, R7, R8, R9, R10};
use crate::operation::{Arithmetic, Comparison, Register, Size};
use Arithmetic::{Add, And, Mul, ShiftLeft, ShiftRight};
use Comparison::{AnyBit, Equal, Greater, Less, NotEqual};

const ETHERNET_BYTES: i32 = 14;
const VLAN_TAGS_MAX: i32 = 4;
const MPLS_LABELS_MAX: usize = 8;
const EXTENSION_HEADERS_MAX: usize = 8;

const IPV4: i32 = 0x0800;
const ARP: i32 = 0x0806;
const IPV6: i32 = 0x86dd;
const VLAN: [i32; 3] = [0x8100, 0x88a8, 0x9100];
const MPLS: [i32; 2] = [0x8847, 0x8848];

const ICMP: i32 = 1;
const TCP: i32 = 6;
const UDP: i32 = 17;
const ICMPV6: i32 = 58;
const SCTP: i32 = 132;
const FRAGMENT: i32 = 44;
const AUTHENTICATION: i32 = 51;
/// Hop-by-hop options, routing and destination options: one length field for all.
const OPTIONS: [i32; 3] = [0, 43, 60];

const LINERATE_MAGIC: i32 = 0x4c52;
const LINERATE_BYTES: i32 = 18;
const PKTGEN_MAGIC: i32 = 0xbe9b_e955_u32.cast_signed();
const PKTGEN_BYTES: i32 = 16;

/// Labels that several headers lead to.
struct Places {
    ipv4: Label,
    ipv6: Label,
    /// The payload is where R3 and R4 say.
    read: Label,
    unstamped: Label,
}

/// Goes to `stamped` with number, stream and time on the stack, or to `unstamped`. Loses R0 to R5.
pub(super) fn find(assembler: &mut Assembler, stamped: Label, unstamped: Label) {
    let places = Places {
        ipv4: assembler.label("ipv4"),
        ipv6: assembler.label("ipv6"),
        read: assembler.label("payload"),
        unstamped,
    };
    ethernet(assembler, &places);
    ipv4(assembler, &places);
    ipv6(assembler, &places);
    read(assembler, &places, stamped);
}

/// R1 becomes the address of R3; goes to `otherwise` unless so many bytes are there.
fn reach(assembler: &mut Assembler, bytes: i32, otherwise: Label) {
    assembler.copy(R1, R7);
    assembler.compute(Add, R1, R3);
    assembler.copy(R0, R1);
    assembler.compute(Add, R0, bytes);
    assembler.jump_if(R0, Greater, R8, otherwise);
}

/// Loads a field in network order.
fn field(assembler: &mut Assembler, size: Size, to: Register, base: Register, offset: i16) {
    assembler.load(size, to, base, offset);
    assembler.network_order(size, to);
}

fn ethernet(assembler: &mut Assembler, places: &Places) {
    let (network, mpls) = (assembler.label("network"), assembler.label("mpls"));
    assembler.note("Ethernet");
    assembler.set(R3, ETHERNET_BYTES);
    assembler.copy(R4, R9);
    reach(assembler, 0, places.unstamped);
    field(assembler, Size::Half, R5, R7, ETHERNET_BYTES as i16 - 2);
    assembler.jump_if(R5, Equal, IPV4, places.ipv4);
    for tag in 0..=VLAN_TAGS_MAX {
        let tagged = assembler.label("vlan");
        for ethertype in VLAN {
            assembler.jump_if(R5, Equal, ethertype, tagged);
        }
        assembler.jump(network);
        assembler.place(tagged);
        if tag == VLAN_TAGS_MAX {
            break;
        }
        reach(assembler, 4, places.read);
        field(assembler, Size::Half, R5, R1, 2);
        assembler.compute(Add, R3, 4);
    }
    assembler.note("more tags than are followed");
    assembler.jump(places.read);
    assembler.place(network);
    assembler.jump_if(R5, Equal, IPV4, places.ipv4);
    assembler.jump_if(R5, Equal, IPV6, places.ipv6);
    for ethertype in MPLS {
        assembler.jump_if(R5, Equal, ethertype, mpls);
    }
    assembler.jump_if(R5, NotEqual, ARP, places.read);
    arp(assembler, places);
    assembler.place(mpls);
    labels(assembler, places);
}

/// A whole ARP packet has no payload.
fn arp(assembler: &mut Assembler, places: &Places) {
    assembler.note("ARP");
    reach(assembler, 8, places.read);
    assembler.load(Size::Byte, R0, R1, 4);
    assembler.load(Size::Byte, R2, R1, 5);
    assembler.compute(Add, R0, R2);
    assembler.compute(ShiftLeft, R0, 1);
    assembler.compute(Add, R0, 8);
    assembler.compute(Add, R0, R3);
    assembler.jump_if(R0, Greater, R4, places.read);
    assembler.jump(places.unstamped);
}

fn labels(assembler: &mut Assembler, places: &Places) {
    let bottom = assembler.label("bottom_of_stack");
    for _ in 0..MPLS_LABELS_MAX {
        reach(assembler, 4, places.read);
        assembler.load(Size::Byte, R2, R1, 2);
        assembler.compute(Add, R3, 4);
        assembler.jump_if(R2, AnyBit, 1, bottom);
    }
    assembler.note("more labels than are followed");
    assembler.jump(places.read);
    assembler.place(bottom);
    reach(assembler, 1, places.read);
    assembler.load(Size::Byte, R2, R1, 0);
    assembler.compute(ShiftRight, R2, 4);
    assembler.jump_if(R2, Equal, 4, places.ipv4);
    assembler.jump_if(R2, Equal, 6, places.ipv6);
    assembler.jump(places.read);
}

/// R0 becomes the end of the frame if it lies beyond it.
fn limit(assembler: &mut Assembler) {
    let there = assembler.label("there");
    assembler.jump_if(R0, Comparison::LessEqual, R9, there);
    assembler.copy(R0, R9);
    assembler.place(there);
}

fn ipv4(assembler: &mut Assembler, places: &Places) {
    assembler.place(places.ipv4);
    reach(assembler, 20, places.read);
    assembler.load(Size::Byte, R2, R1, 0);
    assembler.copy(R0, R2);
    assembler.compute(ShiftRight, R0, 4);
    assembler.jump_if(R0, NotEqual, 4, places.read);
    assembler.compute(And, R2, 15);
    assembler.compute(ShiftLeft, R2, 2);
    assembler.jump_if(R2, Less, 20, places.read);
    field(assembler, Size::Half, R0, R1, 2);
    assembler.jump_if(R0, Less, R2, places.read);
    assembler.compute(Add, R0, R3);
    limit(assembler);
    assembler.compute(Add, R2, R3);
    assembler.jump_if(R2, Greater, R0, places.read);
    assembler.copy(R3, R2);
    assembler.copy(R4, R0);
    field(assembler, Size::Half, R2, R1, 6);
    assembler.jump_if(R2, AnyBit, 0x1fff, places.read);
    assembler.load(Size::Byte, R5, R1, 9);
    let transport = assembler.label("transport_of_ipv4");
    assembler.jump_if(R5, NotEqual, AUTHENTICATION, transport);
    reach(assembler, 8, places.read);
    step_over(assembler, Extension::Authentication, places);
    assembler.place(transport);
    self::transport(assembler, ICMP, places);
}

#[derive(Clone, Copy, PartialEq)]
enum Extension {
    Authentication,
    Options,
    Fragment,
}

/// R3 goes behind the extension at R1, R5 becomes the next protocol.
fn step_over(assembler: &mut Assembler, extension: Extension, places: &Places) {
    match extension {
        Extension::Fragment => assembler.set(R2, 8),
        Extension::Authentication => {
            assembler.load(Size::Byte, R2, R1, 1);
            assembler.compute(Add, R2, 2);
            assembler.compute(ShiftLeft, R2, 2);
        }
        Extension::Options => {
            assembler.load(Size::Byte, R2, R1, 1);
            assembler.compute(Add, R2, 1);
            assembler.compute(ShiftLeft, R2, 3);
        }
    }
    assembler.compute(Add, R2, R3);
    assembler.jump_if(R2, Greater, R4, places.read);
    assembler.copy(R3, R2);
    if extension == Extension::Fragment {
        field(assembler, Size::Half, R2, R1, 2);
        assembler.jump_if(R2, AnyBit, 0xfff8, places.read);
    }
    assembler.load(Size::Byte, R5, R1, 0);
}

fn ipv6(assembler: &mut Assembler, places: &Places) {
    assembler.place(places.ipv6);
    let (ends, jumbo) = (assembler.label("ipv6_end"), assembler.label("not_jumbo"));
    reach(assembler, 40, places.read);
    assembler.load(Size::Byte, R2, R1, 0);
    assembler.compute(ShiftRight, R2, 4);
    assembler.jump_if(R2, NotEqual, 6, places.read);
    assembler.load(Size::Byte, R5, R1, 6);
    field(assembler, Size::Half, R0, R1, 4);
    assembler.compute(Add, R3, 40);
    assembler.copy(R2, R0);
    assembler.compute(Arithmetic::Or, R2, R5);
    assembler.jump_if(R2, NotEqual, 0, jumbo);
    assembler.copy(R0, R9);
    assembler.jump(ends);
    assembler.place(jumbo);
    assembler.compute(Add, R0, R3);
    limit(assembler);
    assembler.place(ends);
    assembler.copy(R4, R0);
    let transport = assembler.label("transport_of_ipv6");
    assembler.jump_if(R5, Equal, UDP, transport);
    for _ in 0..EXTENSION_HEADERS_MAX {
        extension(assembler, transport, places);
    }
    for number in OPTIONS.into_iter().chain([FRAGMENT, AUTHENTICATION]) {
        assembler.jump_if(R5, Equal, number, places.read);
    }
    assembler.place(transport);
    self::transport(assembler, ICMPV6, places);
}

/// Steps over one extension header; goes to `transport` if there is none.
fn extension(assembler: &mut Assembler, transport: Label, places: &Places) {
    let [options, fragment, authentication, next] =
        ["options", "fragment", "authentication", "next_header"].map(|name| assembler.label(name));
    for number in OPTIONS {
        assembler.jump_if(R5, Equal, number, options);
    }
    assembler.jump_if(R5, Equal, FRAGMENT, fragment);
    assembler.jump_if(R5, Equal, AUTHENTICATION, authentication);
    assembler.jump(transport);
    for (label, kind) in [
        (options, Extension::Options),
        (fragment, Extension::Fragment),
        (authentication, Extension::Authentication),
    ] {
        assembler.place(label);
        reach(assembler, 8, places.read);
        step_over(assembler, kind, places);
        if kind != Extension::Authentication {
            assembler.jump(next);
        }
    }
    assembler.place(next);
}

/// The payload begins behind the header of the transport protocol if that is whole.
fn transport(assembler: &mut Assembler, icmp: i32, places: &Places) {
    let [tcp, eight, twelve] = ["tcp", "icmp", "sctp"].map(|name| assembler.label(name));
    let read = places.read;
    assembler.jump_if(R5, Equal, TCP, tcp);
    assembler.jump_if(R5, Equal, icmp, eight);
    assembler.jump_if(R5, Equal, SCTP, twelve);
    assembler.jump_if(R5, NotEqual, UDP, read);
    fits(assembler, 8, read);
    reach(assembler, 8, read);
    field(assembler, Size::Half, R2, R1, 4);
    assembler.compute(Add, R3, 8);
    assembler.jump_if(R2, Less, 8, read);
    assembler.compute(Add, R2, -8);
    assembler.compute(Add, R2, R3);
    assembler.jump_if(R2, Greater, R4, read);
    assembler.copy(R4, R2);
    assembler.jump(read);

    assembler.place(tcp);
    fits(assembler, 20, read);
    reach(assembler, 20, read);
    assembler.load(Size::Byte, R2, R1, 12);
    assembler.compute(ShiftRight, R2, 4);
    assembler.compute(ShiftLeft, R2, 2);
    assembler.jump_if(R2, Less, 20, read);
    assembler.compute(Add, R2, R3);
    assembler.jump_if(R2, Greater, R4, read);
    assembler.copy(R3, R2);
    assembler.jump(read);

    for (label, bytes) in [(eight, 8), (twelve, 12)] {
        assembler.place(label);
        fits(assembler, bytes, read);
        assembler.compute(Add, R3, bytes);
        assembler.jump(read);
    }
}

/// Goes to `otherwise` unless so many bytes lie in the packet.
fn fits(assembler: &mut Assembler, bytes: i32, otherwise: Label) {
    assembler.copy(R0, R3);
    assembler.compute(Add, R0, bytes);
    assembler.jump_if(R0, Greater, R4, otherwise);
}

fn read(assembler: &mut Assembler, places: &Places, stamped: Label) {
    let pktgen = assembler.label("pktgen");
    assembler.place(places.read);
    fits(assembler, PKTGEN_BYTES, places.unstamped);
    reach(assembler, PKTGEN_BYTES, places.unstamped);
    field(assembler, Size::Half, R2, R1, 0);
    assembler.jump_if(R2, NotEqual, LINERATE_MAGIC, pktgen);
    fits(assembler, LINERATE_BYTES, places.unstamped);
    reach(assembler, LINERATE_BYTES, places.unstamped);
    field(assembler, Size::Double, R2, R1, 2);
    field(assembler, Size::Double, R0, R1, 10);
    assembler.store(Size::Double, R10, SENT, R0);
    assembler.copy(R0, R2);
    assembler.compute(ShiftRight, R0, 48);
    assembler.store(Size::Double, R10, STREAM, R0);
    assembler.compute(ShiftLeft, R2, 16);
    assembler.compute(ShiftRight, R2, 16);
    assembler.store(Size::Double, R10, NUMBER, R2);
    assembler.jump(stamped);

    assembler.place(pktgen);
    field(assembler, Size::Word, R2, R1, 0);
    assembler.jump_if32(R2, NotEqual, PKTGEN_MAGIC, places.unstamped);
    field(assembler, Size::Word, R2, R1, 4);
    assembler.store(Size::Double, R10, NUMBER, R2);
    field(assembler, Size::Word, R2, R1, 8);
    assembler.compute(Mul, R2, 1_000_000_000);
    field(assembler, Size::Word, R0, R1, 12);
    assembler.compute(Mul, R0, 1_000);
    assembler.compute(Add, R2, R0);
    assembler.store(Size::Double, R10, SENT, R2);
    assembler.set(R2, 0);
    assembler.store(Size::Double, R10, STREAM, R2);
    assembler.jump(stamped);
}
