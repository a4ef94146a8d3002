//! Nothing remains of a process that was killed.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use sys::link::{LinkChange, LinkMonitor, Links};
use sys::namespace::Namespace;
use sys::veth::{VethConfig, VethPair};
use testing::{Outcome, Test, tests};

/// The argument that makes this program hold namespaces until it is killed.
pub const HOLD: &str = "--hold-namespaces";

pub const CASES: &[Test] = &tests![nothing_remains_of_a_killed_process];

/// Makes two namespaces with a pair between them, and another pair that reaches into the
/// namespace where it was started; then waits to be killed.
pub fn hold() -> ExitCode {
    let make = || -> sys::Result<(Namespace, Namespace)> {
        let config = VethConfig::default();
        let (one, two) = (Namespace::create()?, Namespace::create()?);
        VethPair::create(&one, "in0", &two, "in1", &config)?;
        VethPair::create(&Namespace::current()?, "outside", &two, "inside", &config)?;
        Ok((one, two))
    };
    match make() {
        Ok((one, two)) => {
            println!("{} {}", one.inode(), two.inode());
            // The end of standard input also ends it, should the parent die first.
            let _ = std::io::stdin().read_line(&mut String::new());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn nothing_remains_of_a_killed_process() -> Outcome {
    let here = Namespace::current()?;
    let mut links = Links::current()?;
    let before: Vec<String> = links.list()?.into_iter().map(|link| link.name).collect();
    let mut child = Command::new(std::env::current_exe()?)
        .arg(HOLD)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let outcome = watch_it_die(&mut child, &here, &mut links);
    // Whatever happened above, nothing of the child may outlive the case.
    child.kill()?;
    child.wait()?;
    outcome?;
    let after: Vec<String> = links.list()?.into_iter().map(|link| link.name).collect();
    assert_eq!(before, after);
    Ok(())
}

fn watch_it_die(child: &mut Child, here: &Namespace, links: &mut Links) -> Outcome {
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no pipe")?).read_line(&mut line)?;
    let inodes: Vec<u64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let held = held_by(child.id(), &inodes);
    assert_eq!((inodes.len(), held), (2, 2), "the child holds its two namespaces");
    let outside = links.named("outside")?;
    assert!(outside.running && outside.kind.as_deref() == Some("veth"));

    let mut monitor = LinkMonitor::open(here)?;
    child.kill()?;
    child.wait()?;
    // The pair ends with the namespace of its far end: that it goes shows that the namespace went.
    while let Some(event) = monitor.wait_event(Duration::from_secs(20))? {
        if event.change == LinkChange::Gone {
            assert_eq!((event.index, event.name.as_str()), (outside.index, "outside"));
            assert!(links.named("outside").is_err());
            return Ok(());
        }
    }
    Err("the interface of the killed process is still there".into())
}

/// How many of these namespaces the process holds by descriptors.
fn held_by(process: u32, inodes: &[u64]) -> usize {
    let descriptors = std::fs::read_dir(format!("/proc/{process}/fd"));
    let names: Vec<String> = descriptors
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().read_link().ok()?.display().to_string()))
        .collect();
    inodes.iter().filter(|inode| names.contains(&format!("net:[{inode}]"))).count()
}
