#!/usr/bin/env python3
"""The kernel plane on one veth pair: beside its rivals, and at asked rates beside the user plane. Root only.

  planes.py generate [--size 60] [--rounds 5] [--seconds 2] --sink FILE [--path DIR]
  planes.py rates    [--rounds 1] [--seconds 10]

`generate`: the far end drops all frames by the smallest XDP program there is: an object file with a
section xdp_drop (--sink). xdp-trafficgen (xdp-tools) and xdpgen (a program that does nothing but redirect
one frame) are looked for in --path and on PATH; those that are missing are named and left out.

`rates`: frames by the device's own count, over the time asked for, at 1, 10, 100 and 1,000 kpps on both
planes; and the gaps between the frames, as the receiver's histogram has them.
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

from compare import LINERATE, RX, SENDER, SINK, TX, counter, inputs, network, remove, sh

# Every field changes, and each frame is stamped.
CHANGING = ["--src", "10.0.0.0/16", "--dst", "random:10.1.0.0/16", "--sport", "random:1024-65535",
            "--dport", "1000-2000/3", "--src-mac", "02:00:00:00:00:01-02:00:00:00:ff:ff"]
ONE_FRAME = ["--stamp", "none"]


def rivals(options, directory):
    _, pcap = inputs(max(options.size, 60), directory)
    ours = [LINERATE, "generate", f"xdp:{TX}", "--plane", "kernel", "--require", "kernel", "--json",
            "--size", str(options.size), "--duration", f"{options.seconds}s", "--cpu", "1"]
    pin = ["taskset", "-c", "1"]
    until = ["timeout", "-s", "INT", "-k", "2", str(options.seconds)]
    tools = {
        "linerate, one frame": ours + ONE_FRAME,
        "xdpgen (bare redirect)": pin + ["xdpgen", TX, pcap, str(options.seconds)],
        "linerate, all changing, stamped": ours + CHANGING,
        "xdp-trafficgen udp": until + pin + ["xdp-trafficgen", "udp", TX, "-d", "1000"],
    }
    missing = [name for name, command in tools.items()
               if not any(shutil.which(word) for word in command if word in ("xdpgen", "xdp-trafficgen"))
               and LINERATE not in command]
    for name in missing:
        print(f"not installed, left out: {name}", file=sys.stderr)
    return {name: command for name, command in tools.items() if name not in missing}


def sent_mpps(options, command):
    """The rate between two readings well within a run: no start-up, no end."""
    network("plain")
    sh("ip", "-n", SINK, "link", "set", "dev", RX, "xdp", "obj", options.sink, "sec", "xdp_drop")
    process = subprocess.Popen(["ip", "netns", "exec", SENDER] + command,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(options.seconds * 0.4)
    first, first_at = counter(SENDER, TX, "tx_packets"), time.monotonic()
    time.sleep(options.seconds * 0.4)
    second, second_at = counter(SENDER, TX, "tx_packets"), time.monotonic()
    process.wait()
    return (second - first) / (second_at - first_at) / 1e6


def generate(options, directory):
    if not options.sink:
        sys.exit("--sink FILE is missing: an object file with an XDP program in the section xdp_drop")
    tools = rivals(options, directory)
    rates = {name: [] for name in tools}
    for _ in range(options.rounds):
        for name, command in tools.items():
            rates[name].append(sent_mpps(options, command))
    print(f"generate on the kernel plane, {options.size} B, {options.rounds} interleaved rounds")
    for name, values in rates.items():
        ratios = {other: statistics.median(mine / theirs for mine, theirs in zip(values, rates[other]))
                  for other in rates if other != name and not other.startswith("linerate")}
        beside = ", ".join(f"{ratio:.2f} x {other}" for other, ratio in ratios.items())
        print(f"  {name:<32} {statistics.median(values):6.2f} Mpps"
              f" [{min(values):.2f}-{max(values):.2f}]  {beside}")


def rates(options, _directory):
    print(f"asked and sent over {options.seconds} s, by the device's count; gaps by the receiver")
    for plane in ("user", "kernel"):
        for kpps in (1, 10, 100, 1000):
            for _ in range(options.rounds):
                rate(options, plane, kpps)


def rate(options, plane, kpps):
    network("plain")
    receiver = subprocess.Popen(
        ["ip", "netns", "exec", SINK, LINERATE, "receive", f"packet:{RX}", "--json", "--cpu", "0"],
        stdout=subprocess.PIPE, text=True)
    time.sleep(1.5)
    before = counter(SENDER, TX, "tx_packets")
    text = sh("ip", "netns", "exec", SENDER, LINERATE, "generate", f"xdp:{TX}", "--json", "--cpu", "1",
              "--plane", plane, "--rate", f"{kpps}kpps", "--duration", f"{options.seconds}s", check=False)
    sent = counter(SENDER, TX, "tx_packets") - before
    result = json.loads(text.splitlines()[-1])
    time.sleep(0.5)
    receiver.send_signal(2)
    got = json.loads(receiver.communicate(timeout=60)[0].splitlines()[-1])
    asked = kpps * 1000 * options.seconds
    gaps = got.get("inter_arrival_ns") or {}
    shown = "  ".join(f"{name} {gaps[name]}" for name in ("min", "p50", "p90", "p99", "max") if name in gaps)
    print(f"  {result['plane']:<6} {kpps:>5} kpps  asked {asked:>11,}  sent {sent:>11,}"
          f"  ({100 * (sent / asked - 1):+.4f} %)  received {got['received_packets']:>11,}  gaps in ns: {shown}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["generate", "rates"])
    parser.add_argument("--size", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=None)
    parser.add_argument("--seconds", type=int, default=None)
    parser.add_argument("--sink", help="object file with the section xdp_drop")
    parser.add_argument("--path", help="where to look for rivals before PATH")
    options = parser.parse_args()
    is_rates = options.what == "rates"
    options.rounds = options.rounds or (1 if is_rates else 5)
    options.seconds = options.seconds or (10 if is_rates else 2)
    if options.path:
        os.environ["PATH"] = options.path + ":" + os.environ["PATH"]
    if not os.path.exists(LINERATE):
        sys.exit(f"{LINERATE} is missing; build it with: cargo build --release")
    with tempfile.TemporaryDirectory(prefix="linerate-bench-") as directory:
        try:
            {"generate": generate, "rates": rates}[options.what](options, directory)
        finally:
            remove()


if __name__ == "__main__":
    main()
