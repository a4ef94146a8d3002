//! The cases that need one process only.

use std::net::Ipv4Addr;
use std::time::Duration;

use sys::Kind;
use sys::ethtool::{Ethtool, Offloads};
use sys::link::{
    Link, LinkChange, LinkEvent, LinkMonitor, LinkStatisticsReader, Links, MacAddress,
};
use sys::namespace::{Namespace, Rights, Sysfs};
use sys::napi;
use sys::veth::{VethConfig, VethPair};
use testing::{Outcome, Test, skip, tests};

use crate::socket::{PacketSocket, frame};

pub const CASES: &[Test] = &tests![
    namespaces_are_separate,
    closures_run_inside_and_panics_come_out,
    files_that_are_no_namespaces_are_refused,
    new_namespaces_have_loopback_and_no_ipv6,
    a_veth_pair_carries_a_frame,
    frames_are_counted_exactly,
    settings_of_a_pair_are_read_back,
    offloads_are_read_back_one_by_one,
    channels_are_read_back,
    what_a_veth_does_not_have_is_said,
    the_drivers_own_counters_agree,
    unknown_interfaces_name_those_that_exist,
    the_far_end_is_seen_wherever_it_is,
    the_far_ends_namespace_is_found,
    taken_names_leave_the_existing_pair_alone,
    links_are_changed_as_asked,
    the_monitor_sees_every_change,
    the_monitor_survives_a_flood,
    counters_of_a_removed_interface_say_so,
    threaded_napi_has_a_thread_per_queue,
    threads_without_napi_are_refused,
    receive_steering_is_read_back,
];

/// Two namespaces with the pair `g0`, `s0` between them.
fn pair(config: &VethConfig) -> sys::Result<(Namespace, Namespace, VethPair)> {
    let (first, second) = (Namespace::create()?, Namespace::create()?);
    let pair = VethPair::create(&first, "g0", &second, "s0", config)?;
    Ok((first, second, pair))
}

fn names(namespace: &Namespace) -> sys::Result<Vec<String>> {
    Ok(Links::of(namespace)?.list()?.into_iter().map(|link| link.name).collect())
}

fn namespaces_are_separate() -> Outcome {
    let here = Namespace::current()?;
    let before = names(&here)?;
    let (first, second, _) = pair(&VethConfig::default())?;
    assert!(first != second && first != here && second != here);
    assert!(first == first.try_clone()? && here.is_current() && !first.is_current());
    assert_eq!(names(&first)?, ["lo", "g0"]);
    assert_eq!(names(&second)?, ["lo", "s0"]);
    assert_eq!(names(&here)?, before, "nothing appeared in the caller's namespace");
    Ok(())
}

fn closures_run_inside_and_panics_come_out() -> Outcome {
    let (here, inside) = (Namespace::current()?, Namespace::create()?);
    let (seen, answer) = inside.run(|| (Namespace::current(), 42))?;
    assert!(seen? == inside && answer == 42);
    // A nested call stays where it is, and the caller never moved.
    assert!(inside.run(|| inside.run(Namespace::current))???.eq(&inside));
    assert!(here.is_current());
    let message = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        inside.run(|| std::panic::resume_unwind(Box::new("came out")))
    }));
    let message = message.err().ok_or("the panic was lost")?;
    assert_eq!(message.downcast_ref(), Some(&"came out"));
    Ok(())
}

fn files_that_are_no_namespaces_are_refused() -> Outcome {
    let error = Namespace::open("/dev/null").err().ok_or("a device passed")?;
    assert_eq!(error.kind(), Kind::Invalid);
    let error = Namespace::open("/proc/self/ns/uts").err().ok_or("another kind passed")?;
    assert_eq!(error.kind(), Kind::Invalid);
    let error = Namespace::open("/run/netns/no-such-name").err().ok_or("nothing passed")?;
    assert_eq!(error.kind(), Kind::NotFound);
    assert!(error.to_string().contains("/run/netns/no-such-name"));
    assert!(Namespace::open("/proc/thread-self/ns/net")?.is_current());
    Ok(())
}

fn new_namespaces_have_loopback_and_no_ipv6() -> Outcome {
    let inside = Namespace::create()?;
    let lo = Links::of(&inside)?.named("lo")?;
    assert!(lo.up && lo.running && lo.loopback && lo.mac.is_none() && lo.kind.is_none());
    // Opened inside, since the file shows the opener's namespace.
    for scope in ["all", "default"] {
        let path = format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6");
        match inside.run(|| std::fs::read_to_string(&path))? {
            Ok(content) => assert_eq!(content.trim(), "1"),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound),
        }
    }
    Ok(())
}

fn a_veth_pair_carries_a_frame() -> Outcome {
    for (gro, threaded_napi) in [(false, false), (true, false), (true, true)] {
        let config = VethConfig { gro, threaded_napi, ..VethConfig::default() };
        let (first, second, pair) = match pair(&config) {
            Err(error) if threaded_napi && error.kind() != Kind::Other => return skip(error),
            result => result?,
        };
        let patience = Duration::from_secs(5);
        let sender = first.run(|| PacketSocket::open(pair.first.index, patience))??;
        let receiver = second.run(|| PacketSocket::open(pair.second.index, patience))??;
        for bytes in [60, 1514] {
            let sent = frame(pair.first.mac.0, pair.second.mac.0, bytes);
            sender.send(&sent)?;
            assert_eq!(
                receiver.receive()?,
                sent,
                "{bytes} bytes, GRO {gro}, threaded {threaded_napi}"
            );
        }
    }
    Ok(())
}

fn frames_are_counted_exactly() -> Outcome {
    const FRAMES: u64 = 500;
    const BYTES: u64 = 128;
    let (first, second, pair) = pair(&VethConfig::default())?;
    let mut sending = LinkStatisticsReader::open(&first, "g0")?;
    let mut receiving = LinkStatisticsReader::open(&second, "s0")?;
    assert_eq!(sending.read()?.tx_packets, 0, "the kernel sent frames of its own");
    let patience = Duration::from_secs(5);
    let sender = first.run(|| PacketSocket::open(pair.first.index, patience))??;
    let sent = frame(pair.first.mac.0, pair.second.mac.0, BYTES as usize);
    // What nobody listens for is received and dropped.
    for (listening, dropped) in [(false, FRAMES), (true, 0)] {
        let listener = second.run(|| PacketSocket::open(pair.second.index, patience))??;
        let _listener = listening.then_some(listener);
        let before = (sending.read()?, receiving.read()?);
        for _ in 0..FRAMES {
            sender.send(&sent)?;
        }
        let mut received = receiving.read()?.since(&before.1);
        // The last frames may still wait in the backlog when send(2) returns.
        for _ in 0..1000 {
            if received.rx_packets == FRAMES && received.rx_dropped == dropped {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
            received = receiving.read()?.since(&before.1);
        }
        let transmitted = sending.read()?.since(&before.0);
        assert_eq!((transmitted.tx_packets, transmitted.tx_bytes), (FRAMES, FRAMES * BYTES));
        assert_eq!((received.rx_packets, received.rx_bytes), (FRAMES, FRAMES * BYTES));
        assert_eq!((transmitted.rx_packets, received.tx_packets), (0, 0));
        assert_eq!((transmitted.tx_dropped, received.rx_dropped), (0, dropped));
    }
    // The same by name.
    assert_eq!(Links::of(&second)?.named("s0")?.statistics, receiving.read()?);
    Ok(())
}

fn settings_of_a_pair_are_read_back() -> Outcome {
    let macs = [MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2])];
    let config =
        VethConfig { queues: 3, mtu_bytes: 3000, macs: Some(macs), ..VethConfig::default() };
    let (first, second, pair) = pair(&config)?;
    assert_eq!([pair.first.mac, pair.second.mac], macs);
    let near = Links::of(&first)?.named("g0")?;
    let far = Links::of(&second)?.at(pair.second.index)?;
    for (link, end, peer) in [(&near, &pair.first, &pair.second), (&far, &pair.second, &pair.first)]
    {
        assert_eq!((&link.name, link.index, link.mac), (&end.name, end.index, Some(end.mac)));
        assert_eq!((link.mtu_bytes, link.tx_queues, link.rx_queues), (3000, 3, 3));
        assert!(link.up && link.running && !link.promiscuous && !link.loopback);
        assert_eq!((link.kind.as_deref(), link.peer_index), (Some("veth"), Some(peer.index)));
    }
    for (namespace, name) in [(&first, "g0"), (&second, "s0")] {
        let ethtool = Ethtool::open(namespace, name)?;
        assert_eq!(ethtool.offloads()?, Offloads::NONE);
        assert_eq!(ethtool.driver()?.name, "veth");
        assert_eq!(ethtool.speed_mbps()?, Some(10_000));
    }
    let (first, ..) = self::pair(&VethConfig { gro: true, offloads: true, ..config })?;
    let on = Ethtool::open(&first, "g0")?.offloads()?;
    assert_eq!(on, Offloads { lro: false, ..Offloads::ALL });
    Ok(())
}

fn offloads_are_read_back_one_by_one() -> Outcome {
    let (first, ..) = pair(&VethConfig::default())?;
    let ethtool = Ethtool::open(&first, "g0")?;
    let checksum = Offloads { tx_checksum: true, ..Offloads::NONE };
    let segments = Offloads { scatter_gather: true, tso: true, ..checksum };
    for wanted in [
        Offloads { rx_checksum: true, ..Offloads::NONE },
        checksum,
        segments,
        Offloads { gro: true, rx_vlan: true, ..Offloads::NONE },
        Offloads { tx_vlan: true, ..segments },
        Offloads::NONE,
    ] {
        ethtool.set_offloads(&wanted)?;
        assert_eq!(ethtool.offloads()?, wanted);
    }
    let error = ethtool.set_offloads(&Offloads { lro: true, ..Offloads::NONE });
    assert_eq!(error.err().map(|error| error.kind()), Some(Kind::Unsupported));
    let error = ethtool.set_offloads(&Offloads { tso: true, ..Offloads::NONE });
    let error = error.err().ok_or("segmentation without checksums passed")?;
    assert!(error.to_string().contains("tcp-segmentation-offload of g0"), "{error}");
    Ok(())
}

fn channels_are_read_back() -> Outcome {
    let (first, ..) = pair(&VethConfig { queues: 2, ..VethConfig::default() })?;
    let ethtool = Ethtool::open(&first, "g0")?;
    let channels = ethtool.channels()?;
    assert_eq!((channels.rx, channels.tx, channels.combined), (2, 2, 0));
    assert_eq!((channels.rx_max, channels.tx_max), (2, 2));
    // A veth wants at least as many receivers as its peer has senders, hence the other way round.
    ethtool.set_channels(2, 1, 0)?;
    assert_eq!((ethtool.channels()?.rx, ethtool.channels()?.tx), (2, 1));
    let error = ethtool.set_channels(3, 2, 0).err().ok_or("three of two channels passed")?;
    assert_eq!(error.kind(), Kind::Invalid);
    Ok(())
}

fn what_a_veth_does_not_have_is_said() -> Outcome {
    let (first, ..) = pair(&VethConfig::default())?;
    let ethtool = Ethtool::open(&first, "g0")?;
    assert_eq!(ethtool.rings().err().map(|error| error.kind()), Some(Kind::Unsupported));
    let stamps = ethtool.timestamping()?;
    assert!(stamps.clock.is_none() && !stamps.rx_hardware_all() && !stamps.tx_hardware());
    Ok(())
}

fn the_drivers_own_counters_agree() -> Outcome {
    // A queue of a veth counts by itself only what NAPI receives.
    let config = VethConfig { queues: 2, gro: true, ..VethConfig::default() };
    let (first, second, pair) = pair(&config)?;
    let ethtool = Ethtool::open(&second, "s0")?;
    let before = ethtool.statistics()?;
    let sum = |counters: &[(String, u64)], ending: &str| -> u64 {
        let wanted = counters
            .iter()
            .filter(|(name, _)| name.starts_with("rx_queue_") && name.ends_with(ending));
        wanted.map(|(_, value)| value).sum()
    };
    let queues = before.iter().filter(|(name, _)| name.ends_with("_xdp_drops")).count();
    assert_eq!(queues, 2, "{before:?}");
    assert_eq!(sum(&before, "_packets"), 0, "{before:?}");
    let patience = Duration::from_secs(5);
    let sender = first.run(|| PacketSocket::open(pair.first.index, patience))??;
    let receiver = second.run(|| PacketSocket::open(pair.second.index, patience))??;
    for _ in 0..10 {
        sender.send(&frame(pair.first.mac.0, pair.second.mac.0, 100))?;
        receiver.receive()?;
    }
    // The queue adds up after the frames of a poll were handed on.
    let mut after = ethtool.statistics()?;
    for _ in 0..1000 {
        if sum(&after, "_packets") == 10 {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
        after = ethtool.statistics()?;
    }
    assert_eq!((sum(&after, "_packets"), sum(&after, "_drops")), (10, 0), "{after:?}");
    assert_eq!(Ethtool::current("lo")?.statistics()?, []);
    Ok(())
}

fn unknown_interfaces_name_those_that_exist() -> Outcome {
    let (first, ..) = pair(&VethConfig::default())?;
    let error = Links::of(&first)?.named("g1").err().ok_or("g1 exists")?;
    assert_eq!(error.kind(), Kind::NotFound);
    let text = error.to_string();
    assert!(text.starts_with("looking up the interface g1: No such device"), "{text}");
    assert!(text.ends_with("; did you mean g0? Interfaces here: lo, g0"), "{text}");
    let text = Ethtool::open(&first, "wlp3s0").err().ok_or("wlp3s0 exists")?.to_string();
    assert!(text.ends_with("; interfaces here: lo, g0"), "{text}");
    let long = first.run(|| Link::by_name("a-name-of-more-than-15-bytes"))?;
    assert_eq!(long.err().map(|error| error.kind()), Some(Kind::NotFound));
    Ok(())
}

fn taken_names_leave_the_existing_pair_alone() -> Outcome {
    let (first, second, _) = pair(&VethConfig::default())?;
    for [near, far] in [["g0", "other"], ["other", "s0"]] {
        let again = VethPair::create(&first, near, &second, far, &VethConfig::default());
        assert_eq!(again.err().map(|error| error.kind()), Some(Kind::Busy), "{near} {far}");
    }
    assert_eq!((names(&first)?, names(&second)?), (vec_of(["lo", "g0"]), vec_of(["lo", "s0"])));
    Ok(())
}

fn vec_of(names: [&str; 2]) -> Vec<String> {
    names.map(String::from).to_vec()
}

fn links_are_changed_as_asked() -> Outcome {
    let (first, second, _) = pair(&VethConfig::default())?;
    let mut links = Links::of(&first)?;
    links.set_mtu("g0", 900)?;
    assert_eq!(links.named("g0")?.mtu_bytes, 900);
    let refused = links.set_mtu("g0", 10).err().ok_or("an MTU of 10 passed")?;
    assert_eq!(refused.kind(), Kind::Invalid);
    assert!(refused.to_string().contains("the kernel explains: "), "{refused}");

    links.set_mac("g0", MacAddress([2, 9, 9, 9, 9, 9]))?;
    assert_eq!(links.named("g0")?.mac, Some(MacAddress([2, 9, 9, 9, 9, 9])));
    links.set_promiscuous("g0", true)?;
    assert!(links.named("g0")?.promiscuous);
    links.set_promiscuous("g0", false)?;
    assert!(!links.named("g0")?.promiscuous);

    let address = Ipv4Addr::new(192, 0, 2, 1);
    links.add_address("g0", address.into(), 24)?;
    let again = links.add_address("g0", address.into(), 24);
    assert_eq!(again.err().map(|error| error.kind()), Some(Kind::Busy));
    // An address that the namespace has can be bound; one that it has not cannot.
    first.run(|| std::net::UdpSocket::bind((address, 0)))??;
    assert!(second.run(|| std::net::UdpSocket::bind((address, 0)))?.is_err());

    links.delete("g0")?;
    assert_eq!((names(&first)?, names(&second)?), (vec!["lo".into()], vec!["lo".into()]));
    Ok(())
}

fn the_monitor_sees_every_change() -> Outcome {
    let (first, second) = (Namespace::create()?, Namespace::create()?);
    let mut monitor = LinkMonitor::open(&second)?;
    assert_eq!(monitor.next_event()?, None);
    let pair = VethPair::create(&first, "g0", &second, "s0", &VethConfig::default())?;
    expect(&mut monitor, &pair, &[LinkChange::Appeared, LinkChange::Up])?;
    // The far end goes down, and with it the carrier of this one.
    let mut far = Links::of(&first)?;
    far.set_up("g0", false)?;
    expect(&mut monitor, &pair, &[LinkChange::Down])?;
    far.set_up("g0", true)?;
    expect(&mut monitor, &pair, &[LinkChange::Up])?;
    let mut near = Links::of(&second)?;
    near.set_up("s0", false)?;
    expect(&mut monitor, &pair, &[LinkChange::Down])?;
    far.delete("g0")?;
    expect(&mut monitor, &pair, &[LinkChange::Gone])?;
    assert_eq!(monitor.wait_event(Duration::from_millis(50))?, None);
    Ok(())
}

fn expect(monitor: &mut LinkMonitor, pair: &VethPair, changes: &[LinkChange]) -> Outcome {
    for change in changes {
        let event = monitor.wait_event(Duration::from_secs(10))?;
        let (index, name) = (pair.second.index, pair.second.name.clone());
        assert_eq!(event, Some(LinkEvent { index, name, change: change.clone() }));
    }
    Ok(())
}

fn the_monitor_survives_a_flood() -> Outcome {
    let (first, second, pair) = pair(&VethConfig::default())?;
    let mut monitor = LinkMonitor::open(&second)?;
    // Each change is one notification of about 1.5 kB; a socket holds some 200 kB.
    let mut links = Links::of(&second)?;
    for round in 0..2000 {
        links.set_mtu("s0", 1000 + round % 2)?;
    }
    Links::of(&first)?.delete("g0")?;
    let mut last = None;
    while let Some(event) = monitor.wait_event(Duration::from_millis(500))? {
        last = Some(event);
    }
    let (index, name) = (pair.second.index, pair.second.name);
    assert_eq!(last, Some(LinkEvent { index, name, change: LinkChange::Gone }));
    Ok(())
}

fn counters_of_a_removed_interface_say_so() -> Outcome {
    let (first, second, _) = pair(&VethConfig::default())?;
    let mut reader = LinkStatisticsReader::open(&second, "s0")?;
    reader.read()?;
    Links::of(&first)?.delete("g0")?;
    let error = reader.read().err().ok_or("counters of nothing")?;
    assert_eq!(error.kind(), Kind::Down);
    assert!(error.to_string().starts_with("reading the counters of s0: "), "{error}");
    Ok(())
}

fn threaded_napi_has_a_thread_per_queue() -> Outcome {
    let config = VethConfig { queues: 2, gro: true, ..VethConfig::default() };
    let (_first, second, pair) = pair(&config)?;
    let threaded = match napi::set_threaded(&second, "s0", true) {
        Err(error) if matches!(error.kind(), Kind::Permission | Kind::Unsupported) => {
            return skip(error);
        }
        result => result?,
    };
    eprintln!("threaded NAPI by {:?}, rights {:?}", threaded.way, Rights::probe());
    assert_eq!(threaded.instances.len(), 2);
    for instance in &threaded.instances {
        let thread = instance.thread.ok_or("an instance without thread")?;
        let name = std::fs::read_to_string(format!("/proc/{thread}/comm"))?;
        assert_eq!(name.trim(), format!("napi/s0-{}", instance.id));
    }
    assert_eq!(napi::instances(&second, "s0")?, threaded.instances);
    assert_eq!(pair.second.name, "s0");
    let without = napi::set_threaded(&second, "s0", false)?;
    assert!(without.instances.iter().all(|instance| instance.thread.is_none()));
    Ok(())
}

fn threads_without_napi_are_refused() -> Outcome {
    let (_first, second, _) = pair(&VethConfig::default())?;
    let error = napi::set_threaded(&second, "s0", true).err().ok_or("threads for nothing")?;
    assert_eq!(error.kind(), Kind::Unsupported);
    assert!(error.to_string().contains("switch GRO on or attach an XDP program"), "{error}");
    Ok(())
}

fn receive_steering_is_read_back() -> Outcome {
    let (_first, second, _) = pair(&VethConfig { queues: 2, ..VethConfig::default() })?;
    // The private sysfs shows the interfaces of that namespace, and no others.
    let mut seen = Sysfs::of(&second)?.names("class/net")?;
    seen.retain(|name| name != "bonding_masters");
    assert_eq!(seen, ["lo", "s0"]);
    assert_eq!(napi::receive_steering(&second, "s0")?, [vec![], vec![]]);
    match napi::set_receive_steering(&second, "s0", &[0]) {
        Err(error) if error.kind() == Kind::Permission && !Rights::probe().initial => {
            return skip(error);
        }
        result => result?,
    }
    assert_eq!(napi::receive_steering(&second, "s0")?, [vec![0], vec![0]]);
    napi::set_receive_steering(&second, "s0", &[])?;
    assert_eq!(napi::receive_steering(&second, "s0")?, [vec![], vec![]]);
    Ok(())
}

/// In this namespace and in another one; what is no veth has none.
fn the_far_ends_namespace_is_found() -> Outcome {
    // Neither namespace has a name or a process in it: a descriptor of this process is all that there is.
    let (first, second, pair) = pair(&VethConfig::default())?;
    let mut links = Links::of(&first)?;
    let near = links.named("g0")?;
    let (namespace, far) = links.far_end_at(&near)?.ok_or("there is a far end")?;
    assert!(namespace == second && namespace != first);
    assert_eq!((far.name.as_str(), far.index), ("s0", pair.second.index));
    let lo = links.named("lo")?;
    assert!(links.far_end_at(&lo)?.is_none());

    // Of two ends in one namespace, that is the answer.
    VethPair::create(&first, "left", &first, "right", &VethConfig::default())?;
    let found = first.run(|| {
        let mut links = Links::current()?;
        let left = links.named("left")?;
        links.far_end_at(&left)
    })??;
    let (namespace, far) = found.ok_or("there is a far end")?;
    assert!(namespace == first);
    assert_eq!(far.name, "right");
    Ok(())
}

fn the_far_end_is_seen_wherever_it_is() -> Outcome {
    let (first, second, pair) = pair(&VethConfig { mtu_bytes: 9_000, ..VethConfig::default() })?;
    Links::of(&second)?.set_mtu("s0", 1_400)?;
    let mut links = Links::of(&first)?;
    let near = links.named("g0")?;
    assert!(near.is_veth() && near.peer_namespace.is_some());
    let far = links.far_end(&near)?.ok_or("there is a far end")?;
    assert_eq!((far.name.as_str(), far.index, far.mtu_bytes), ("s0", pair.second.index, 1_400));
    assert_eq!((far.frame_bytes_max(), far.frame_bytes_max_from_peer()), (1_414, 1_418));
    let lo = links.named("lo")?;
    assert_eq!(links.far_end(&lo)?, None);

    VethPair::create(&first, "left", &first, "right", &VethConfig::default())?;
    let left = links.named("left")?;
    assert_eq!(left.peer_namespace, None);
    assert_eq!(links.far_end(&left)?.map(|far| far.name), Some("right".into()));
    Ok(())
}
