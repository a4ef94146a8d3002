//! Every expression means what libpcap says that it means, on every frame of a corpus.
#![allow(clippy::unwrap_used, clippy::panic)]

use filter::{Filter, Link, Packet};
use oracle::Libpcap;
use oracle::frames::{self, corpus};

#[test]
fn explore() {
    let libpcap = Libpcap::load().unwrap();
    println!("{}", libpcap.version());
    let mut expressions = oracle::expressions::hand_picked();
    expressions.extend(oracle::expressions::generated(1, 5_000));
    for (link, number) in [
        (Link::Ethernet, frames::ETHERNET),
        (Link::Raw, frames::RAW),
        (Link::LinuxCooked, frames::LINUX_SLL),
        (Link::LinuxCooked2, frames::LINUX_SLL2),
    ] {
        let frames = corpus(number);
        let (
            mut accepted,
            mut refused,
            mut we_refuse,
            mut we_accept,
            mut differ,
            mut unset,
            mut pairs,
        ) = (0, 0, 0, 0, 0, 0, 0u64);
        let (mut nothing, mut nothing_theirs, mut nothing_ours) = (0, 0, 0);
        let mut optimiser_differs = 0;
        let mut noprog = 0;
        let (mut ours_len, mut theirs_len) = (0usize, 0usize);
        for expression in
            expressions.iter().filter(|e| !e.contains("byte") && !e.contains("protochain"))
        {
            let theirs = libpcap.compile(expression, number, 262_144, false);
            let optimised = libpcap.compile(expression, number, 262_144, true);
            let ours = Filter::new(expression, link);
            let (theirs, ours) = match (theirs, ours) {
                (Err(_), Err(_)) => {
                    refused += 1;
                    continue;
                }
                (Ok(_), Err(error)) if error.message.starts_with("no packet") => {
                    match optimised {
                        Err(e) if e.contains("rejects all") => nothing += 1,
                        other => {
                            nothing_ours += 1;
                            if nothing_ours < 10 {
                                println!("OURS NOTHING {expression}: {:?}", other.err());
                            }
                        }
                    }
                    continue;
                }
                (Ok(_), Err(error)) => {
                    we_refuse += 1;
                    if we_refuse < 30 {
                        println!("WE REFUSE {expression:.100}: {error}");
                    }
                    continue;
                }
                (Err(message), Ok(_)) => {
                    we_accept += 1;
                    if we_accept < 30 {
                        println!("WE ACCEPT {expression:.100}: {message}");
                    }
                    continue;
                }
                (Ok(theirs), Ok(ours)) => (theirs, ours),
            };
            if let Err(message) = &optimised {
                nothing_theirs += 1;
                if nothing_theirs < 20 {
                    println!("THEIRS NOTHING {expression:.200}: {message}");
                }
                continue;
            }
            accepted += 1;
            if oracle::instruction::reads_unset_scratch(&theirs.instructions()) {
                unset += 1;
                continue;
            }
            let optimised = optimised.unwrap();
            let Some(program) = ours.program() else {
                noprog += 1;
                println!("NO PROGRAM {expression}");
                continue;
            };
            ours_len += program.0.len();
            theirs_len += optimised.instructions().len();
            let instructions: Vec<oracle::Instruction> = program
                .0
                .iter()
                .map(|i| oracle::Instruction { code: i.code, jt: i.jt, jf: i.jf, k: i.k })
                .collect();
            let mut bad = 0;
            for frame in &frames {
                pairs += 1;
                let packet =
                    Packet { data: &frame.data, wire_bytes: frame.wire_bytes, ..Packet::default() };
                let expected = theirs.matches(&frame.data, frame.wire_bytes);
                let got = ours.matches(&packet);
                let by_program = libpcap.run(&instructions, &frame.data, frame.wire_bytes);
                let opt = optimised.matches(&frame.data, frame.wire_bytes);
                if opt != expected {
                    optimiser_differs += 1;
                }
                if expected != got || expected != by_program {
                    bad += 1;
                    if bad == 1 && differ < 20 {
                        println!(
                            "DIFFER {expression:.200} on {} ({} bytes): expected {expected} optimised {opt}, evaluator {got}, program {by_program}",
                            frame.kind,
                            frame.data.len()
                        );
                        if false {
                            for i in theirs.instructions() {
                                println!("   {:x?}", i);
                            }
                            println!("{program}");
                            println!("{:02x?}", &frame.data[..frame.data.len().min(80)]);
                        }
                    }
                }
            }
            differ += usize::from(bad > 0);
        }
        println!(
            "{link:?}: accepted {accepted} refused {refused} we_refuse {we_refuse} we_accept {we_accept} nothing {nothing} nothing_theirs {nothing_theirs} nothing_ours {nothing_ours} differ {differ} unset {unset} noprog {noprog} pairs {pairs} optimiser_differs {optimiser_differs} instructions ours {ours_len} theirs {theirs_len}"
        );
    }
}
