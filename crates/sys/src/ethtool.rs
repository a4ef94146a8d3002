//! What an interface's driver can do and is told to do, by the `SIOCETHTOOL` ioctl.
//!
//! Vocabulary: an *offload* is work on frames that the kernel leaves to the hardware or does for
//! it (checksums, segmentation, merging); a *channel* is a set of queues with one interrupt; a
//! *ring* is a queue's list of buffers.
//!
//! Reading needs no right; changing needs `CAP_NET_ADMIN` over the network namespace. Drivers
//! refuse what they do not know with [`crate::Kind::Unsupported`]. Layouts and numbers are those
//! of linux/ethtool.h, cited by structure name; netdevice(7) describes the ioctl.

mod offloads;
mod request;
mod statistics;

pub use offloads::Offloads;

use std::os::fd::OwnedFd;

use request::Request;

use crate::namespace::Namespace;
use crate::netlink::text;
use crate::{Error, Kind, Result};

/// The settings of one interface.
#[derive(Debug)]
pub struct Ethtool {
    socket: OwnedFd,
    name: String,
}

/// Who drives the interface (`struct ethtool_drvinfo`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    /// The driver's name, for example `veth` or `mlx5_core`.
    pub name: String,
    /// The driver's version; for drivers of the kernel tree often the kernel's.
    pub version: String,
    /// The version of the firmware, empty if there is none.
    pub firmware: String,
    /// Where the device is, for example a PCI address; empty for virtual ones.
    pub bus: String,
}

/// Sizes of the rings in descriptors (`struct ethtool_ringparam`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rings {
    /// Receive descriptors per queue.
    pub rx: u32,
    /// Transmit descriptors per queue.
    pub tx: u32,
    /// The most receive descriptors that the driver accepts.
    pub rx_max: u32,
    /// The most transmit descriptors that the driver accepts.
    pub tx_max: u32,
}

/// Numbers of channels (`struct ethtool_channels`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channels {
    /// Channels that only receive.
    pub rx: u32,
    /// Channels that only transmit.
    pub tx: u32,
    /// Channels that do both.
    pub combined: u32,
    /// The most of `rx`.
    pub rx_max: u32,
    /// The most of `tx`.
    pub tx_max: u32,
    /// The most of `combined`.
    pub combined_max: u32,
}

/// What the interface can time-stamp (`struct ethtool_ts_info`; timestamping.rst of the kernel).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamping {
    /// Bits of `SOF_TIMESTAMPING_*` (linux/net_tstamp.h) that can be set.
    pub modes: u32,
    /// The number of its clock, `/dev/ptpN`; `None` without one.
    pub clock: Option<u32>,
    /// Bit n: value n of `enum hwtstamp_tx_types` is possible.
    pub tx_types: u32,
    /// Bit n: value n of `enum hwtstamp_rx_filters` is possible.
    pub rx_filters: u32,
}

impl Timestamping {
    /// Whether the hardware stamps frames when they arrive (`SOF_TIMESTAMPING_RX_HARDWARE`, and
    /// filter 1, all frames).
    pub fn rx_hardware_all(&self) -> bool {
        self.modes & 1 << 2 != 0 && self.rx_filters & 1 << 1 != 0
    }

    /// Whether the hardware stamps frames when they leave (`SOF_TIMESTAMPING_TX_HARDWARE`).
    pub fn tx_hardware(&self) -> bool {
        self.modes & 1 != 0
    }
}

impl Ethtool {
    /// Opens the settings of the interface `name` of `namespace`.
    ///
    /// The interface is found by name at each call.
    ///
    /// # Errors
    /// [`Kind::NotFound`] with the interfaces that there are; what [`Namespace::run`] reports.
    pub fn open(namespace: &Namespace, name: &str) -> Result<Self> {
        namespace.run(|| Self::current(name))?
    }

    /// Opens the settings of the interface `name` of the calling thread's namespace.
    ///
    /// # Errors
    /// [`Kind::NotFound`] with the interfaces that there are; what socket(2) reports.
    pub fn current(name: &str) -> Result<Self> {
        let link = crate::link::Link::by_name(name)?;
        let failed = |source| Error::new("opening a socket for driver settings", source);
        Ok(Self { socket: request::socket().map_err(failed)?, name: link.name })
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who drives the interface (`ETHTOOL_GDRVINFO`).
    ///
    /// # Errors
    /// [`Kind::NotFound`] when the interface is gone; [`Kind::Unsupported`].
    pub fn driver(&self) -> Result<Driver> {
        let mut info = request::DriverInformation::default();
        self.perform("reading the driver", &mut info)?;
        Ok(Driver {
            name: text(&info.driver),
            version: text(&info.version),
            firmware: text(&info.firmware_version),
            bus: text(&info.bus_information),
        })
    }

    /// The sizes of the rings (`ETHTOOL_GRINGPARAM`).
    ///
    /// # Errors
    /// As [`Ethtool::driver`]; virtual interfaces have none.
    pub fn rings(&self) -> Result<Rings> {
        let rings = self.ring_parameters()?;
        Ok(Rings {
            rx: rings.rx_pending,
            tx: rings.tx_pending,
            rx_max: rings.rx_max_pending,
            tx_max: rings.tx_max_pending,
        })
    }

    /// Sets the sizes of the rings (`ETHTOOL_SRINGPARAM`); many drivers reset the link thereby.
    ///
    /// # Errors
    /// As [`Ethtool::driver`]; [`Kind::Invalid`] beyond the maxima; [`Kind::Permission`].
    pub fn set_rings(&self, rx: u32, tx: u32) -> Result<()> {
        let before = self.ring_parameters()?;
        let mut wanted = request::RingParameters { rx_pending: rx, tx_pending: tx, ..before };
        wanted.command = request::SET_RINGS;
        self.perform("setting the ring sizes", &mut wanted)
    }

    fn ring_parameters(&self) -> Result<request::RingParameters> {
        let mut rings = request::RingParameters::default();
        self.perform("reading the ring sizes", &mut rings)?;
        Ok(rings)
    }

    /// The numbers of channels (`ETHTOOL_GCHANNELS`).
    ///
    /// # Errors
    /// As [`Ethtool::driver`].
    pub fn channels(&self) -> Result<Channels> {
        let channels = self.channel_counts()?;
        Ok(Channels {
            rx: channels.rx_count,
            tx: channels.tx_count,
            combined: channels.combined_count,
            rx_max: channels.max_rx,
            tx_max: channels.max_tx,
            combined_max: channels.max_combined,
        })
    }

    /// Sets the numbers of channels (`ETHTOOL_SCHANNELS`).
    ///
    /// # Errors
    /// As [`Ethtool::driver`]; [`Kind::Invalid`] beyond the maxima; [`Kind::Permission`].
    pub fn set_channels(&self, rx: u32, tx: u32, combined: u32) -> Result<()> {
        let before = self.channel_counts()?;
        let mut wanted = request::ChannelCounts {
            rx_count: rx,
            tx_count: tx,
            combined_count: combined,
            ..before
        };
        wanted.command = request::SET_CHANNELS;
        self.perform("setting the numbers of channels", &mut wanted)
    }

    fn channel_counts(&self) -> Result<request::ChannelCounts> {
        let mut channels = request::ChannelCounts::default();
        self.perform("reading the numbers of channels", &mut channels)?;
        Ok(channels)
    }

    /// What the interface can time-stamp (`ETHTOOL_GET_TS_INFO`).
    ///
    /// # Errors
    /// As [`Ethtool::driver`].
    pub fn timestamping(&self) -> Result<Timestamping> {
        let mut info = request::TimestampInformation::default();
        self.perform("reading the time stamp abilities", &mut info)?;
        Ok(Timestamping {
            modes: info.so_timestamping,
            clock: u32::try_from(info.phc_index).ok(),
            tx_types: info.tx_types,
            rx_filters: info.rx_filters,
        })
    }

    /// The speed of the link in Mbit/s (`ETHTOOL_GLINKSETTINGS`); `None` when nobody knows, as
    /// for a link that is down. A veth claims 10000 whatever it does.
    ///
    /// # Errors
    /// As [`Ethtool::driver`].
    pub fn speed_mbps(&self) -> Result<Option<u32>> {
        const ACTION: &str = "reading the link speed";
        // The first call only asks how many words the masks of link modes have; the kernel
        // answers with their number, negative, and the second call must repeat it.
        let mut settings = request::LinkSettings::default();
        self.perform(ACTION, &mut settings)?;
        if settings.mask_words < 0 {
            let mask_words = settings.mask_words.saturating_neg();
            settings = request::LinkSettings { mask_words, ..request::LinkSettings::default() };
            self.perform(ACTION, &mut settings)?;
        }
        // SPEED_UNKNOWN is -1, and some drivers say 0.
        Ok(Some(settings.speed).filter(|&speed| !matches!(speed, 0 | u32::MAX)))
    }

    fn perform<R: Request>(&self, action: &str, request: &mut R) -> Result<()> {
        request::perform(&self.socket, &self.name, request).map_err(|source| {
            let error = Error::new(format!("{action} of {}", self.name), source);
            match error.kind() {
                Kind::Permission => {
                    error.remedy("run as root or give the program CAP_NET_ADMIN over this network")
                }
                Kind::Unsupported => error.remedy("its driver has no such setting"),
                _ => error,
            }
        })
    }
}
