//! Frames of all encapsulations around a payload, whole, cut and damaged.

use wire::random::Random;

/// Longer than a buffer of the kernel's.
const JUMBO_BYTES: usize = 9_000;

pub fn one_in(random: &mut Random, chance: u64) -> bool {
    random.below(chance) == 0
}

/// A frame with `payload` somewhere in it.
pub fn frame(random: &mut Random, payload: &[u8]) -> Vec<u8> {
    let mut payload = payload.to_vec();
    let more = if one_in(random, 40) { JUMBO_BYTES } else { 40 };
    payload.resize(payload.len() + random.below(more as u64) as usize, 0);
    let (mut ethertype, mut packet) = network(random, payload);
    if one_in(random, 4) {
        let most = if one_in(random, 4) { 10 } else { 3 };
        let labels = 1 + random.below(most) as usize;
        for label in 0..labels {
            packet.splice(0..0, [1, 2, u8::from(label == 0), 64]);
        }
        ethertype = if one_in(random, 2) { 0x8847 } else { 0x8848 };
    }
    let tags = if one_in(random, 3) { random.below(6) } else { 0 };
    for _ in 0..tags {
        packet.splice(0..0, [0, 7].into_iter().chain(u16::to_be_bytes(ethertype)));
        ethertype = [0x8100, 0x88a8, 0x9100][random.below(3) as usize];
    }
    let mut frame = vec![2; 12];
    frame.extend(u16::to_be_bytes(ethertype));
    frame.extend(packet);
    damage(random, &mut frame);
    let least = 14 + random.below(60) as usize;
    frame.resize(frame.len().max(least), 0);
    frame
}

fn damage(random: &mut Random, frame: &mut Vec<u8>) {
    if one_in(random, 8) {
        for _ in 0..=random.below(3) {
            let place = random.below(frame.len().min(110) as u64) as usize;
            frame[place] = random.next_u64() as u8;
        }
    }
    if one_in(random, 16) {
        frame.truncate(14 + random.below(frame.len() as u64) as usize);
    }
}

fn network(random: &mut Random, payload: Vec<u8>) -> (u16, Vec<u8>) {
    match random.below(10) {
        0 => (0x88b5, payload),
        1 => {
            let mut arp = vec![0, 1, 8, 0, 6, 4, 0, 1];
            arp.resize(if one_in(random, 2) { 28 } else { 6 }, 9);
            arp.extend(payload);
            (0x0806, arp)
        }
        2..=6 => (0x0800, ipv4(random, payload)),
        _ => (0x86dd, ipv6(random, payload)),
    }
}

fn ipv4(random: &mut Random, payload: Vec<u8>) -> Vec<u8> {
    let (mut protocol, mut content) = transport(random, payload, 1);
    if one_in(random, 8) {
        authenticate(random, &mut protocol, &mut content);
    }
    let options = if one_in(random, 4) { 4 * random.below(11) as usize } else { 0 };
    let mut header = vec![0; 20 + options];
    header[0] = 0x40 | (header.len() / 4) as u8;
    let total = (header.len() + content.len()) as u16;
    header[2..4].copy_from_slice(&total.to_be_bytes());
    if one_in(random, 8) {
        let fields: [u16; 4] = [0x2000, 0x2001, 0x0005, 0x4000];
        header[6..8].copy_from_slice(&fields[random.below(4) as usize].to_be_bytes());
    }
    header[9] = protocol;
    header.extend(content);
    header
}

fn ipv6(random: &mut Random, payload: Vec<u8>) -> Vec<u8> {
    let (mut next, mut content) = transport(random, payload, 58);
    let extensions = if one_in(random, 3) { random.below(10) } else { 0 };
    for _ in 0..extensions {
        match random.below(5) {
            0 => authenticate(random, &mut next, &mut content),
            1 => {
                let field: u16 = if one_in(random, 6) { 8 } else { 1 };
                let [high, low] = field.to_be_bytes();
                content.splice(0..0, [next, 0, high, low, 0, 0, 0, 1]);
                next = 44;
            }
            kind => {
                let units = random.below(3) as u8;
                let mut header = vec![1; 8 + 8 * usize::from(units)];
                header[..2].copy_from_slice(&[next, units]);
                content.splice(0..0, header);
                next = [0, 43, 60][kind as usize - 2];
            }
        }
    }
    let mut header = vec![0; 40];
    header[0] = 0x60;
    let is_jumbo = next == 0 && one_in(random, 4);
    let length = if is_jumbo { 0 } else { content.len() as u16 };
    header[4..6].copy_from_slice(&length.to_be_bytes());
    header[6] = next;
    header.extend(content);
    header
}

fn authenticate(random: &mut Random, next: &mut u8, content: &mut Vec<u8>) {
    let words = 1 + random.below(4) as u8;
    let mut header = vec![3; 4 * (usize::from(words) + 2)];
    header[..2].copy_from_slice(&[*next, words]);
    content.splice(0..0, header);
    *next = 51;
}

/// The protocol, and the header with the payload behind it.
fn transport(random: &mut Random, payload: Vec<u8>, icmp: u8) -> (u8, Vec<u8>) {
    let (protocol, mut header) = match random.below(8) {
        0 => (6, {
            let options = 4 * random.below(11) as usize;
            let mut tcp = vec![0; 20 + options];
            tcp[12] = (tcp.len() as u8 / 4) << 4;
            tcp
        }),
        1 => (icmp, vec![8; 8]),
        2 => (132, vec![0; 12]),
        3 => ([253, 1, 58][random.below(3) as usize], Vec::new()),
        _ => (17, {
            let length = match random.below(10) {
                0 => 8 + random.below(60) as usize,
                1 => random.below(70) as usize,
                _ => 8 + payload.len(),
            };
            let mut udp = vec![0; 8];
            udp[4..6].copy_from_slice(&(length as u16).to_be_bytes());
            udp
        }),
    };
    header.extend(payload);
    (protocol, header)
}
