use super::*;

fn trailer() -> ChunkTrailer {
    ChunkTrailer {
        segment_id: [7; 16],
        sequence: 3,
        offset: 8192,
        packets: 2,
        link_type: 1,
        time_min_ns: 5,
        time_max_ns: 1 << 40,
        session: 1,
        interface_name: *b"eth0\0\0\0\0\0\0\0\0\0\0\0\0",
        ledger: Ledger {
            stored_packets: 9,
            lost_packets: [1, 2, 3, 4, 5, 6, 7, 8],
            ..Ledger::default()
        },
        ..ChunkTrailer::default()
    }
}

#[test]
fn fields_survive_encoding() {
    let mut expected = trailer();
    expected.length = 4096;
    assert_eq!(ChunkTrailer::decode(&expected.encode()), Some(expected));
}

#[test]
fn a_sealed_chunk_is_whole_whatever_its_filling() {
    for used in (0..4096).step_by(4).chain([100_000, 200_000]) {
        let mut memory = vec![0xee; 1 << 20];
        let mut expected = trailer();
        let length = seal(&mut memory, used, 0, &mut expected).unwrap();
        assert!(length.is_multiple_of(ALIGNMENT_BYTES) && length - used < 4096 + TRAILER_BYTES);
        assert_eq!(verify(&memory[..length]), Ok(expected), "used {used}");
        assert_eq!(expected.content_length as usize, used);
        assert_eq!(blocks(&memory[used..length]), 1);
    }
}

#[test]
fn long_padding_is_cut_into_blocks_that_readers_accept() {
    for length in [4096, 65_536, 69_632, 131_072, 1 << 20] {
        let mut memory = vec![0xee; 1 << 20];
        assert_eq!(seal(&mut memory, 0, length, &mut trailer()), Some(length));
        assert!(verify(&memory[..length]).is_ok());
        assert!(blocks(&memory[..length]) >= length / 70_000);
    }
}

#[test]
fn any_changed_byte_is_noticed() {
    let mut memory = vec![0; 4096];
    seal(&mut memory, 1000, 0, &mut trailer()).unwrap();
    for at in (0..4096).step_by(7).chain(4096 - FIELDS_FROM_END..4096) {
        memory[at] ^= 0x10;
        assert!(verify(&memory).is_err(), "byte {at}");
        memory[at] ^= 0x10;
    }
    assert!(verify(&memory).is_ok());
}

#[test]
fn what_does_not_fit_is_refused() {
    assert_eq!(seal(&mut [0; 4096], 4000, 0, &mut trailer()), None);
    assert_eq!(verify(&[0; 4096]), Err(Damage::NoTrailer));
    assert_eq!(verify(&[]), Err(Damage::NoTrailer));
}

/// Walks statistics blocks and their options as any pcapng reader does; returns how many blocks.
fn blocks(mut bytes: &[u8]) -> usize {
    let mut count = 0;
    while !bytes.is_empty() {
        assert_eq!(u32_at(bytes, 0), Some(STATISTICS_BLOCK));
        let length = u32_at(bytes, 4).unwrap() as usize;
        assert_eq!(u32_at(bytes, length - 4), Some(length as u32));
        let mut options = &bytes[BLOCK_HEAD_BYTES..length - 4];
        while u16_at(options, 0) != Some(0) {
            let value = usize::from(u16_at(options, 2).unwrap()).next_multiple_of(4);
            options = &options[4 + value..];
        }
        assert_eq!(options.len(), 4);
        bytes = &bytes[length..];
        count += 1;
    }
    count
}
