//! User namespaces: how an ordinary user becomes root over networks of its own
//! (user_namespaces(7)).

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::UnshareFlags;

use super::quieten;
use crate::{Error, Kind, Result};

const ACTION: &str = "entering a user namespace";
/// Ubuntu's switch since 23.10: such namespaces come without rights unless a profile grants them.
const APPARMOR: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
/// Debian's older switch.
const CLONE: &str = "/proc/sys/kernel/unprivileged_userns_clone";
const MAXIMUM: &str = "/proc/sys/user/max_user_namespaces";

/// Makes the caller root over a new user namespace and a new network namespace, and enters both.
///
/// The process must still have one thread only. Outside, it remains the ordinary user that it
/// was: files that it makes belong to that user, and interfaces of the machine are out of reach.
/// From then on the process may be looked into by others of that user, whatever program it runs.
/// The network namespace is prepared like those of [`super::Namespace::create`].
///
/// # Errors
/// [`Kind::Permission`] where the machine forbids user namespaces, [`Kind::Limit`] where their
/// number is limited, `EINVAL` when the process has several threads; each with what helps.
pub fn enter_user_namespace() -> Result<()> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    // SAFETY: only CLONE_FILES makes unshare(2) unsound for others, and the kernel refuses
    // CLONE_NEWUSER to a process with several threads.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNET) }
        .map_err(refused)?;
    // The files below belong to root where exec(2) made the process one that leaves no dump: from a
    // program with file capabilities, or one that its user may not read. Rights over the machine,
    // which that protects from others of the same user, are gone by now.
    set_dumpable_behavior(DumpableBehavior::Dumpable).map_err(|source| {
        Error::new(format!("{ACTION}: making its files in /proc one's own"), source)
    })?;
    // A group map of one's own is accepted only once setgroups(2) is given up.
    for (file, content) in [
        ("setgroups", "deny".to_string()),
        ("uid_map", format!("0 {} 1", user.as_raw())),
        ("gid_map", format!("0 {} 1", group.as_raw())),
    ] {
        let path = format!("/proc/self/{file}");
        fs::write(&path, content)
            .map_err(|source| explained(Error::new(format!("{ACTION}: writing {path}"), source)))?;
    }
    quieten().map_err(explained)
}

/// Why an ordinary user cannot enter a user namespace here, as far as system settings tell;
/// `None` when none of them forbids it. Only the attempt shows for certain.
pub fn user_namespaces_refused() -> Option<String> {
    refusal(&|path| fs::read_to_string(path).ok())
}

/// Tries whether a process of this user may enter a user namespace with a network of its own, in a
/// child that does nothing else. Rights inside of it may be taken away all the same:
/// [`user_namespaces_refused`] knows of that.
///
/// # Errors
/// As [`enter_user_namespace`].
pub fn check_user_namespace() -> Result<()> {
    // What the child reports when it was let in; it never becomes the program that is named here.
    const ENTERED: i32 = libc::ECANCELED;
    let mut child = Command::new("/proc/self/exe");
    // SAFETY: between fork(2) and its end the child makes one system call and returns a number: it
    // takes no lock and no memory, and what it unshares is its own.
    unsafe {
        child.pre_exec(|| {
            rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNET)?;
            Err(io::Error::from_raw_os_error(ENTERED))
        });
    }
    match child.spawn() {
        Err(error) if error.raw_os_error() == Some(ENTERED) => Ok(()),
        Err(error) => Err(explained(Error::of_thread(ACTION, error))),
        Ok(mut child) => {
            // Not reached: the step before always fails. A child is not left behind.
            let _ = child.wait();
            Ok(())
        }
    }
}

fn refusal(read: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let holds = |path, value: &str| read(path).is_some_and(|text| text.trim() == value);
    if holds(MAXIMUM, "0") {
        return Some(
            "user namespaces are switched off: sysctl user.max_user_namespaces is 0".into(),
        );
    }
    if holds(CLONE, "0") {
        return Some(
            "user namespaces are kept for root: sysctl kernel.unprivileged_userns_clone is 0"
                .into(),
        );
    }
    holds(APPARMOR, "1").then(|| {
        "AppArmor takes their rights away: sysctl kernel.apparmor_restrict_unprivileged_userns \
         is 1"
            .into()
    })
}

fn refused(source: Errno) -> Error {
    let error = Error::new(ACTION, source);
    match source {
        Errno::INVAL => error.remedy("enter it before the first thread is started"),
        Errno::NOSPC | Errno::USERS => error
            .remedy("raise the limits: sysctl user.max_user_namespaces, user.max_net_namespaces")
            .with_kind(Kind::Limit),
        _ => explained(error),
    }
}

/// Adds the system setting that is the likely reason, and root as the way out.
fn explained(error: Error) -> Error {
    let denied = matches!(
        error.errno().map(io::Error::from_raw_os_error).map(|error| error.kind()),
        Some(io::ErrorKind::PermissionDenied)
    );
    match (denied, user_namespaces_refused()) {
        (true, Some(reason)) => error.remedy(format!("{reason}; change it or run as root")),
        (true, None) => error.remedy("run as root, or outside of the sandbox that forbids it"),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(path: &'static str, value: &'static str) -> Option<String> {
        refusal(&move |asked| (asked == path).then(|| value.to_string()))
    }

    #[test]
    fn settings_that_forbid_are_named() {
        assert_eq!(with(MAXIMUM, "96364\n"), None);
        assert!(with(MAXIMUM, "0\n").unwrap().contains("user.max_user_namespaces"));
        assert!(with(CLONE, "0\n").unwrap().contains("unprivileged_userns_clone"));
        assert!(with(APPARMOR, "1\n").unwrap().contains("apparmor_restrict_unprivileged_userns"));
        assert_eq!(with(APPARMOR, "0\n"), None);
    }

    #[test]
    fn a_trial_leaves_this_process_where_it_is() {
        let own = || fs::read_link("/proc/self/ns/user").unwrap();
        let before = own();
        // Whether it is allowed depends on the machine.
        let _ = check_user_namespace();
        assert_eq!(own(), before);
    }

    #[test]
    fn a_process_with_threads_is_told_when_to_enter() {
        let (end, wait) = std::sync::mpsc::channel::<()>();
        let second = std::thread::spawn(move || wait.recv());
        let error = enter_user_namespace().unwrap_err();
        drop(end);
        let _ = second.join();
        // A sandbox may forbid it before the kernel counts threads.
        if error.errno() == Some(libc::EINVAL) {
            assert!(error.to_string().ends_with("enter it before the first thread is started"));
        }
    }
}
