//! Any bytes as a frame: offsets stay in order and within the frame, checksums and stamps never panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::parse::{Headers, parse_ethernet, parse_ip};

fn check(data: &[u8], headers: &Headers) {
    assert!(usize::from(headers.l3_offset) <= data.len());
    assert!(usize::from(headers.l4_offset) <= data.len());
    assert!(usize::from(headers.payload_offset) <= data.len());
    assert!(headers.network_end as usize <= data.len());
    let _ = wire::checksum::verify(data, headers);
    let _ = wire::flow_key::FlowKey::from_headers(data, headers);
    if let Some(payload) = data.get(usize::from(headers.payload_offset)..) {
        let _ = wire::stamp::read(payload);
    }
}

fuzz_target!(|data: &[u8]| {
    check(data, &parse_ethernet(data));
    check(data, &parse_ip(data));
});
