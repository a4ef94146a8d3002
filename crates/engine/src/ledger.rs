//! The account of every packet: for each place, what entered equals what left it, was kept, or was
//! lost for a named reason. What no counter explains is shown as unexplained and fails the run.

use serde::ser::{Serialize, SerializeMap, Serializer};

use port::{Losses, Reason, RxCounters, TxCounters};

/// Packets, and bytes where whoever counted them knew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Name in tables and, with `_packets` and `_bytes` appended, in JSON.
    pub name: String,
    /// Frames.
    pub packets: u64,
    /// Bytes of these frames without FCS, if known.
    pub bytes: Option<u64>,
}

impl Entry {
    /// An entry whose bytes are known.
    pub fn new(name: &str, packets: u64, bytes: u64) -> Self {
        Self { name: name.into(), packets, bytes: Some(bytes) }
    }

    /// An entry that counts packets only.
    pub fn packets(name: &str, packets: u64) -> Self {
        Self { name: name.into(), packets, bytes: None }
    }
}

/// One place's account: the sums of both sides must agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Where: `receive packet:eth0`, `record`, `transmit packet:eth1`.
    pub place: String,
    /// What came in.
    pub entered: Vec<Entry>,
    /// What became of it.
    pub left: Vec<Entry>,
    /// Figures of other counters beside the account, for comparison; not part of the sums.
    pub facts: Vec<Entry>,
}

impl Account {
    /// An account without entries.
    pub fn new(place: impl Into<String>) -> Self {
        Self { place: place.into(), entered: Vec::new(), left: Vec::new(), facts: Vec::new() }
    }

    /// Packets that entered, less packets that left: 0 in an account that balances, positive when
    /// packets are missing, negative when there are too many.
    pub fn unexplained_packets(&self) -> i64 {
        let sum = |entries: &[Entry]| entries.iter().map(|e| i128::from(e.packets)).sum::<i128>();
        let gap = sum(&self.entered) - sum(&self.left);
        gap.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// Packets lost here for any reason.
    pub fn lost_packets(&self) -> u64 {
        let lost = |entry: &&Entry| Reason::ALL.iter().any(|reason| reason.name() == entry.name);
        self.left.iter().filter(lost).map(|entry| entry.packets).sum()
    }

    /// The account of a receiving port: wire + added = filtered + beyond_count + delivered + dropped
    /// by reason.
    pub fn of_receiver(port: &str, counters: &RxCounters) -> Self {
        let mut account = Self::new(format!("receive {port}"));
        account.entered.push(Entry::packets("wire", counters.wire_packets));
        if counters.added_packets > 0 {
            account.entered.push(Entry::packets("added", counters.added_packets));
        }
        account.left.push(Entry::packets("filtered", counters.filtered_packets));
        if counters.beyond_count_packets > 0 {
            account.left.push(Entry::packets("beyond_count", counters.beyond_count_packets));
        }
        account.left.push(Entry::new(
            "delivered",
            counters.delivered_packets,
            counters.delivered_bytes,
        ));
        account.lose(&counters.dropped, &[Reason::Interface, Reason::KernelRing]);
        if let Some(device) = counters.device {
            account.facts.push(Entry::packets("device", device.packets_max));
            account.facts.push(Entry::packets("device_dropped", device.dropped_packets));
            if device.unexplained_packets > 0 {
                let unseen = Entry::packets("device_unseen", device.unexplained_packets);
                account.entered.push(unseen);
            }
        }
        if counters.copied_packets > 0 {
            account.facts.push(Entry::packets("copied", counters.copied_packets));
        }
        account.facts.push(Entry::packets("ring_freezes", counters.ring_freezes));
        account
    }

    /// The account of a sending port: intended = transmitted + unsent by reason.
    ///
    /// `unsent` holds what never reached the port. Of what the port accepted, the device's own
    /// count decides how much was transmitted.
    pub fn of_sender(port: &str, intended: Entry, unsent: &Losses, counters: &TxCounters) -> Self {
        let mut account = Self::new(format!("transmit {port}"));
        let accepted = counters.accepted_packets;
        let swallowed = counters.dropped.total();
        // Of what a wrapping port added, too, some may be lost.
        let handed_over = (accepted + counters.added_packets).saturating_sub(swallowed);
        let missing = match counters.device {
            Some(device) => handed_over.saturating_sub(device.packets_max),
            None => 0,
        };
        let by_device = counters.device.map_or(0, |device| missing.min(device.dropped_packets));
        account.entered.push(intended);
        if counters.added_packets > 0 {
            account.entered.push(Entry::packets("added", counters.added_packets));
        }
        let transmitted = handed_over - missing;
        account.left.push(if missing == 0 && counters.added_packets == 0 && swallowed == 0 {
            Entry::new("transmitted", transmitted, counters.accepted_bytes)
        } else {
            Entry::packets("transmitted", transmitted)
        });
        let mut lost = *unsent;
        lost.merge(&counters.dropped);
        lost.add(Reason::Device, by_device);
        account.lose(&lost, &[Reason::Late, Reason::RingFull, Reason::Rejected]);
        account.facts.push(Entry::new("accepted", accepted, counters.accepted_bytes));
        if let Some(device) = counters.device {
            account.facts.push(Entry::packets("device", device.packets_max));
            account.facts.push(Entry::packets("device_dropped", by_device));
            // Its drop counter holds frames that it had no room for, too; those were given again.
            let refused = device.dropped_packets - by_device;
            account.facts.push(Entry::packets("device_refused", refused));
            let foreign = device.packets_max.saturating_sub(handed_over);
            account.facts.push(Entry::packets("foreign", foreign));
        }
        account.facts.push(Entry::packets("blocked_times", counters.blocked_times));
        account
    }

    /// Adds losses by reason; those of `always` even where they are 0.
    pub fn lose(&mut self, losses: &Losses, always: &[Reason]) {
        for reason in Reason::ALL {
            let packets = losses.get(reason);
            if packets > 0 || always.contains(&reason) {
                self.left.push(Entry::packets(reason.name(), packets));
            }
        }
    }
}

/// The accounts of all places of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// In the order in which packets pass.
    pub accounts: Vec<Account>,
}

impl Ledger {
    /// Whether every account's sides agree to the packet.
    pub fn is_balanced(&self) -> bool {
        self.accounts.iter().all(|account| account.unexplained_packets() == 0)
    }

    /// Sum over all accounts of the packets that no counter explains, missing or too many.
    pub fn unexplained_packets(&self) -> u64 {
        self.accounts.iter().map(|account| account.unexplained_packets().unsigned_abs()).sum()
    }

    /// Sum over all accounts of the packets lost for a named reason.
    pub fn lost_packets(&self) -> u64 {
        self.accounts.iter().map(Account::lost_packets).sum()
    }

    /// Sum over all accounts of the packets lost for `reason`.
    pub fn lost_to(&self, reason: Reason) -> u64 {
        let entries = self.accounts.iter().flat_map(|account| &account.left);
        entries.filter(|entry| entry.name == reason.name()).map(|entry| entry.packets).sum()
    }

    /// What was transmitted by the last port that sends.
    pub fn transmitted(&self) -> Option<&Entry> {
        let entries = self.accounts.iter().rev().flat_map(|account| &account.left);
        entries.into_iter().find(|entry| entry.name == "transmitted")
    }

    /// Adds an account that compares two places: what left the one entered the other.
    pub fn connect(&mut self, place: &str, left: Entry, entered: Entry) {
        let mut account = Account::new(place);
        account.entered.push(left);
        account.left.push(entered);
        self.accounts.push(account);
    }
}

fn serialize_entries<M: SerializeMap>(map: &mut M, entries: &[Entry]) -> Result<(), M::Error> {
    for entry in entries {
        if entry.name.ends_with("_times") || entry.name.ends_with("_freezes") {
            map.serialize_entry(&entry.name, &entry.packets)?;
            continue;
        }
        map.serialize_entry(&format!("{}_packets", entry.name), &entry.packets)?;
        map.serialize_entry(&format!("{}_bytes", entry.name), &entry.bytes)?;
    }
    Ok(())
}

struct Entries<'a>(&'a [Entry]);

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        serialize_entries(&mut map, self.0)?;
        map.end()
    }
}

impl Serialize for Account {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("place", &self.place)?;
        map.serialize_entry("unexplained_packets", &self.unexplained_packets())?;
        map.serialize_entry("entered", &Entries(&self.entered))?;
        map.serialize_entry("left", &Entries(&self.left))?;
        map.serialize_entry("facts", &Entries(&self.facts))?;
        map.end()
    }
}

impl Serialize for Ledger {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("balanced", &self.is_balanced())?;
        map.serialize_entry("unexplained_packets", &self.unexplained_packets())?;
        map.serialize_entry("lost_packets", &self.lost_packets())?;
        map.serialize_entry("accounts", &self.accounts)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use port::counters::DeviceCount;

    fn device(packets: u64, dropped_packets: u64) -> DeviceCount {
        DeviceCount {
            packets_min: packets,
            packets_max: packets,
            dropped_packets,
            unexplained_packets: 0,
        }
    }

    fn sender(accepted: u64, device: Option<DeviceCount>) -> TxCounters {
        TxCounters {
            accepted_packets: accepted,
            accepted_bytes: accepted * 60,
            device,
            ..TxCounters::default()
        }
    }

    #[test]
    fn copies_that_were_made_and_lost_are_not_transmitted() {
        let mut counters = sender(100, None);
        counters.added_packets = 20;
        counters.dropped.add(Reason::RingFull, 110);
        let intended = Entry::packets("intended", 100);
        let account = Account::of_sender("pcap:a", intended, &Losses::default(), &counters);
        assert_eq!(account.unexplained_packets(), 0);
        assert_eq!(account.left.first(), Some(&Entry::packets("transmitted", 10)));
    }

    #[test]
    fn a_sender_balances_against_the_device() {
        let mut unsent = Losses::default();
        unsent.add(Reason::Late, 10);
        let intended = Entry::new("intended", 100, 6_000);
        let account = Account::of_sender(
            "packet:a",
            intended.clone(),
            &unsent,
            &sender(90, Some(device(90, 0))),
        );
        assert_eq!(account.unexplained_packets(), 0);
        assert_eq!(account.lost_packets(), 10);

        // The device counted fewer than it was given: charged to it if it says so ...
        let account = Account::of_sender(
            "packet:a",
            intended.clone(),
            &unsent,
            &sender(90, Some(device(85, 5))),
        );
        assert_eq!((account.unexplained_packets(), account.lost_packets()), (0, 15));
        // What it refused at first and took when it was given again is not lost.
        let account = Account::of_sender(
            "packet:a",
            intended.clone(),
            &unsent,
            &sender(90, Some(device(88, 7))),
        );
        assert_eq!((account.unexplained_packets(), account.lost_packets()), (0, 12));
        for fact in [Entry::packets("device_dropped", 2), Entry::packets("device_refused", 5)] {
            assert!(account.facts.contains(&fact), "{:?}", account.facts);
        }
        // The device counted fewer and nobody says why: unexplained.
        let account =
            Account::of_sender("packet:a", intended, &unsent, &sender(90, Some(device(85, 0))));
        assert_eq!(account.unexplained_packets(), 5);
        let ledger = Ledger { accounts: vec![account] };
        assert!(!ledger.is_balanced());
        assert_eq!(ledger.unexplained_packets(), 5);
    }

    #[test]
    fn a_receiver_balances_against_the_device() {
        let mut counters = RxCounters {
            wire_packets: 100,
            delivered_packets: 93,
            delivered_bytes: 93 * 60,
            device: Some(device(104, 0)),
            ..RxCounters::default()
        };
        counters.dropped.add(Reason::KernelRing, 7);
        assert_eq!(Account::of_receiver("packet:b", &counters).unexplained_packets(), 0);
        // The device counted more than the socket saw.
        counters.device = Some(DeviceCount { unexplained_packets: 3, ..device(104, 0) });
        assert_eq!(Account::of_receiver("packet:b", &counters).unexplained_packets(), 3);
    }

    #[test]
    fn frames_beyond_the_count_are_named_and_not_lost() {
        let counters = RxCounters {
            wire_packets: 128,
            beyond_count_packets: 28,
            delivered_packets: 100,
            ..RxCounters::default()
        };
        let account = Account::of_receiver("pcap:x", &counters);
        assert_eq!((account.unexplained_packets(), account.lost_packets()), (0, 0));
        assert!(account.left.contains(&Entry::packets("beyond_count", 28)));
    }

    #[test]
    fn swallowed_and_added_frames_have_their_place() {
        let mut counters = sender(100, None);
        counters.dropped.add(Reason::Injected, 8);
        counters.added_packets = 3;
        let account = Account::of_sender(
            "memory:x",
            Entry::new("intended", 100, 6_000),
            &Losses::default(),
            &counters,
        );
        assert_eq!(account.unexplained_packets(), 0);
        assert_eq!(account.left[0], Entry::packets("transmitted", 95));
    }

    #[test]
    fn what_a_receiver_added_has_its_place() {
        let counters = RxCounters {
            wire_packets: 100,
            added_packets: 7,
            delivered_packets: 107,
            ..RxCounters::default()
        };
        let account = Account::of_receiver("pcap:x", &counters);
        assert_eq!(account.unexplained_packets(), 0);
        let entered = [Entry::packets("wire", 100), Entry::packets("added", 7)];
        assert_eq!(account.entered, entered);
    }

    #[test]
    fn connected_places_must_agree() {
        let mut ledger = Ledger::default();
        ledger.connect("veth", Entry::packets("sent", 5), Entry::packets("arrived", 5));
        assert!(ledger.is_balanced());
        ledger.connect("veth", Entry::packets("sent", 5), Entry::packets("arrived", 7));
        assert_eq!(ledger.unexplained_packets(), 2);
    }
}
