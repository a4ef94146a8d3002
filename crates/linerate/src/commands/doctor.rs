//! `linerate doctor [PORT…]`: looks before a run does.

use std::path::PathBuf;

use clap::Args;
use port::PortSpec;
use serde_json::{Map, Value, json};
use sys::clock::ClockSources;
use sys::cpu::{Ticks, Topology};
use sys::link::Links;
use sys::namespace::Namespace;

use crate::doctor::{self, Area, Finding, Severity};
use crate::exit::{Exit, Usage};
use crate::output::{self, Output};
use crate::run_args;
use crate::units::counted;

/// Options of `doctor`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Nothing is changed: each finding names the command that would change it. The exit code is 0 unless
there is a problem; then it is that of the first one: 3 a right, 4 a port, 5 the directory,
7 a limit of this process.

Examples:
  linerate doctor
  sudo linerate doctor eth0 --to /data/capture
  linerate doctor eth0 --json")]
pub struct DoctorArgs {
    /// Interfaces to look at [default: all of this network namespace but the loopback]
    #[arg(value_name = "PORT", value_parser = run_args::port)]
    pub ports: Vec<PortSpec>,
    /// Look at a directory to record to as well; writes up to 256 MiB there for at most 3 s
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Print JSON, one object a line, the last with "kind":"result" or "error"
    #[arg(long)]
    pub json: bool,
}

/// Runs the verb.
pub fn run(args: &DoctorArgs) -> anyhow::Result<Exit> {
    let output = Output::new(args.json);
    let is_named = !args.ports.is_empty();
    let names = names(args)?;
    let mut report = Report { output, findings: Vec::new() };
    report.add(doctor::rights::look(is_named));
    report.add(doctor::programs::look());
    let topology = Topology::read()?;
    report.add(doctor::cpus::look(&topology));
    let before = Ticks::read();
    let (clock, reading_ns) = doctor::clock::watch()?;
    if let (Ok(before), Ok(now)) = (before, Ticks::read()) {
        report.add([doctor::cpus::stolen(&now.since(&before), &now)]);
    }
    report.add(doctor::clock::look(&ClockSources::read(), clock, reading_ns));
    report.add(doctor::memory::look());
    let namespace = Namespace::current()?;
    let cpus = topology.allowed_cpus().count();
    for name in &names {
        report.add(doctor::port::look(&namespace, name, cpus, is_named)?);
    }
    if let Some(directory) = &args.to {
        report.add(doctor::storage::look(directory));
    }
    output.object(
        "result",
        json!({
            "verb": "doctor",
            "ports": names,
            "to": args.to,
            "findings": report.counts(),
            "clock": output::clock(&clock),
        }),
    );
    report.conclude();
    Ok(report.exit())
}

/// The interfaces to look at. One that does not exist is an error, as for every verb.
fn names(args: &DoctorArgs) -> anyhow::Result<Vec<String>> {
    let mut links = Links::current()?;
    if args.ports.is_empty() {
        let all = links.list()?.into_iter().filter(|link| !link.loopback);
        return Ok(all.map(|link| link.name).collect());
    }
    let mut names = Vec::new();
    for port in &args.ports {
        let Some(name) = port.interface() else {
            let text = format!(
                "{port} is not an interface; the doctor looks at interfaces, and at a directory with --to"
            );
            return Err(Usage(text).into());
        };
        names.push(links.named(name)?.name);
    }
    Ok(names)
}

/// What was found so far; each finding is said as it is made.
struct Report {
    output: Output,
    findings: Vec<Finding>,
}

impl Report {
    fn add(&mut self, findings: impl IntoIterator<Item = Finding>) {
        for finding in findings {
            self.output.object("finding", finding.to_json());
            let last = self.findings.last();
            if last
                .is_none_or(|last| (last.area, &last.subject) != (finding.area, &finding.subject))
            {
                let heading = format!("{} {}", finding.area.name(), finding.subject);
                self.output.say(&self.output.paint("1", heading.trim_end()));
            }
            self.say(&finding);
            self.findings.push(finding);
        }
    }

    /// One line for what is well; for the rest also why it matters and what to do.
    fn say(&self, finding: &Finding) {
        let severity = finding.severity;
        let word = self.output.paint(severity.colour(), &format!("{:<8}", severity.name()));
        self.output.say(&format!("  {word} {:<20} {}", finding.check, finding.seen));
        if severity == Severity::Ok {
            return;
        }
        self.output.say(&format!("           why: {}", finding.why));
        if let Some(remedy) = &finding.remedy {
            self.output.say(&format!("           do:  {remedy}"));
        }
        if let Some(command) = &finding.command {
            self.output.say(&format!("             $ {command}"));
        }
    }

    fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    fn counts(&self) -> Value {
        let counts = Severity::ALL
            .map(|severity| (severity.name().to_owned(), Value::from(self.count(severity))));
        Value::Object(counts.into_iter().collect::<Map<_, _>>())
    }

    fn conclude(&self) {
        let words: Vec<String> = Severity::ALL
            .iter()
            .rev()
            .map(|severity| match (self.count(*severity), severity.name()) {
                (count, name @ "ok") => format!("{count} {name}"),
                (count, name) => counted(count as u64, name),
            })
            .collect();
        self.output.say(&words.join(", "));
    }

    /// The code of the first problem is that of the run which would meet it.
    fn exit(&self) -> Exit {
        let problem = self.findings.iter().find(|it| it.severity == Severity::Problem);
        match problem.map(|problem| (problem.area, problem.exit)) {
            None => Exit::Success,
            Some((_, Some(exit))) => exit,
            Some((Area::Rights, _)) => Exit::Permission,
            Some((Area::Port, _)) => Exit::Port,
            Some((Area::Storage, _)) => Exit::Storage,
            Some((Area::Cpus | Area::Clock | Area::Memory, _)) => Exit::Failure,
        }
    }
}
