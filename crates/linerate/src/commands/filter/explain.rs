//! What an expression comes to on each link: its tests in words, and its programs for the kernel's machines.

use ebpf::part::{self, PartError};
use ebpf::{Code, Verdict};
use filter::{Link, Program};
use serde_json::{Value, json};

use super::filters::Filters;
use crate::output::Output;
use crate::units;

/// For people.
pub(super) fn tell(output: &Output, filters: &Filters<'_>) {
    for (link, filter) in filters.all() {
        let tests = filter.graph().to_string();
        output.say(&format!("on {}:\n{}", link.name(), tests.trim_end()));
        match filter.program() {
            Some(program) => {
                let count = units::counted(program.0.len() as u64, "instruction");
                output.say(&format!("classic BPF, {count}:\n{}", program.to_string().trim_end()));
                match for_xdp(link, &program) {
                    Some(Ok(code)) => {
                        let count = units::counted(code.instructions().len() as u64, "slot");
                        let listing = code.to_string();
                        output.say(&format!("eBPF for XDP, {count}:\n{}", listing.trim_end()));
                    }
                    Some(Err(error)) => output.say(&format!("eBPF for XDP: none: {error}")),
                    None => {}
                }
            }
            None => output.say(NO_PROGRAM),
        }
    }
}

const NO_PROGRAM: &str =
    "classic BPF: none, since the arithmetic needs more than the 16 words of memory that it has";

/// The program that passes the frames that match and drops the others; `None` for links that an
/// interface's XDP does not have.
fn for_xdp(link: Link, program: &Program) -> Option<Result<Code, PartError>> {
    let is_ethernet = link == Link::Ethernet;
    is_ethernet.then(|| part::filter_program(program, Verdict::Pass, Verdict::Drop))
}

/// For programs: `tests` and `ebpf` as people read them, and `program` as the kernel does.
pub(super) fn filters(filters: &Filters<'_>) -> Value {
    let filters = filters.all().map(|(link, filter)| {
        let tests: Vec<String> = filter.graph().to_string().lines().map(Into::into).collect();
        let program = filter.program();
        json!({
            "link": link.name(),
            "tests": tests,
            "program": program.as_ref().map(instructions),
            "ebpf": program.as_ref().and_then(|program| listing(link, program)),
        })
    });
    filters.collect()
}

fn listing(link: Link, program: &Program) -> Option<Vec<String>> {
    let code = for_xdp(link, program)?.ok()?;
    Some(code.to_string().lines().map(Into::into).collect())
}

fn instructions(program: &Program) -> Value {
    let instruction = |i: &filter::Instruction| json!([i.code, i.jt, i.jf, i.k]);
    program.0.iter().map(instruction).collect()
}
