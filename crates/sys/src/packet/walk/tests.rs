use super::*;

const LIMITS: Limits = Limits { snap_bytes: u32::MAX, frame_bytes: 1518 };
const MAC_AT: usize = 88;

fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
}

/// A block of `bytes` with one frame per entry: contents and (status, TCI, TPID).
fn block_of(bytes: usize, frames: &[(&[u8], u32, u16, u16)]) -> Vec<u8> {
    let mut block = vec![0xEE; bytes];
    let field = block_field;
    put_u32(&mut block, field(offset_of!(tpacket_hdr_v1, block_status)), libc::TP_STATUS_USER);
    put_u32(&mut block, field(offset_of!(tpacket_hdr_v1, num_pkts)), frames.len() as u32);
    put_u32(&mut block, field(offset_of!(tpacket_hdr_v1, offset_to_first_pkt)), 48);
    let at = field(offset_of!(tpacket_hdr_v1, seq_num));
    block[at..at + 8].copy_from_slice(&0x1_0000_0007_u64.to_ne_bytes());
    let mut at = 48;
    for (index, &(frame, status, tci, tpid)) in frames.iter().enumerate() {
        let step = (MAC_AT + frame.len()).next_multiple_of(8);
        let next = if index + 1 == frames.len() { 0 } else { step as u32 };
        put_u32(&mut block, at + offset_of!(tpacket3_hdr, tp_next_offset), next);
        put_u32(&mut block, at + offset_of!(tpacket3_hdr, tp_sec), 1_700_000_000);
        put_u32(&mut block, at + offset_of!(tpacket3_hdr, tp_nsec), 123_456_789 + index as u32);
        put_u32(&mut block, at + offset_of!(tpacket3_hdr, tp_snaplen), frame.len() as u32);
        put_u32(&mut block, at + offset_of!(tpacket3_hdr, tp_len), frame.len() as u32);
        put_u32(&mut block, at + offset_of!(tpacket3_hdr, tp_status), status);
        let mac = at + offset_of!(tpacket3_hdr, tp_mac);
        block[mac..mac + 2].copy_from_slice(&(MAC_AT as u16).to_ne_bytes());
        put_u32(&mut block, at + offset_of!(tpacket3_hdr, hv1.tp_rxhash), 0x51ab);
        put_u32(&mut block, at + offset_of!(tpacket3_hdr, hv1.tp_vlan_tci), u32::from(tci));
        let protocol = at + offset_of!(tpacket3_hdr, hv1.tp_vlan_tpid);
        block[protocol..protocol + 2].copy_from_slice(&tpid.to_ne_bytes());
        block[at + MAC_AT..at + MAC_AT + frame.len()].copy_from_slice(frame);
        at += step;
    }
    block
}

fn contents<'a>(block: &'a [u8], descriptor: &Descriptor) -> &'a [u8] {
    &block[descriptor.offset as usize..][..descriptor.length as usize]
}

fn walked(block: &mut [u8], limits: Limits) -> (Vec<Descriptor>, Walk) {
    let mut descriptors = Vec::new();
    let walk = walk(block, limits, &mut descriptors);
    (descriptors, walk)
}

#[test]
fn plain_frames_stay_where_they_are() {
    let first: Vec<u8> = (0..60).collect();
    let second: Vec<u8> = (0..=255).cycle().take(1514).collect();
    let mut block = block_of(4096, &[(&first, 1, 0, 0), (&second, 1, 0, 0)]);
    let (descriptors, walk) = walked(&mut block, LIMITS);
    assert_eq!(walk, Walk { sequence: 0x1_0000_0007, malformed: 0 });
    assert_eq!(descriptors.len(), 2);
    assert_eq!(contents(&block, &descriptors[0]), first);
    assert_eq!(contents(&block, &descriptors[1]), second);
    assert_eq!(descriptors[1].time_ns, 1_700_000_000_123_456_790);
    assert_eq!(descriptors[0].flow_hash, 0x51ab);
    assert_eq!(descriptors[0].flags, FrameFlags::empty());
    assert_eq!(descriptors[0].time_source, TimeSource::Ring);
}

#[test]
fn tags_are_restored_with_their_own_protocol_even_when_zero() {
    let frame: Vec<u8> = (0..60).collect();
    let valid = libc::TP_STATUS_VLAN_VALID;
    let with_protocol = valid | libc::TP_STATUS_VLAN_TPID_VALID;
    let mut block = block_of(
        4096,
        &[(&frame, with_protocol, 0x6064, 0x88a8), (&frame, valid, 5, 0), (&frame, valid, 0, 0)],
    );
    let (descriptors, _) = walked(&mut block, LIMITS);
    let tags = [[0x88, 0xa8, 0x60, 0x64], [0x81, 0, 0, 5], [0x81, 0, 0, 0]];
    for (descriptor, tag) in descriptors.iter().zip(tags) {
        let expected = [&frame[..12], &tag, &frame[12..]].concat();
        assert_eq!(contents(&block, descriptor), expected);
        assert_eq!(descriptor.wire_length, 64);
        assert_eq!(descriptor.flags, FrameFlags::VLAN_RESTORED);
    }
    assert_eq!(descriptors.len(), 3);
}

#[test]
fn states_become_flags() {
    let frame = [7; 60];
    let long = [8; 1600];
    let status = libc::TP_STATUS_CSUMNOTREADY | libc::TP_STATUS_TS_SOFTWARE;
    let mut block = block_of(
        4096,
        &[
            (&frame, status, 0, 0),
            (&frame, libc::TP_STATUS_TS_RAW_HARDWARE | libc::TP_STATUS_CSUM_VALID, 0, 0),
            (&long, 1, 0, 0),
        ],
    );
    put_u32(
        &mut block,
        block_field(offset_of!(tpacket_hdr_v1, block_status)),
        libc::TP_STATUS_USER | libc::TP_STATUS_LOSING,
    );
    let (descriptors, _) = walked(&mut block, Limits { snap_bytes: 64, ..LIMITS });
    let losing = FrameFlags::LOSING;
    assert_eq!(descriptors[0].flags, losing | FrameFlags::CHECKSUM_NOT_READY);
    assert_eq!(descriptors[0].time_source, TimeSource::Software);
    assert_eq!(descriptors[1].flags, losing | FrameFlags::CHECKSUM_VALID);
    assert_eq!(descriptors[1].time_source, TimeSource::Hardware);
    assert_eq!(descriptors[2].flags, losing | FrameFlags::MERGED | FrameFlags::TRUNCATED);
    assert_eq!((descriptors[2].length, descriptors[2].wire_length), (64, 1600));
}

#[test]
fn lies_in_the_headers_are_counted_and_never_followed() {
    let frame = [1; 60];
    let good = block_of(1024, &[(&frame, 1, 0, 0), (&frame, 1, 0, 0), (&frame, 1, 0, 0)]);
    let second = 48 + (MAC_AT + 60).next_multiple_of(8);
    let cases: [(usize, u32, usize, u32); 5] = [
        // (offset of the field, its value, frames still delivered, frames left out)
        (second + offset_of!(tpacket3_hdr, tp_snaplen), 5000, 2, 1),
        (second + offset_of!(tpacket3_hdr, tp_snaplen), u32::MAX, 2, 1),
        (second + offset_of!(tpacket3_hdr, tp_next_offset), 4, 2, 1),
        (second + offset_of!(tpacket3_hdr, tp_next_offset), u32::MAX, 2, 1),
        (block_field(offset_of!(tpacket_hdr_v1, offset_to_first_pkt)), 1020, 0, 3),
    ];
    for (at, value, delivered, malformed) in cases {
        let mut block = good.clone();
        put_u32(&mut block, at, value);
        let (descriptors, walk) = walked(&mut block, LIMITS);
        assert_eq!((descriptors.len(), walk.malformed), (delivered, malformed), "{at}={value}");
    }
    let mut block = good;
    let count = block_field(offset_of!(tpacket_hdr_v1, num_pkts));
    put_u32(&mut block, count, u32::MAX);
    let (descriptors, walk) = walked(&mut block, LIMITS);
    assert_eq!((descriptors.len(), walk.malformed), (3, u32::MAX - 3));
    assert_eq!(walked(&mut [0; 10], LIMITS).0, []);
}
