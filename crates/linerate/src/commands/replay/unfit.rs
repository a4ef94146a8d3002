//! What is said of packets that the port cannot take.

use port::fit::Unfit;
use port::{PortDescription, PortSpec};
use serde_json::{Value, json};
use wire::ethernet::ETHERNET_BYTES;

use crate::units::{counted, grouped};

/// What was left out, as JSON.
pub fn to_json(unfit: &Unfit) -> Value {
    json!({
        "packets": unfit.packets,
        "bytes": unfit.bytes,
        "longest_bytes": unfit.longest_bytes,
        "shortest_bytes": unfit.shortest_bytes,
    })
}

/// One sentence: what was left out, what the port takes, what helps.
pub fn in_words(onto: &PortSpec, port: &PortDescription, unfit: &Unfit) -> String {
    let length = |bytes: usize| grouped(bytes as u64);
    let (shortest, longest) = (length(unfit.shortest_bytes), length(unfit.longest_bytes));
    let of = if shortest == longest { longest } else { format!("{shortest} to {longest}") };
    // No interface takes less than a header.
    let from = onto.interface().map_or_else(|| "up".into(), |_| ETHERNET_BYTES.to_string());
    let mut text = format!(
        "not sent, since {onto} takes frames of {from} to {} bytes: {} of {of} bytes",
        length(port.frame_bytes_max),
        counted(unfit.packets, "packet"),
    );
    let some_are_long = unfit.longest_bytes > port.frame_bytes_max;
    if let Some(remedy) = port.longer_frames.as_ref().filter(|_| some_are_long) {
        text.push_str(&format!(
            "; {remedy}, or record frames as a wire carries them: ethtool -K IF tso off gso off gro off"
        ));
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn said(
        onto: &str,
        longer_frames: Option<&str>,
        (shortest, longest): (usize, usize),
    ) -> String {
        let port = PortDescription {
            spec: onto.into(),
            mechanism: "a test".into(),
            frame_bytes_max: 1_514,
            longer_frames: longer_frames.map(str::to_owned),
            link_type: 1,
            speed_bps: None,
        };
        let unfit =
            Unfit { packets: 1, bytes: 1, longest_bytes: longest, shortest_bytes: shortest };
        in_words(&onto.parse().unwrap(), &port, &unfit)
    }

    #[test]
    fn what_helps_is_said_where_something_does() {
        let raise = Some("raise the MTU of eth0, 1500 bytes");
        assert_eq!(
            said("eth0", raise, (65_226, 65_226)),
            "not sent, since eth0 takes frames of 14 to 1,514 bytes: 1 packet of 65,226 bytes; raise \
             the MTU of eth0, 1500 bytes, or record frames as a wire carries them: ethtool -K IF tso \
             off gso off gro off"
        );
        assert_eq!(
            said("eth0", raise, (4, 10)),
            "not sent, since eth0 takes frames of 14 to 1,514 bytes: 1 packet of 4 to 10 bytes"
        );
        assert_eq!(
            said("pcap:x", None, (2_000, 2_000)),
            "not sent, since pcap:x takes frames of up to 1,514 bytes: 1 packet of 2,000 bytes"
        );
    }
}
