//! The Interface Description Block (draft section 4.2).

use super::block::{self, BlockBuilder, ByteOrder, Malformed};
use super::options::{self, Options, RawOption};
use crate::error::Result;
use crate::record::{Interface, LinkType, TimeResolution};

/// `if_name`.
pub const NAME: u16 = 2;
/// `if_description`.
pub const DESCRIPTION: u16 = 3;
/// `if_MACaddr`.
pub const MAC: u16 = 6;
/// `if_speed`.
pub const SPEED: u16 = 8;
/// `if_tsresol`.
pub const TIME_RESOLUTION: u16 = 9;
/// `if_filter`: a zero byte, then the filter in libpcap's language.
pub const FILTER: u16 = 11;
/// `if_os`.
pub const OPERATING_SYSTEM: u16 = 12;
/// `if_fcslen`.
pub const FCS_LENGTH: u16 = 13;
/// `if_tsoffset`, signed seconds.
pub const TIME_OFFSET: u16 = 14;
/// `if_hardware`.
pub const HARDWARE: u16 = 15;

const OPTIONS_AT: usize = 16;

/// Appends an Interface Description Block; returns its length in bytes. Errors: a text over 65,535
/// bytes (65,534 for the filter).
pub fn encode_interface(into: &mut Vec<u8>, interface: &Interface) -> Result<usize> {
    let mut builder = BlockBuilder::begin(into, block::INTERFACE_DESCRIPTION);
    builder
        .field(&interface.link_type.0.to_le_bytes())
        .field(&[0; 2])
        .field(&interface.snap_length.to_le_bytes())
        .text(options::COMMENT, interface.comment.as_ref())?
        .text(NAME, interface.name.as_ref())?
        .text(DESCRIPTION, interface.description.as_ref())?;
    if let Some(mac) = interface.mac {
        builder.option(MAC, &mac)?;
    }
    if let Some(speed) = interface.speed_bits_per_second {
        builder.option(SPEED, &speed.to_le_bytes())?;
    }
    if interface.time_resolution != TimeResolution::MICROSECONDS {
        builder.option(TIME_RESOLUTION, &[interface.time_resolution.raw()])?;
    }
    if let Some(filter) = &interface.filter {
        builder.option(FILTER, &[&[0], filter.as_bytes()].concat())?;
    }
    builder.text(OPERATING_SYSTEM, interface.operating_system.as_ref())?;
    if let Some(length) = interface.fcs_length {
        builder.option(FCS_LENGTH, &[length])?;
    }
    if interface.time_offset_s != 0 {
        builder.option(TIME_OFFSET, &interface.time_offset_s.to_le_bytes())?;
    }
    builder.text(HARDWARE, interface.hardware.as_ref())?;
    builder.finish()
}

/// Reads a whole Interface Description Block; the flag says that options were found that do not fit
/// in it or have the wrong length. Errors: a block too short for its fields.
pub fn parse_interface(block: &[u8], order: ByteOrder) -> Result<(Interface, bool), Malformed> {
    let (Some(link_type), Some(snap_length)) = (order.u16_at(block, 8), order.u32_at(block, 12))
    else {
        return Err(too_short(block));
    };
    if block.len() < OPTIONS_AT + 4 {
        return Err(too_short(block));
    }
    let mut interface = Interface::new(LinkType(link_type), snap_length);
    interface.time_resolution = TimeResolution::MICROSECONDS;
    let mut malformed = false;
    for option in Options::of_block(block, OPTIONS_AT, order) {
        match option {
            Ok(option) => malformed |= take_option(&mut interface, &option, order).is_none(),
            Err(_) => malformed = true,
        }
    }
    Ok((interface, malformed))
}

/// None if the option's value has not the length that its code asks for.
fn take_option(interface: &mut Interface, option: &RawOption<'_>, order: ByteOrder) -> Option<()> {
    match option.code {
        options::COMMENT => interface.comment = Some(option.text()),
        NAME => interface.name = Some(option.text()),
        DESCRIPTION => interface.description = Some(option.text()),
        OPERATING_SYSTEM => interface.operating_system = Some(option.text()),
        HARDWARE => interface.hardware = Some(option.text()),
        MAC => interface.mac = Some(option.value.try_into().ok()?),
        SPEED => interface.speed_bits_per_second = Some(option.u64(order)?),
        FCS_LENGTH => interface.fcs_length = Some(*option.value.first()?),
        TIME_OFFSET => interface.time_offset_s = option.u64(order)? as i64,
        TIME_RESOLUTION => {
            interface.time_resolution = TimeResolution::from_raw(*option.value.first()?);
        }
        FILTER => {
            // Any other first byte is a filter in another form, such as BPF code.
            if let Some((0, text)) = option.value.split_first() {
                interface.filter = Some(RawOption { value: text, ..*option }.text());
            }
        }
        _ => {}
    }
    Some(())
}

fn too_short(block: &[u8]) -> Malformed {
    Malformed::new(format!("an interface description of {} bytes", block.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_survives_a_round_trip() {
        let mut interface = Interface::new(LinkType::LINUX_SLL2, 65_535);
        interface.time_resolution = TimeResolution::from_raw(0x80 | 32);
        interface.time_offset_s = -7200;
        interface.name = Some("eth0".into());
        interface.description = Some("the link to the lab".into());
        interface.filter = Some("tcp port 80".into());
        interface.hardware = Some("a card".into());
        interface.operating_system = Some("Linux".into());
        interface.comment = Some("odd".into());
        interface.mac = Some([2, 0, 0, 0, 0, 1]);
        interface.speed_bits_per_second = Some(100_000_000_000);
        interface.fcs_length = Some(4);
        let mut block = Vec::new();
        assert_eq!(encode_interface(&mut block, &interface).unwrap(), block.len());
        assert_eq!(parse_interface(&block, ByteOrder::Little).unwrap(), (interface, false));
    }

    #[test]
    fn an_option_of_the_wrong_length_is_told_and_the_rest_is_kept() {
        let mut block = Vec::new();
        let mut builder = BlockBuilder::begin(&mut block, block::INTERFACE_DESCRIPTION);
        builder.field(&[1, 0, 0, 0, 0, 0, 0, 0]);
        builder.option(TIME_OFFSET, &[1, 2]).unwrap().option(NAME, b"eth0").unwrap();
        builder.finish().unwrap();
        let (interface, malformed) = parse_interface(&block, ByteOrder::Little).unwrap();
        assert!(malformed);
        assert_eq!((interface.time_offset_s, interface.name.as_deref()), (0, Some("eth0")));
    }
}
