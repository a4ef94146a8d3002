#!/usr/bin/env python3
"""linerate beside other tools on one veth pair, interleaved, in one run. Root only.

  compare.py generate [--size 60] [--rounds 5] [--seconds 3] [--mode plain|napi|both]
  compare.py receive  [--size 60] [--rounds 3] [--seconds 4] [--mode plain|napi] [--rate 1Mpps]
  compare.py record   [--size 60] [--rounds 3] [--seconds 5] [--senders 1] [--rate 200kpps] [--only NAME] [--to DIR]
  compare.py ledger   [--size 60] [--seconds 5] [--senders 2] [--to DIR]

The pair lies in two namespaces that this script makes and removes; traffic ends by itself. Figures
are taken from the counters of the devices and from /proc, not from what the tools say of themselves.
Tools that are not installed are named and left out.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LINERATE = os.environ.get("LINERATE", os.path.join(HERE, "../target/release/linerate"))
SENDER, SINK = "lrb-tx", "lrb-rx"
TX, RX = "b0", "b1"


def sh(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True).stdout


def network(mode):
    remove()
    for name in (SENDER, SINK):
        sh("ip", "netns", "add", name)
        sh("ip", "netns", "exec", name, "sysctl", "-qw",
           "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
    sh("ip", "link", "add", TX, "address", "02:00:00:00:00:01", "netns", SENDER, "type", "veth",
       "peer", "name", RX, "address", "02:00:00:00:00:02", "netns", SINK)
    for name, device in ((SENDER, TX), (SINK, RX)):
        sh("ip", "-n", name, "link", "set", device, "txqueuelen", "1000", "up")
        sh("ip", "netns", "exec", name, "ethtool", "-K", device,
           "gro", "off", "tso", "off", "gso", "off", "tx", "off", "rx", "off", check=False)
    if mode == "napi":
        sh("ip", "netns", "exec", SINK, "ethtool", "-K", RX, "gro", "on")
        sh("ip", "netns", "exec", SINK, "sh", "-c", f"echo 1 > /sys/class/net/{RX}/threaded")


def remove():
    for name in (SENDER, SINK):
        sh("ip", "netns", "del", name, check=False)


def counter(name, device, what):
    path = f"/sys/class/net/{device}/statistics/{what}"
    return int(sh("ip", "netns", "exec", name, "cat", path))


def frame(size):
    """A UDP frame without FCS, as the other generators take it."""
    payload = bytes(size - 42)
    udp = bytes.fromhex("04000009") + (8 + len(payload)).to_bytes(2, "big") + b"\0\0"
    total = 20 + len(udp) + len(payload)
    header = bytearray(bytes.fromhex("4500") + total.to_bytes(2, "big")
                       + bytes.fromhex("0000000040110000c6120001c6130001"))
    sum_ = sum(int.from_bytes(header[i:i + 2], "big") for i in range(0, 20, 2))
    while sum_ > 0xffff:
        sum_ = (sum_ & 0xffff) + (sum_ >> 16)
    header[10:12] = (0xffff ^ sum_).to_bytes(2, "big")
    return bytes.fromhex("020000000002020000000001") + b"\x08\0" + bytes(header) + udp + payload


def inputs(size, directory):
    data = frame(size)
    trafgen = os.path.join(directory, "frame.cfg")
    with open(trafgen, "w") as out:
        out.write("{ " + ", ".join(f"0x{byte:02x}" for byte in data) + " }\n")
    pcap = os.path.join(directory, "frames.pcap")
    with open(pcap, "wb") as out:
        out.write(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
        for _ in range(256):
            out.write(bytes(8) + len(data).to_bytes(4, "little") * 2 + data)
    return trafgen, pcap


def generators(size, seconds, directory):
    trafgen, pcap = inputs(size, directory)
    pin = ["taskset", "-c", "1"]
    fields = ["--src", "10.0.0.0/16", "--dst", "10.1.0.0/16"]
    ours = [LINERATE, "generate", f"packet:{TX}", "--size", str(size),
            "--duration", f"{seconds}s", "--json"]
    until = ["timeout", "-s", "INT", "-k", "2", str(seconds)]
    by_xdp = [f"xdp:{word[7:]}" if word.startswith("packet:") else word for word in ours]
    return {
        "linerate": ours + fields + ["--cpu", "1"],
        # Addressed as xdpsock's frames are, to nobody: the far end then has less to do.
        "linerate, xdp:": by_xdp + fields + ["--cpu", "1", "--dst-mac", "3c:fd:fe:9e:7f:71"],
        "xdpsock": pin + ["xdpsock", "-t", "-i", TX, "-c", "-N", "-s", str(max(size, 64)), "-n", "1",
                          "-d", str(seconds)],
        "linerate, 2 workers": ours + fields + ["--workers", "2"],
        "trafgen -P 1": until + ["trafgen", "--dev", TX, "--conf", trafgen, "-P", "1"],
        "trafgen -P 2": until + ["trafgen", "--dev", TX, "--conf", trafgen, "-P", "2"],
        "tcpreplay": until + pin + ["tcpreplay", "-q", "--topspeed", "--preload-pcap", "--loop",
                                    "1000000000", "-i", TX, pcap],
    }


def present(tools):
    missing = sorted({name for name, command in tools.items()
                      if not any(shutil.which(word) for word in command
                                 if word in ("trafgen", "tcpreplay", "tcpdump", "dumpcap",
                                             "netsniff-ng", "xdpsock")) and LINERATE not in command})
    for name in missing:
        print(f"not installed, left out: {name}", file=sys.stderr)
    return {name: command for name, command in tools.items() if name not in missing}


def sent_mpps(mode, command, seconds):
    """The rate between two readings well within a run: no start-up, no end."""
    network(mode)
    process = subprocess.Popen(["ip", "netns", "exec", SENDER] + command,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(seconds * 0.3)
    first, first_at = counter(SENDER, TX, "tx_packets"), time.monotonic()
    time.sleep(seconds * 0.5)
    second, second_at = counter(SENDER, TX, "tx_packets"), time.monotonic()
    process.wait()
    return (second - first) / (second_at - first_at) / 1e6


def generate(options, directory):
    tools = present(generators(options.size, options.seconds, directory))
    modes = ["plain", "napi"] if options.mode == "both" else [options.mode]
    rates = {(mode, name): [] for mode in modes for name in tools}
    for _ in range(options.rounds):
        for mode, name in rates:
            rates[mode, name].append(sent_mpps(mode, tools[name], options.seconds))
    print(f"generate, {options.size} B, {options.rounds} interleaved rounds")
    for (mode, name), values in rates.items():
        print(f"  {mode:<6} {name:<22} {statistics.median(values):6.3f} Mpps"
              f" [{min(values):.3f}-{max(values):.3f}]")


def receivers():
    ours = [LINERATE, "receive", "--json", "--cpu", "0"]
    return {
        "linerate, xdp:": ours + [f"xdp:{RX}"],
        "linerate, packet:": ours + [f"packet:{RX}"],
        "xdpsock": ["xdpsock", "-r", "-i", RX, "-c", "-N", "-n", "1"],
        "tcpdump": ["tcpdump", "-Z", "root", "-i", RX, "-n", "-w", "/dev/null"],
    }


def received(name, text):
    """What a receiver says that it received; its own count, since the devices do not know."""
    lines = text.splitlines()
    if name.startswith("linerate"):
        return json.loads(lines[-1])["received_packets"]
    if name == "xdpsock":
        counts = [line.split()[2] for line in lines if line.startswith("rx ")]
        return int(counts[-1].replace(",", "")) if counts else 0
    return next(int(line.split()[0]) for line in lines if "packets captured" in line)


def receive(options, _directory):
    """One sender by AF_XDP on CPU 1, a receiver on CPU 0. With --mode napi the kernel's receiving runs in
    a thread that is put on CPU 0, too."""
    tools = present(receivers())
    rows = {name: [] for name in tools}
    for _ in range(options.rounds):
        for name, command in tools.items():
            network(options.mode)
            receiver = subprocess.Popen(
                ["ip", "netns", "exec", SINK, "taskset", "-c", "0"] + command,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            time.sleep(2)
            for thread in sh("pgrep", "-f", f"napi/{RX}", check=False).split():
                sh("taskset", "-pc", "0", thread)
            names = [(SENDER, TX, "tx_packets"), (SENDER, TX, "tx_dropped")]
            before = [counter(*where) for where in names]
            sh("ip", "netns", "exec", SENDER, LINERATE, "generate", f"xdp:{TX}", "--json", "--cpu", "1",
               "--size", str(options.size), "--duration", f"{options.seconds}s", "--rate",
               options.rate, check=False)
            time.sleep(1.5)
            sent, _refused = [counter(*where) - old for where, old in zip(names, before)]
            receiver.send_signal(2)
            text, _ = receiver.communicate(timeout=60)
            rows[name].append((sent, received(name, text)))
    print(f"receive, {options.size} B at {options.rate}, {options.seconds} s, veth {options.mode}, "
          f"{options.rounds} interleaved rounds")
    for name, values in rows.items():
        rates = [got / options.seconds / 1e6 for _, got in values]
        lost = [100 * (1 - got / max(sent, 1)) for sent, got in values]
        print(f"  {name:<22} received {statistics.median(rates):6.3f} Mpps"
              f" [{min(rates):.3f}-{max(rates):.3f}]  lost {statistics.median(lost):7.3f} %"
              f" [{min(lost):.3f}-{max(lost):.3f}]")


def recorders(directory):
    def out(name):
        return os.path.join(directory, name)
    return {
        "linerate": [LINERATE, "record", f"packet:{RX}", "--to", out("store"), "--json"],
        "tcpdump": ["tcpdump", "-Z", "root", "-i", RX, "-n", "-w", out("t.pcap")],
        "tcpdump -B 256 MiB": ["tcpdump", "-Z", "root", "-i", RX, "-n", "-B", "262144", "-w",
                               out("t.pcap")],
        "dumpcap -B 256 MiB": ["dumpcap", "-q", "-B", "256", "-i", RX, "-w", out("d.pcapng")],
        "netsniff-ng -S 256 MiB": ["netsniff-ng", "--in", RX, "--out", out("n.pcap"), "--silent",
                                   "--no-promisc", "-b", "0", "-S", "256MiB"],
    }


def cpu_seconds(pid):
    """CPU time of the process with all its threads; of the tool itself, not of `ip netns exec`."""
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def kept(directory):
    """Packets in what was written, counted by capinfos."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            if name.endswith((".pcap", ".pcapng")):
                text = sh("capinfos", "-c", "-M", os.path.join(folder, name), check=False)
                total += sum(int(line.split(":")[1]) for line in text.splitlines()
                             if line.startswith("Number of packets"))
    return total


def record(options, directory):
    tools = {name: command for name, command in present(recorders(directory)).items()
             if options.only in name}
    rows = {name: [] for name in tools}
    for _ in range(options.rounds):
        for name, command in tools.items():
            network(options.mode)
            process = subprocess.Popen(["ip", "netns", "exec", SINK, "taskset", "-c", "0"] + command,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(6 if name.startswith("netsniff") else 2)
            before = counter(SENDER, TX, "tx_packets")
            # What a tool spends on coming up (memory that it touches first) is not per packet.
            idle = cpu_seconds(process.pid)
            sender = [LINERATE, "generate", f"packet:{TX}", "--size", str(options.size), "--json",
                      "--duration", f"{options.seconds}s", "--rate", options.rate]
            if options.senders > 1:
                sender += ["--workers", str(options.senders)]
            else:
                sender += ["--cpu", "1"]
            sh("ip", "netns", "exec", SENDER, *sender, check=False)
            time.sleep(1.5)
            used = cpu_seconds(process.pid) - idle
            process.send_signal(2)
            process.wait(timeout=60)
            sent = counter(SENDER, TX, "tx_packets") - before
            got = kept(directory)
            rows[name].append((sent, got, used))
            for folder in os.listdir(directory):
                path = os.path.join(directory, folder)
                shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    print(f"record, {options.size} B at {options.rate}, {options.senders} senders, "
          f"{options.seconds} s, veth {options.mode}, {options.rounds} interleaved rounds")
    for name, values in rows.items():
        lost = [100 * (1 - got / sent) for sent, got, _ in values]
        rate = statistics.median(sent for sent, _, _ in values) / options.seconds / 1e6
        cost = statistics.median(1e9 * used / max(got, 1) for _, got, used in values)
        print(f"  {name:<24} offered {rate:6.3f} Mpps  lost {statistics.median(lost):7.3f} % "
              f"[{min(lost):.3f}-{max(lost):.3f}]  CPU {cost:6.0f} ns a packet kept")


def ledger(options, directory):
    """One recording at full rate: every place of both ledgers beside the counters of the devices."""
    network(options.mode)
    store = os.path.join(directory, "store")
    recorder = subprocess.Popen(
        ["ip", "netns", "exec", SINK, LINERATE, "record", f"packet:{RX}", "--to", store, "--json"],
        stdout=subprocess.PIPE, text=True)
    time.sleep(2)
    names = [(SENDER, TX, "tx_packets"), (SENDER, TX, "tx_dropped"),
             (SINK, RX, "rx_packets"), (SINK, RX, "rx_dropped")]
    before = [counter(*name) for name in names]
    sent = sh("ip", "netns", "exec", SENDER, LINERATE, "generate", f"packet:{TX}", "--json",
              "--size", str(options.size), "--duration", f"{options.seconds}s",
              "--workers", str(options.senders), "--src", "10.0.0.0/16", "--dst", "10.1.0.0/16")
    time.sleep(1.5)
    devices = [counter(*name) - first for name, first in zip(names, before)]
    recorder.send_signal(2)
    taken, _ = recorder.communicate(timeout=60)
    print(f"ledger, {options.size} B, {options.senders} senders, {options.seconds} s")
    for text in (sent, taken):
        result = json.loads(text.splitlines()[-1])
        for account in result["ledger"]["accounts"]:
            for side in ("entered", "left"):
                for name, value in account[side].items():
                    if name.endswith("_packets") and (value or side == "entered"):
                        print(f"  {account['place']:<22} {side:<8} {name:<22} {value:>12,}")
            print(f"  {account['place']:<22} {'':<8} {'unexplained_packets':<22} "
                  f"{account['unexplained_packets']:>12,}")
    for (_, device, what), value in zip(names, devices):
        print(f"  {'device ' + device:<22} {'':<8} {what:<22} {value:>12,}")
    print(f"  {'files, by capinfos':<22} {'':<8} {'packets':<22} {kept(directory):>12,}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["generate", "receive", "record", "ledger"])
    parser.add_argument("--size", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--senders", type=int, default=None,
                        help="threads that send: 1, for ledger 2")
    parser.add_argument("--rate", default="max")
    parser.add_argument("--mode", choices=["plain", "napi", "both"], default="plain")
    parser.add_argument("--only", default="", help="tools whose name contains this")
    parser.add_argument("--to", default=None)
    options = parser.parse_args()
    options.senders = options.senders or (2 if options.what == "ledger" else 1)
    if not os.path.exists(LINERATE):
        sys.exit(f"{LINERATE} is missing; build it with: cargo build --release")
    directory = tempfile.mkdtemp(prefix="linerate-bench-", dir=options.to)
    try:
        what = {"generate": generate, "receive": receive, "record": record, "ledger": ledger}
        what[options.what](options, directory)
    finally:
        remove()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
