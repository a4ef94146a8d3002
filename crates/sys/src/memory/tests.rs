use super::*;
use crate::Kind;

#[test]
fn chunks_are_aligned_disjoint_zero_and_writable() {
    for (count, chunk_bytes) in [(1, 4096), (7, 12288), (5, 1 << 20)] {
        let buffers = Buffers::new(count, chunk_bytes).unwrap();
        assert_eq!(buffers.count(), count);
        assert_eq!(buffers.region().bytes(), count as usize * chunk_bytes);
        assert_eq!(buffers.region().chunk_bytes(), chunk_bytes);
        let base = buffers.region().address();
        let mut chunks = buffers.split();
        assert_eq!(chunks.len(), count as usize);
        for (index, chunk) in chunks.iter_mut().enumerate() {
            assert_eq!(chunk.index() as usize, index);
            assert_eq!(chunk.as_ptr().addr(), base + index * chunk_bytes);
            assert_eq!(chunk.as_ptr().addr() % CHUNK_ALIGNMENT_BYTES, 0);
            assert_eq!(chunk.len(), chunk_bytes);
            assert!(chunk.iter().all(|&byte| byte == 0));
            chunk.fill(index as u8 + 1);
        }
        for (index, chunk) in chunks.iter().enumerate() {
            assert!(chunk.iter().all(|&byte| byte == index as u8 + 1), "chunk {index}");
        }
    }
}

#[test]
fn large_regions_start_at_a_huge_page_and_say_what_they_got() {
    let buffers = Buffers::new(8, 1 << 20).unwrap();
    let region = buffers.region();
    assert_eq!(region.address() % HUGE_PAGE_BYTES, 0);
    match region.pages() {
        Pages::Huge => assert_eq!(region.huge_bytes(), region.bytes()),
        Pages::Transparent => assert!((1..=region.bytes()).contains(&region.huge_bytes())),
        Pages::Ordinary => assert_eq!(region.huge_bytes(), 0),
    }
}

#[test]
fn small_regions_use_ordinary_pages() {
    let buffers = Buffers::new(3, 4096).unwrap();
    assert_eq!(buffers.pages(), Pages::Ordinary);
    assert_eq!(buffers.region().huge_bytes(), 0);
}

#[test]
fn a_buffer_keeps_the_region_mapped_and_works_in_another_thread() {
    let mut last = Buffers::new(4, 8192).unwrap().split().pop().unwrap();
    assert_eq!(Arc::strong_count(last.region()), 1);
    let last = std::thread::spawn(move || {
        last.fill(0xa5);
        last
    })
    .join()
    .unwrap();
    assert_eq!((last.index(), last.offset()), (3, 3 * 8192));
    assert!(last.iter().all(|&byte| byte == 0xa5));
}

#[test]
fn senseless_sizes_are_refused_by_name() {
    for (count, chunk_bytes) in [(0, 4096), (4, 0), (4, 4095), (4, 5000), (u32::MAX, 1 << 62)] {
        let error = Buffers::new(count, chunk_bytes).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid);
        let text = error.to_string();
        assert!(text.contains(&format!("{count} buffers of {chunk_bytes} bytes")), "{text}");
    }
}

#[test]
fn more_memory_than_addresses_is_an_error_and_no_crash() {
    let error = Buffers::new(1 << 16, 1 << 36).unwrap_err();
    assert_eq!(error.errno(), Some(libc::ENOMEM), "{error}");
}

#[test]
fn huge_bytes_are_read_from_the_entries_that_overlap() {
    let smaps = "\
00200000-00600000 rw-p 00000000 00:00 0
Size:               4096 kB
AnonHugePages:      2048 kB
VmFlags: rd wr mr mw me ac sd hg
00600000-00800000 rw-p 00000000 00:00 0 [heap]
AnonHugePages:      2048 kB
";
    assert_eq!(huge_bytes_in(smaps, 0x20_0000, 0x40_0000), 2 << 20);
    assert_eq!(huge_bytes_in(smaps, 0x20_0000, 0x60_0000), 4 << 20);
    assert_eq!(huge_bytes_in(smaps, 0x60_0000, 0x10_0000), 1 << 20);
    assert_eq!(huge_bytes_in(smaps, 0x80_0000, 0x10_0000), 0);
}
