//! What a search says of its answer: what was found, and what is missing from it.

use engine::Ledger;
use serde_json::json;
use store::StoreError;
use store::find::FindReport;

use super::sink::is_closed;
use crate::output::Output;
use crate::units;

/// How a search ended, beside what it found.
pub(super) struct Ended<'a> {
    pub(super) elapsed_ns: u64,
    pub(super) ledger: Ledger,
    /// A signal came.
    pub(super) interrupted: bool,
    /// Everything was searched.
    pub(super) reached_end: bool,
    /// Put out by `--write`.
    pub(super) written_packets: Option<u64>,
    pub(super) error: Option<&'a StoreError>,
}

/// Prints the result.
pub(super) fn tell(output: &Output, report: &FindReport, run: &Ended<'_>) {
    let error = run.error;
    for problem in report.problems.iter().chain(&report.warnings) {
        output.note(&format!("linerate: {problem}"));
    }
    let missing = &report.completeness;
    let lost = missing.lost_total();
    output.object(
        "result",
        json!({
            "verb": "find",
            "found_packets": report.packets_found,
            "written_packets": run.written_packets,
            "examined_packets": report.packets_examined,
            "read_bytes": report.bytes_read,
            "segments_read": report.segments_read,
            "segments_skipped": report.segments_skipped,
            "chunks_read": report.chunks_read,
            "chunks_skipped": report.chunks_skipped,
            "chunks_damaged": report.chunks_damaged,
            "captures_read": report.captures_read,
            "late_packets": report.late_packets,
            "complete": is_complete(report, run),
            "output_closed": error.is_some_and(is_closed),
            "lost_packets": lost,
            "unreadable_packets": missing.unreadable_packets,
            "undecided_packets": report.packets_undecided,
            "interruptions": missing.interruptions,
            "recordings_going_on": missing.recordings_going_on,
            "problems": report.problems,
            "warnings": report.warnings,
            "interrupted": run.interrupted,
            "elapsed_ns": run.elapsed_ns,
            "cpu_ns": sys::cpu::thread_cpu_ns(),
            "error": error.filter(|error| !is_closed(error)).map(ToString::to_string),
            "ledger": run.ledger,
        }),
    );
    if output.is_json() {
        return;
    }
    output.note(&format!(
        "{} of {} found in {}; {}",
        units::grouped(report.packets_found),
        units::counted(report.packets_examined, "packet"),
        units::ns_in_words(run.elapsed_ns),
        completeness(report, run)
    ));
}

/// Whether nothing is known to be missing from what was searched: `complete` of the JSON, and what
/// the words go by.
fn is_complete(report: &FindReport, run: &Ended<'_>) -> bool {
    report.completeness.is_complete()
        && report.problems.is_empty()
        && report.packets_undecided == 0
        && run.reached_end
}

/// What to say of packets that were cut before the headers that decide, if there are any.
pub fn undecided(report: &FindReport) -> Option<String> {
    (report.packets_undecided > 0).then(|| {
        format!(
            "{} undecided: cut when captured, before the headers that the conditions ask for",
            units::counted(report.packets_undecided, "packet")
        )
    })
}

/// How complete the answer is, for people.
fn completeness(report: &FindReport, run: &Ended<'_>) -> String {
    let mut words = if is_complete(report, run) {
        "nothing is known to be missing".to_string()
    } else {
        format!("the answer is incomplete: {}", missing(report, run).join("; "))
    };
    if report.completeness.recordings_going_on > 0 {
        words += "; the recording goes on: what it has not written yet was not searched";
    }
    words
}

/// Why an answer is not complete, one reason at least.
fn missing(report: &FindReport, run: &Ended<'_>) -> Vec<String> {
    let mut parts = Vec::new();
    if !report.problems.is_empty() {
        parts.push("not everything could be read, see above".into());
    }
    match run.error {
        Some(error) if is_closed(error) => parts.push("the reader of the output closed it".into()),
        Some(_) => parts.push("the search ended with an error".into()),
        None if !run.reached_end => parts.push("a signal ended the search early".into()),
        None => {}
    }
    let missing = &report.completeness;
    let lost = missing.lost_total();
    if lost > 0 || missing.unreadable_packets > 0 {
        parts.push(format!(
            "{} lost while recording, {} unreadable in this window",
            units::counted(lost, "packet"),
            units::grouped(missing.unreadable_packets)
        ));
    }
    parts.extend(undecided(report));
    if missing.interruptions > 0 {
        parts.push(format!(
            "the recording was interrupted ({} in this window): what came then is not known",
            units::grouped(missing.interruptions)
        ));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_say_incomplete_wherever_the_json_does() {
        let told = |change: &dyn Fn(&mut FindReport), reached_end| {
            let mut report = FindReport::default();
            change(&mut report);
            let run = Ended {
                elapsed_ns: 0,
                ledger: Ledger::default(),
                interrupted: false,
                reached_end,
                written_packets: None,
                error: None,
            };
            (is_complete(&report, &run), completeness(&report, &run))
        };
        let span = store::find::LossSpan {
            from_ns: 0,
            to_ns: 1,
            lost_packets: [0; store::ledger::LOSS_SLOTS],
            unreadable_packets: 0,
            interrupted: false,
        };
        let lost = |report: &mut FindReport| {
            report.completeness.spans.push(span);
            report.completeness.lost_packets[1] = 7;
        };
        let killed = |report: &mut FindReport| {
            report.completeness.spans.push(span);
            report.completeness.interruptions = 1;
        };
        let incomplete = |why: &str| (false, format!("the answer is incomplete: {why}"));
        assert_eq!(
            told(&lost, true),
            incomplete("7 packets lost while recording, 0 unreadable in this window")
        );
        assert_eq!(
            told(&killed, true),
            incomplete(
                "the recording was interrupted (1 in this window): what came then is not known"
            )
        );
        assert_eq!(told(&|_| {}, false), incomplete("a signal ended the search early"));
        assert_eq!(told(&|_| {}, true), (true, "nothing is known to be missing".into()));
        let going_on = told(&|report| report.completeness.recordings_going_on = 1, true);
        assert!(going_on.0 && going_on.1.starts_with("nothing is known to be missing; the rec"));
    }
}
