//! Nothing remains of a process that was killed.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use sys::bpf::{ProgramInfo, XdpLink, XdpMode};
use testing::Outcome;

use super::support::{DROP, named, plug_cable, returning, with_right};

/// The argument that makes this program hold a program on an interface until it is killed.
pub const HOLD: &str = "--hold-a-program";

pub fn hold() -> ExitCode {
    match XdpLink::attach(&returning("held", DROP), "rx0", XdpMode::Native) {
        Ok(_link) => {
            println!("attached");
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

pub fn nothing_remains_of_a_killed_process() -> Outcome {
    with_right(|| {
        plug_cable();
        let mut child = Command::new(std::env::current_exe()?)
            .arg(HOLD)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let outcome = watch_it_die(&mut child);
        child.kill()?;
        child.wait()?;
        outcome
    })
}

fn watch_it_die(child: &mut Child) -> Outcome {
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no pipe")?).read_line(&mut line)?;
    assert_eq!(line, "attached\n");
    let [attachment] = named("rx0").xdp[..] else { panic!("the child has attached nothing") };
    assert_eq!(ProgramInfo::of_id(attachment.program_id)?.name, "held");
    // What it has cannot be taken.
    let error = XdpLink::attach(&returning("mine", DROP), "rx0", XdpMode::Native).unwrap_err();
    let holder = format!("end process {} (", child.id());
    assert!(error.to_string().contains(&holder), "{error}");

    child.kill()?;
    child.wait()?;
    let deadline = Instant::now() + Duration::from_secs(20);
    while !named("rx0").xdp.is_empty() || ProgramInfo::of_id(attachment.program_id).is_ok() {
        assert!(Instant::now() < deadline, "the killed process left its program");
        std::thread::sleep(Duration::from_millis(1));
    }
    XdpLink::attach(&returning("mine", DROP), "rx0", XdpMode::Native)?;
    Ok(())
}
