//! Runs workers on threads of their own while this thread shows progress and watches the time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::live::Live;
use engine::stages::Stage;
use engine::{EngineError, Finished, Stop, Worker};
use indicatif::{ProgressBar, ProgressStyle};
use port::{Event, RxQueue, TxQueue};
use serde_json::json;
use store::find::FindReport;
use sys::clock::Clock;

use crate::carrier::Way;
use crate::output::Output;
use crate::units::{counted, grouped, scaled};

/// Between two lines of progress for programs.
const REPORT: Duration = Duration::from_secs(1);

/// Between two looks at flags and threads.
const LOOK: Duration = Duration::from_millis(20);
/// How often workers that are to begin are looked at.
const BEGINNING: Duration = Duration::from_micros(100);

/// What a run's watcher needs to know.
#[derive(Debug, Clone)]
pub struct Watch {
    /// Where to say things.
    pub output: Output,
    /// Name of the verb, for the progress line.
    pub verb: &'static str,
    /// Which way frames go: what a sender has made and no port has taken has not come far.
    pub way: Way,
    /// When to end, counted from the start.
    pub duration: Option<Duration>,
    /// How many frames are meant, for the progress bar.
    pub packets: Option<u64>,
    /// Raised by signals, by `duration`, and by a worker that fails.
    pub stop: Stop,
}

/// When to end sources that are to end by themselves after `duration`, if one does not.
pub fn at_the_latest(duration: Duration) -> Duration {
    duration.saturating_add(Duration::from_secs(1))
}

/// A part of a run that goes on in a thread of its own.
pub struct Task<F> {
    /// Shows it.
    pub live: Arc<Live>,
    /// Does it, until it is done or the stop flag is raised.
    pub work: F,
}

/// Runs all workers to their end and returns them in order. `begun` is called once all of them have begun:
/// whoever reads then that a receiver is there may send, and not a frame is nobody's.
pub fn run<R, S, T>(
    workers: Vec<Worker<R, S, T>>,
    clock: &Clock,
    watch: &Watch,
    begun: impl FnOnce(),
) -> Result<Vec<Finished<R, S, T>>, EngineError>
where
    R: RxQueue,
    S: Stage,
    T: TxQueue,
{
    let task = |worker: Worker<R, S, T>| {
        let (clock, stop) = (clock.clone(), watch.stop.clone());
        let live = Arc::clone(&worker.live);
        let work = move || {
            let finished = worker.run(clock);
            if finished.error.is_some() {
                stop.request();
            }
            finished
        };
        Task { live, work }
    };
    run_tasks(workers.into_iter().map(task).collect(), watch, begun)
}

/// As [`run`], for whatever has to be done.
pub fn run_tasks<F, O>(
    tasks: Vec<Task<F>>,
    watch: &Watch,
    begun: impl FnOnce(),
) -> Result<Vec<O>, EngineError>
where
    F: FnOnce() -> O + Send,
    O: Send,
{
    let lives: Vec<Arc<Live>> = tasks.iter().map(|task| Arc::clone(&task.live)).collect();
    std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(tasks.len());
        for (number, task) in tasks.into_iter().enumerate() {
            let name = format!("{}-{number}", watch.verb);
            let builder = std::thread::Builder::new().name(name.clone());
            let thread = builder.spawn_scoped(scope, task.work).map_err(|source| {
                // Those that have been started are waited for.
                watch.stop.request();
                sys::Error::of_thread(format!("starting the thread {name}"), source)
            })?;
            threads.push((name, thread));
        }
        let is_over = || threads.iter().all(|(_, thread)| thread.is_finished());
        let have_begun = || lives.iter().all(|live| live.started.get() != 0);
        while !have_begun() && !is_over() {
            std::thread::sleep(BEGINNING);
        }
        if have_begun() {
            begun();
        }
        show(&lives, watch, is_over);
        let join = |(name, thread): (String, std::thread::ScopedJoinHandle<'_, _>)| {
            thread.join().map_err(|_| EngineError::Worker { worker: name })
        };
        threads.into_iter().map(join).collect()
    })
}

/// What a run's progress is shown with: a bar on a terminal, objects for programs.
pub struct Progress<'a> {
    watch: &'a Watch,
    bar: ProgressBar,
    start: Instant,
    shown: Instant,
    before: Figures,
}

impl<'a> Progress<'a> {
    /// From now on.
    pub fn new(watch: &'a Watch) -> Self {
        let start = Instant::now();
        Self { watch, bar: bar(watch), start, shown: start, before: Figures::default() }
    }

    /// Shows the figures if a second has gone by since the last time.
    pub fn look(&mut self, figures: impl FnOnce() -> Figures) {
        let since = self.shown.elapsed();
        if since < REPORT {
            return;
        }
        let now = figures();
        now.tell(&self.before, since.as_secs_f64(), self.start.elapsed(), self.watch, &self.bar);
        self.before = now;
        self.shown = Instant::now();
    }
}

impl Drop for Progress<'_> {
    /// What is said next stands where the bar was.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Shows progress until `is_over`, and raises the stop flag when the time has come.
fn show(lives: &[Arc<Live>], watch: &Watch, is_over: impl Fn() -> bool) {
    let mut progress = Progress::new(watch);
    while !is_over() {
        let elapsed = progress.start.elapsed();
        if watch.duration.is_some_and(|duration| elapsed >= duration) {
            watch.stop.request();
        }
        progress.look(|| Figures::of(lives, watch.way));
        let left = watch.duration.map_or(LOOK, |duration| duration.saturating_sub(elapsed));
        std::thread::sleep(LOOK.min(left).max(Duration::from_millis(1)));
    }
}

fn bar(watch: &Watch) -> ProgressBar {
    if watch.output.is_json() {
        return ProgressBar::hidden();
    }
    // indicatif draws on standard error, and only on a terminal.
    let bar = match watch.packets {
        Some(packets) => ProgressBar::new(packets),
        None => ProgressBar::no_length(),
    };
    let template = if watch.packets.is_some() {
        "{prefix} {bar:24} {percent:>3} %  {msg}  {eta} left"
    } else {
        "{prefix} {elapsed}  {msg}"
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_prefix(watch.verb);
    bar
}

/// How far a run has come: sums over all workers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Figures {
    packets: u64,
    bytes: u64,
    dropped: u64,
    /// Of a search, which loses nothing.
    found: Option<u64>,
    stored_bytes: u64,
    buffer_used_milli: u64,
}

impl Figures {
    /// How far a search has come.
    pub fn of_search(report: &FindReport) -> Self {
        Self {
            packets: report.packets_examined,
            bytes: report.bytes_read,
            found: Some(report.packets_found),
            ..Self::default()
        }
    }

    fn of(lives: &[Arc<Live>], way: Way) -> Self {
        let packets = |live: &Live| match way {
            Way::Out => live.transmitted_packets.get(),
            Way::In => live.received_packets.get(),
        };
        let bytes = |live: &Live| match way {
            Way::Out => live.transmitted_bytes.get(),
            Way::In => live.received_bytes.get(),
        };
        lives.iter().fold(Self::default(), |sum, live| Self {
            packets: sum.packets + packets(live),
            bytes: sum.bytes + bytes(live),
            dropped: sum.dropped + live.dropped_packets.get() + live.stage_dropped_packets.get(),
            stored_bytes: sum.stored_bytes + live.stored_bytes.get(),
            buffer_used_milli: sum.buffer_used_milli.max(live.buffer_used_milli.get()),
            ..sum
        })
    }

    fn tell(
        &self,
        before: &Self,
        seconds: f64,
        elapsed: Duration,
        watch: &Watch,
        bar: &ProgressBar,
    ) {
        let pps = (self.packets - before.packets) as f64 / seconds;
        let bps = (self.bytes - before.bytes) as f64 * 8.0 / seconds;
        let mut fields = json!({
            "verb": watch.verb,
            "elapsed_ns": elapsed.as_nanos() as u64,
            "packets": self.packets,
            "bytes": self.bytes,
            "dropped_packets": self.dropped,
            "stored_bytes": self.stored_bytes,
            "buffer_used_milli": self.buffer_used_milli,
            "packets_per_s": pps.round(),
            "bits_per_s": bps.round(),
        });
        if let Some(found) = self.found {
            fields["found_packets"] = found.into();
        }
        watch.output.object("progress", fields);
        let (last, what) = self.found.map_or((self.dropped, "lost"), |found| (found, "found"));
        let mut text = format!(
            "{}pps  {}bit/s  {}  {} {what}",
            scaled(pps),
            scaled(bps),
            counted(self.packets, "packet"),
            grouped(last)
        );
        if self.stored_bytes > 0 {
            let used = self.buffer_used_milli / 10;
            text.push_str(&format!(
                "  {}B on disk  buffer {used} %",
                scaled(self.stored_bytes as f64)
            ));
        }
        if let Some(left) = watch.duration.map(|duration| duration.saturating_sub(elapsed))
            && watch.packets.is_none()
        {
            text.push_str(&format!("  {:.0} s left", left.as_secs_f64()));
        }
        bar.set_message(text);
        bar.set_position(self.packets);
    }
}

/// Says what happened to the ports during a run.
pub fn tell_events(output: &Output, port: &str, events: &[(u64, &'static str, Event)]) {
    for (_, side, event) in events {
        let what = match event {
            Event::Down => "went down; waiting for it to come back",
            Event::Gone => "is gone; waiting for one of that name",
            Event::Up => "is back",
        };
        output.note(&format!("{port} ({side}): the interface {what}"));
    }
}
