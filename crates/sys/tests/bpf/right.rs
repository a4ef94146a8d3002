//! A right that is missing is named.

use std::process::{Command, ExitCode};

use sys::bpf::Support;
use sys::namespace::enter_user_namespace;
use testing::{Outcome, skip};

/// The argument that makes this program try to load a program from a user namespace.
pub const TRY: &str = "--try-in-a-user-namespace";
const NOT_ENTERED: u8 = 9;

pub fn try_without() -> ExitCode {
    if let Err(error) = enter_user_namespace() {
        println!("{error}");
        return ExitCode::from(NOT_ENTERED);
    }
    match Support::probe().loading {
        Ok(()) => println!("loaded"),
        Err(error) => println!("{:?}: {error}", error.kind()),
    }
    ExitCode::SUCCESS
}

pub fn a_user_namespace_does_not_give_the_right() -> Outcome {
    let output = Command::new(std::env::current_exe()?).arg(TRY).output()?;
    let said = String::from_utf8(output.stdout)?;
    if output.status.code() == Some(i32::from(NOT_ENTERED)) {
        return skip(said.trim());
    }
    assert!(output.status.success(), "{said}");
    assert!(said.starts_with("Permission: loading the program trial"), "{said}");
    assert!(said.contains("a user namespace does not give the right: run as root"), "{said}");
    Ok(())
}
