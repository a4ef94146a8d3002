//! Work on frames that the kernel leaves to the hardware.

use std::io;

use super::Ethtool;
use super::request::Value;
use crate::{Error, Result};

// Commands of linux/ethtool.h, each to read and to write.
const RX_CHECKSUM: (u32, u32) = (0x14, 0x15);
const TX_CHECKSUM: (u32, u32) = (0x16, 0x17);
const SCATTER_GATHER: (u32, u32) = (0x18, 0x19);
const TSO: (u32, u32) = (0x1e, 0x1f);
const GSO: (u32, u32) = (0x23, 0x24);
const FLAGS: (u32, u32) = (0x25, 0x26);
const GRO: (u32, u32) = (0x2b, 0x2c);
// Bits of `enum ethtool_flags`.
const FLAG_TX_VLAN: u32 = 1 << 7;
const FLAG_RX_VLAN: u32 = 1 << 8;
const FLAG_LRO: u32 = 1 << 15;

/// Which offloads are on; the same switches as `ethtool -k` shows by long names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Offloads {
    /// Checksums of received frames are verified by the device.
    pub rx_checksum: bool,
    /// Checksums of transmitted frames are filled in by the device; until then they are wrong.
    pub tx_checksum: bool,
    /// A frame may be transmitted from several pieces of memory.
    pub scatter_gather: bool,
    /// TCP segments larger than the MTU are cut by the device.
    pub tso: bool,
    /// Segments larger than the MTU are cut just before the device.
    pub gso: bool,
    /// Received segments of one flow are merged by the kernel.
    pub gro: bool,
    /// Received segments of one flow are merged by the device.
    pub lro: bool,
    /// The device takes VLAN tags out of received frames.
    pub rx_vlan: bool,
    /// The device puts VLAN tags into transmitted frames.
    pub tx_vlan: bool,
}

impl Offloads {
    /// Every offload off: frames stay as they were sent.
    pub const NONE: Self = Self {
        rx_checksum: false,
        tx_checksum: false,
        scatter_gather: false,
        tso: false,
        gso: false,
        gro: false,
        lro: false,
        rx_vlan: false,
        tx_vlan: false,
    };

    /// Every offload on.
    pub const ALL: Self = Self {
        rx_checksum: true,
        tx_checksum: true,
        scatter_gather: true,
        tso: true,
        gso: true,
        gro: true,
        lro: true,
        rx_vlan: true,
        tx_vlan: true,
    };
}

impl Ethtool {
    /// Which offloads are on.
    ///
    /// # Errors
    /// [`crate::Kind::NotFound`] when the interface is gone.
    pub fn offloads(&self) -> Result<Offloads> {
        let flags = self.value("reading the offload flags", FLAGS.0)?;
        let on = |name: &str, command: (u32, u32)| -> Result<bool> {
            Ok(self.value(&format!("reading the offload {name}"), command.0)? != 0)
        };
        Ok(Offloads {
            rx_checksum: on("rx-checksumming", RX_CHECKSUM)?,
            tx_checksum: on("tx-checksumming", TX_CHECKSUM)?,
            scatter_gather: on("scatter-gather", SCATTER_GATHER)?,
            tso: on("tcp-segmentation-offload", TSO)?,
            gso: on("generic-segmentation-offload", GSO)?,
            gro: on("generic-receive-offload", GRO)?,
            lro: flags & FLAG_LRO != 0,
            rx_vlan: flags & FLAG_RX_VLAN != 0,
            tx_vlan: flags & FLAG_TX_VLAN != 0,
        })
    }

    /// Switches offloads until they are as `wanted`, and checks that they are.
    ///
    /// Only what differs is touched, so that a fixed offload in the wished state is no error.
    ///
    /// # Errors
    /// [`crate::Kind::Unsupported`] naming the first offload that the driver keeps as it is;
    /// [`crate::Kind::Permission`] without `CAP_NET_ADMIN`.
    pub fn set_offloads(&self, wanted: &Offloads) -> Result<()> {
        type Field = fn(&Offloads) -> bool;
        // What others depend on comes first: segmentation needs checksums and scatter-gather.
        let order: [(&str, (u32, u32), Field); 6] = [
            ("rx-checksumming", RX_CHECKSUM, |o| o.rx_checksum),
            ("tx-checksumming", TX_CHECKSUM, |o| o.tx_checksum),
            ("scatter-gather", SCATTER_GATHER, |o| o.scatter_gather),
            ("tcp-segmentation-offload", TSO, |o| o.tso),
            ("generic-segmentation-offload", GSO, |o| o.gso),
            ("generic-receive-offload", GRO, |o| o.gro),
        ];
        for (name, command, field) in order {
            // Switching one changes others, hence read each anew.
            let action = format!("switching the offload {name}");
            if (self.value(&action, command.0)? != 0) != field(wanted) {
                let mut value = Value { command: command.1, data: u32::from(field(wanted)) };
                self.perform(&action, &mut value)?;
            }
        }
        self.set_flags(wanted)?;
        let now = self.offloads()?;
        let last: [(&str, Field); 3] = [
            ("large-receive-offload", |o| o.lro),
            ("rx-vlan-offload", |o| o.rx_vlan),
            ("tx-vlan-offload", |o| o.tx_vlan),
        ];
        let all = order.iter().map(|(name, _, field)| (*name, *field)).chain(last);
        for (name, field) in all {
            if field(&now) != field(wanted) {
                let (source, state) = (libc::EOPNOTSUPP, if field(&now) { "on" } else { "off" });
                return Err(Error::new(
                    format!("switching the offload {name} of {}", self.name()),
                    io::Error::from_raw_os_error(source),
                )
                .remedy(format!(
                    "its driver keeps it {state}, alone or with the others asked for"
                )));
            }
        }
        Ok(())
    }

    fn set_flags(&self, wanted: &Offloads) -> Result<()> {
        const ACTION: &str = "switching the VLAN and receive offloads";
        let before = self.value(ACTION, FLAGS.0)?;
        let mut after = before;
        for (bit, on) in
            [(FLAG_LRO, wanted.lro), (FLAG_RX_VLAN, wanted.rx_vlan), (FLAG_TX_VLAN, wanted.tx_vlan)]
        {
            after = if on { after | bit } else { after & !bit };
        }
        if after == before {
            return Ok(());
        }
        self.perform(ACTION, &mut Value { command: FLAGS.1, data: after })
    }

    fn value(&self, action: &str, command: u32) -> Result<u32> {
        let mut value = Value { command, data: 0 };
        self.perform(action, &mut value)?;
        Ok(value.data)
    }
}
