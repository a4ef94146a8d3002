//! How long a run waits for somebody else before it begins.

use std::time::{Duration, Instant};

use crate::stop::Stop;

/// Until the run is told to end, and no longer than the time that it was given.
#[derive(Debug)]
pub struct Patience {
    stop: Stop,
    start: Instant,
    duration: Option<Duration>,
}

impl Patience {
    /// From now on.
    pub fn new(stop: &Stop, duration: Option<Duration>) -> Self {
        Self { stop: stop.clone(), start: Instant::now(), duration }
    }

    /// Whether to go on waiting. Tells the run to end when its time is over.
    pub fn lasts(&self) -> bool {
        if self.duration.is_some_and(|duration| self.start.elapsed() >= duration) {
            self.stop.request();
        }
        !self.stop.is_requested()
    }
}
