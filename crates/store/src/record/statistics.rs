//! What an interface counted while packets were captured.

/// Counters of one interface (pcapng Interface Statistics Block, draft section 4.6), cumulative
/// since the capture began. A counter that the file does not give is `None`, never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InterfaceStatistics {
    /// Index of the interface over the whole file.
    pub interface: u32,
    /// When the counters were read, in nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// When the capture began, in nanoseconds since the Unix epoch (`isb_starttime`).
    pub start_time_ns: Option<u64>,
    /// When the capture ended (`isb_endtime`).
    pub end_time_ns: Option<u64>,
    /// Packets that the interface received (`isb_ifrecv`).
    pub received_packets: Option<u64>,
    /// Packets that the interface dropped for want of room (`isb_ifdrop`).
    pub interface_dropped_packets: Option<u64>,
    /// Packets that the capture filter accepted (`isb_filteraccept`).
    pub filter_accepted_packets: Option<u64>,
    /// Packets that the operating system dropped (`isb_osdrop`).
    pub system_dropped_packets: Option<u64>,
    /// Packets that reached the user (`isb_usrdeliv`).
    pub delivered_packets: Option<u64>,
}

impl InterfaceStatistics {
    /// Takes every counter that `later` gives, as a later block of the same interface stands for
    /// everything before it.
    pub(crate) fn update(&mut self, later: &Self) {
        self.time_ns = later.time_ns;
        self.start_time_ns = later.start_time_ns.or(self.start_time_ns);
        self.end_time_ns = later.end_time_ns.or(self.end_time_ns);
        self.received_packets = later.received_packets.or(self.received_packets);
        self.interface_dropped_packets =
            later.interface_dropped_packets.or(self.interface_dropped_packets);
        self.filter_accepted_packets =
            later.filter_accepted_packets.or(self.filter_accepted_packets);
        self.system_dropped_packets = later.system_dropped_packets.or(self.system_dropped_packets);
        self.delivered_packets = later.delivered_packets.or(self.delivered_packets);
    }
}
