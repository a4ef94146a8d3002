//! Receiving on the kernel plane, if it is asked for and can be had.

use std::sync::Arc;

use engine::kernel::receive::{Received, Receiving, Wanted};
use engine::live::Live;
use engine::{Account, EngineError, Ledger, Stop};
use filter::Link;
use port::PortKind;
use serde_json::{Value, json};
use sys::clock::Clock;

use super::{Counted, ReceiveArgs};
use crate::carrier::{self, Way};
use crate::exit::{self, Exit, Usage};
use crate::expression::Expression;
use crate::job::{self, Task, Watch};
use crate::output::{self, Output};
use crate::plane::{Choice, Plane};
use crate::signals::Signals;

/// What became of it.
pub enum Outcome {
    /// It ran.
    Done(Exit),
    /// The user plane is to run, for this reason if the kernel plane was asked for.
    Fallback(Option<String>),
}

/// Runs on the kernel plane unless the choice is the user plane or leaves it open and it cannot be.
pub fn run(
    args: &ReceiveArgs,
    choice: Choice,
    stop: &Stop,
    signals: &Signals,
    clock: &Clock,
    output: Output,
) -> anyhow::Result<Outcome> {
    if choice == Choice::User {
        return match args.counted {
            None => Ok(Outcome::Fallback(None)),
            Some(_) => Err(Usage(
                "--counted is about the kernel plane: add --plane kernel, or leave it out".into(),
            )
            .into()),
        };
    }
    let receiving = match unserved(args) {
        Some(reason) if choice == Choice::Kernel => {
            let what =
                format!("--require kernel: {reason}; leave --require out for the user plane");
            return Err(Usage(what).into());
        }
        Some(reason) => return Ok(Outcome::Fallback(Some(reason))),
        None => attach(args, clock, output)?,
    };
    match receiving {
        Ok(receiving) => receive(args, receiving, stop, signals, output).map(Outcome::Done),
        Err(error) if choice == Choice::Kernel => Err(error.into()),
        Err(error) => Ok(Outcome::Fallback(Some(error.to_string()))),
    }
}

/// What of the command line the kernel plane does not serve.
fn unserved(args: &ReceiveArgs) -> Option<String> {
    let no = |what: &str| Some(format!("the kernel plane {what}"));
    let input = &args.input;
    if args.port.interface().is_none() {
        return no("receives from interfaces alone");
    }
    if !args.port.faults.is_none() {
        return no("has no faults to put in front of the meter");
    }
    if args.port.kind == PortKind::Xdp && args.port.queues.is_some() {
        return no("receives from all queues of an interface, not from some");
    }
    if input.snap.is_some() {
        return no("measures whole frames: --snap is not for it");
    }
    if input.ring.is_some() {
        return no("has no ring: --ring is not for it");
    }
    if args.run.cpu.is_some() {
        return no("runs where frames arrive: --cpu is not for it");
    }
    None
}

/// The inner error is the kernel's, the outer one the user's.
fn attach(
    args: &ReceiveArgs,
    clock: &Clock,
    output: Output,
) -> anyhow::Result<Result<Receiving, EngineError>> {
    let interface = args.port.interface().unwrap_or_default();
    let filter = match &args.input.filter {
        None => None,
        Some(text) => {
            let filter = Expression::new(text, output)?.on(Link::Ethernet)?;
            let Some(program) = filter.program() else {
                let source = std::io::Error::other("the filter is too long for a program");
                let error = sys::Error::new("writing the program that receives", source);
                return Ok(Err(error.into()));
            };
            Some(program)
        }
    };
    let wanted = Wanted {
        filter,
        count: args.count,
        passes_counted: args.counted == Some(Counted::Pass),
        promiscuous: !args.input.no_promiscuous,
    };
    Ok(Receiving::attach(interface, &wanted, clock.clone()))
}

fn receive(
    args: &ReceiveArgs,
    mut receiving: Receiving,
    stop: &Stop,
    signals: &Signals,
    output: Output,
) -> anyhow::Result<Exit> {
    let mechanism = receiving.mechanism();
    let watch = Watch {
        output,
        verb: "receive",
        way: Way::In,
        duration: args.run.duration,
        packets: args.count,
        stop: stop.clone(),
    };
    let tell = || {
        let port = args.port.to_string();
        let fields = json!({
            "verb": "receive", "port": port, "plane": Plane::Kernel.to_string(), "mechanism": mechanism,
        });
        output.object("start", fields);
        output.say(&format!("{port}: kernel plane, {mechanism}"));
        carrier::tell(&output, &args.port, Way::In);
    };
    let live = Arc::new(Live::default());
    let work = {
        let (stop, live) = (stop.clone(), Arc::clone(&live));
        move || {
            let outcome = receiving.run(&stop, &live);
            (receiving.finish(), outcome.err())
        }
    };
    let mut ended = job::run_tasks(vec![Task { live, work }], &watch, tell)?;
    let Some((received, error)) = ended.pop() else { return Ok(Exit::Failure) };
    let account = Account::of_receiver(&args.port.to_string(), &received.counters);
    let ledger = Ledger { accounts: vec![account] };
    let told = error.as_ref().map(ToString::to_string);
    let fields = result(args, &received, mechanism, signals.seen(), told, &ledger);
    super::streams(&output, &received.report);
    output.object("result", fields);
    super::say(&output, &received.report, received.elapsed_ns, Plane::Kernel);
    if received.contended_packets > 0 {
        output.note(&format!(
            "{} stamped frames are in no stream's figures: other CPUs held the memory of the streams",
            received.contended_packets
        ));
    }
    output.clock(&received.clock);
    output.ledger(&ledger);
    match error {
        Some(error) => Err(error.into()),
        None => Ok(exit::of_ledger(&ledger)),
    }
}

fn result(
    args: &ReceiveArgs,
    received: &Received,
    mechanism: &str,
    interrupted: bool,
    error: Option<String>,
    ledger: &Ledger,
) -> Value {
    let mut fields = json!({
        "verb": "receive",
        "port": args.port.to_string(),
        "plane": Plane::Kernel.to_string(),
        "plane_reason": null,
        "mechanism": mechanism,
        "elapsed_ns": received.elapsed_ns,
        "cpu_ns": null,
        "interrupted": interrupted,
        "clock": output::clock(&received.clock),
        "error": error,
        "filtered_packets": received.counters.filtered_packets,
        "contended_packets": received.contended_packets,
        "ledger": ledger,
    });
    super::merge(&mut fields, super::measured(&received.report));
    // No checksum was verified.
    super::merge(&mut fields, json!({ "corrupt_packets": null }));
    fields
}
