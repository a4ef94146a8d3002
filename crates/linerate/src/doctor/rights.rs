//! What this process may do.

use serde_json::json;
use sys::namespace::{Rights, check_user_namespace, user_namespaces_refused};

use super::{Area, Finding, Severity};

/// Packet sockets, capabilities, user namespaces. Without a port that was named, a missing right is
/// no problem: files need none.
pub fn look(is_port_named: bool) -> Vec<Finding> {
    let rights = Rights::probe();
    vec![packet_sockets(is_port_named), capabilities(rights), user_namespaces(rights)]
}

fn packet_sockets(is_port_named: bool) -> Finding {
    let why = "frames enter and leave interfaces through packet sockets";
    let opened = sys::packet::check_right();
    let seen = match &opened {
        Ok(()) => "can be opened".to_owned(),
        Err(error) => format!("cannot be opened ({:?})", error.kind()).to_lowercase(),
    };
    let finding = Finding::new(Area::Rights, "packet sockets", seen, why)
        .facts(json!({ "allowed": opened.is_ok() }));
    if opened.is_ok() {
        return finding;
    }
    let severity = if is_port_named { Severity::Problem } else { Severity::Warning };
    finding
        .is(severity, "run as root, or give the program CAP_NET_RAW and CAP_NET_ADMIN once")
        .command(format!("sudo setcap cap_net_raw,cap_net_admin+ep {}", program()))
}

fn program() -> String {
    std::env::current_exe().map_or_else(|_| "linerate".into(), |path| path.display().to_string())
}

fn capabilities(rights: Rights) -> Finding {
    let held = [
        ("CAP_NET_RAW", rights.net_raw),
        ("CAP_NET_ADMIN", rights.net_admin),
        ("CAP_SYS_ADMIN", rights.sys_admin),
        ("CAP_IPC_LOCK", rights.ipc_lock),
    ];
    let names = |wanted: bool| -> Vec<&str> {
        held.iter().filter(|(_, has)| *has == wanted).map(|(name, _)| *name).collect()
    };
    let (has, lacks) = (names(true), names(false));
    let over = if rights.initial { "this machine" } else { "a user namespace" };
    let seen = match (has.as_slice(), lacks.as_slice()) {
        (has, []) => format!("{} over {over}", has.join(", ")),
        ([], lacks) => format!("none; lacks {}", lacks.join(", ")),
        (has, lacks) => format!("{} over {over}; lacks {}", has.join(", "), lacks.join(", ")),
    };
    let why = "CAP_NET_ADMIN changes offloads and NAPI threads, CAP_SYS_ADMIN enters other \
               namespaces, CAP_IPC_LOCK locks memory beyond the limit";
    let finding = Finding::new(Area::Rights, "capabilities", seen, why).facts(json!({
        "net_raw": rights.net_raw,
        "net_admin": rights.net_admin,
        "sys_admin": rights.sys_admin,
        "ipc_lock": rights.ipc_lock,
        "initial_user_namespace": rights.initial,
    }));
    if lacks.is_empty() { finding } else { finding.noted() }
}

fn user_namespaces(rights: Rights) -> Finding {
    let why = "with them `linerate demo` makes its own network without any right";
    let tried = check_user_namespace();
    let reason = match &tried {
        Ok(()) => user_namespaces_refused().filter(|_| !rights.sys_admin),
        Err(error) => Some(user_namespaces_refused().unwrap_or_else(|| error.to_string())),
    };
    let finding = |seen: String| Finding::new(Area::Rights, "user namespaces", seen, why);
    match reason {
        None => finding("allowed".into()).facts(json!({ "allowed": true })),
        // Root makes its networks without them.
        Some(reason) if rights.can_make_networks() => {
            finding(format!("refused: {reason}")).facts(json!({ "allowed": false })).noted()
        }
        Some(reason) => finding(format!("refused: {reason}"))
            .facts(json!({ "allowed": false }))
            .is(Severity::Note, "allow them, or run the demo as root")
            .command("sudo sysctl -w user.max_user_namespaces=15000"),
    }
}
