//! The suite that every kind of port passes, on several kinds of wires.

use port::conformance;
use sys::napi;
use sys::veth::VethConfig;
use testing::Outcome;

use super::wire::*;

pub fn conforms() -> Outcome {
    needs_programs()?;
    conformance::check(|| Wire::new(VethConfig::default()))?;
    Ok(())
}

pub fn conforms_with_several_queues() -> Outcome {
    needs_programs()?;
    conformance::check(|| Wire::new(VethConfig { queues: 3, ..VethConfig::default() }))?;
    Ok(())
}

pub fn conforms_with_jumbo_frames() -> Outcome {
    needs_programs()?;
    conformance::check(|| Wire::new(VethConfig { mtu_bytes: 9_000, ..VethConfig::default() }))?;
    Ok(())
}

/// The far end's NAPI, which it has while our program is there, runs in a thread of its own.
pub fn conforms_with_threaded_napi() -> Outcome {
    needs_programs()?;
    conformance::check(|| {
        let config = VethConfig { gro: true, ..VethConfig::default() };
        let wire = Wire::new(config);
        napi::set_threaded(&wire.there, "there", true).unwrap();
        wire
    })?;
    Ok(())
}

/// Needs no right over programs.
pub fn sending_conforms_where_packet_sockets_receive() -> Outcome {
    for mtu_bytes in [1_500, 2_020, 9_000] {
        conformance::check(|| Wire {
            rx_by_xdp: false,
            ..Wire::new(VethConfig { mtu_bytes, ..VethConfig::default() })
        })?;
    }
    Ok(())
}

pub fn receiving_conforms_where_packet_sockets_send() -> Outcome {
    needs_programs()?;
    for mtu_bytes in [1_500, 3_400] {
        conformance::check(|| Wire {
            tx_by_xdp: false,
            ..Wire::new(VethConfig { mtu_bytes, ..VethConfig::default() })
        })?;
    }
    Ok(())
}
