//! Programs that the machine can run.

use super::{JA, JMP, LD, LDX, MEM, Program, RET, ST};
use crate::{Filter, Link};

fn program(text: &str) -> Program {
    Filter::new(text, Link::Ethernet).unwrap().program().unwrap()
}

/// All ways lead forward to a return, and no memory is read that may not be set.
fn check(program: &Program) {
    let code = &program.0;
    let mut written: Vec<Option<u32>> = vec![None; code.len()];
    written[0] = Some(0);
    for (place, instruction) in code.iter().enumerate() {
        let Some(mut words) = written[place] else { continue };
        match instruction.code {
            ST => words |= 1 << instruction.k,
            read if read == LD | MEM || read == LDX | MEM => {
                assert!(words & 1 << instruction.k != 0, "({place}) reads M[{}]", instruction.k);
            }
            _ => {}
        }
        let next: Vec<usize> = match instruction.code & 7 {
            RET => continue,
            JMP if instruction.code == JMP | JA => vec![instruction.k as usize],
            JMP => vec![instruction.jt.into(), instruction.jf.into()],
            _ => vec![0],
        };
        for jump in next {
            let target = &mut written[place + 1 + jump];
            *target = Some(target.map_or(words, |before| before & words));
        }
    }
}

#[test]
fn jumps_beyond_255_instructions_take_two_steps() {
    for joint in [" or ", " and "] {
        let not = if joint == " and " { "not " } else { "" };
        let terms: Vec<String> = (1..=300).map(|n| format!("{not}tcp port {}", n * 3)).collect();
        let program = program(&terms.join(joint));
        check(&program);
        assert!(program.0.len() > 600, "{}", program.0.len());
        assert!(program.0.iter().any(|i| i.code == JMP | JA), "{program}");
    }
}

#[test]
fn memory_is_set_before_it_is_read() {
    for text in ["geneve", "geneve or ip", "geneve and tcp", "geneve or vlan and port 80"] {
        check(&program(text));
    }
    check(&program(&["geneve"; 5].join(" and ")));
    check(&program(&format!("{}ip[0]{} > 12", "(ip[0] + ".repeat(10), ")".repeat(10))));
}

#[test]
fn what_is_accepted_keeps_as_much_as_there_may_be() {
    assert_eq!(program("").to_string(), "(000) ret      #262144\n");
    assert!(program("ip").to_string().ends_with("ret      #262144\n(003) ret      #0\n"));
}
