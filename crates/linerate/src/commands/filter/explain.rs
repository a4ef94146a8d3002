//! What an expression comes to on each link: its tests in words, and its program.

use filter::Program;
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
            }
            None => output.say(NO_PROGRAM),
        }
    }
}

const NO_PROGRAM: &str =
    "classic BPF: none, since the arithmetic needs more than the 16 words of memory that it has";

/// For programs: `tests` as people read them, and `program` as the kernel does.
pub(super) fn filters(filters: &Filters<'_>) -> Value {
    let filters = filters.all().map(|(link, filter)| {
        let tests: Vec<String> = filter.graph().to_string().lines().map(Into::into).collect();
        let program = filter.program();
        json!({
            "link": link.name(),
            "tests": tests,
            "program": program.as_ref().map(instructions),
        })
    });
    filters.collect()
}

fn instructions(program: &Program) -> Value {
    let instruction = |i: &filter::Instruction| json!([i.code, i.jt, i.jf, i.k]);
    program.0.iter().map(instruction).collect()
}
