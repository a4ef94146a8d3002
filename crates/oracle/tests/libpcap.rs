//! libpcap is loaded, compiles, refuses and judges.

use oracle::{Instruction, Libpcap};
use testing::say_skipped;

const ETHERNET: u16 = 1;
const RAW: u16 = 101;
const SNAP_BYTES: u32 = 65_535;

fn libpcap(test: &str) -> Option<Libpcap> {
    Libpcap::load().map_err(|reason| say_skipped(test, reason)).ok()
}

#[test]
fn an_expression_becomes_instructions() {
    let Some(libpcap) = libpcap("an_expression_becomes_instructions") else { return };
    assert!(libpcap.version().starts_with("libpcap version 1."), "{}", libpcap.version());
    let filter = libpcap.compile("ip", ETHERNET, SNAP_BYTES, true).unwrap();
    let expected =
        [(0x28, 0, 0, 12), (0x15, 0, 1, 0x800), (0x06, 0, 0, SNAP_BYTES), (0x06, 0, 0, 0)]
            .map(|(code, jt, jf, k)| Instruction { code, jt, jf, k });
    assert_eq!(filter.instructions(), expected);
    let everything = libpcap.compile("", ETHERNET, 96, true).unwrap();
    assert_eq!(everything.instructions(), [Instruction { code: 6, jt: 0, jf: 0, k: 96 }]);
}

#[test]
fn refusals_are_libpcaps_words() {
    let Some(libpcap) = libpcap("refusals_are_libpcaps_words") else { return };
    let refusal = |expression| libpcap.compile(expression, ETHERNET, SNAP_BYTES, true).unwrap_err();
    assert_eq!(refusal("port 65536"), "illegal port number 65536 > 65535");
    assert_eq!(refusal("ip and"), "can't parse filter expression: syntax error");
    assert!(refusal("ip \0").contains("nul byte"), "{}", refusal("ip \0"));
    assert!(libpcap.compile("ip", ETHERNET, 0, true).is_err());
    assert!(libpcap.compile("ip", 60_000, SNAP_BYTES, true).is_err());
}

#[test]
fn raw_ip_has_the_number_of_files() {
    let Some(libpcap) = libpcap("raw_ip_has_the_number_of_files") else { return };
    let filter = libpcap.compile("ip6", RAW, SNAP_BYTES, true).unwrap();
    assert!(filter.matches(&[0x60], 1));
    assert!(!filter.matches(&[0x45], 1));
    assert!(!filter.matches(&[], 0));
}

#[test]
fn length_on_the_wire_is_told_from_what_was_captured() {
    let Some(libpcap) = libpcap("length_on_the_wire_is_told_from_what_was_captured") else {
        return;
    };
    let filter = libpcap.compile("greater 100", ETHERNET, SNAP_BYTES, true).unwrap();
    assert!(filter.matches(&[0; 14], 100));
    assert!(!filter.matches(&[0; 14], 99));
    // What was not captured cannot be looked at, whatever the length on the wire.
    let filter = libpcap.compile("not ether[14] = 1", ETHERNET, SNAP_BYTES, true).unwrap();
    assert!(filter.matches(&[0; 15], 15));
    assert!(!filter.matches(&[0; 14], 15));
}

#[test]
fn instructions_of_ours_are_run_by_its_interpreter() {
    let Some(libpcap) = libpcap("instructions_of_ours_are_run_by_its_interpreter") else { return };
    let add = |k| Instruction { code: 0x04, jt: 0, jf: 0, k };
    let return_a = Instruction { code: 0x16, jt: 0, jf: 0, k: 0 };
    assert!(libpcap.run(&[add(1), return_a], &[], 0));
    assert!(!libpcap.run(&[add(u32::MAX), add(1), return_a], &[], 0));
}

#[test]
#[should_panic(expected = "leaves the program")]
fn harmful_instructions_are_not_run() {
    let Some(libpcap) = libpcap("harmful_instructions_are_not_run") else {
        panic!("leaves the program: not tried");
    };
    libpcap.run(&[Instruction { code: 0x05, jt: 0, jf: 0, k: 9 }], &[], 0);
}

#[test]
fn a_filter_may_be_left_to_chance() {
    let Some(libpcap) = libpcap("a_filter_may_be_left_to_chance") else { return };
    for (expression, expected) in
        [("geneve or ip", true), ("geneve and ip", false), ("ip[0] + ip[1] = 3", false)]
    {
        let filter = libpcap.compile(expression, ETHERNET, SNAP_BYTES, true).unwrap();
        let unset = oracle::instruction::reads_unset_scratch(&filter.instructions());
        assert_eq!(unset, expected, "{expression}");
    }
}
