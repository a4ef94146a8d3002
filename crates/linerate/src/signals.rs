//! SIGINT and SIGTERM: the first ends the run in order, a second one ends the program at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use engine::Stop;
use signal_hook::consts::{SIGINT, SIGTERM};

/// Exit code of a program that was told twice.
const AT_ONCE: i32 = 130;

/// Whether a signal was the cause that a run ended.
#[derive(Debug, Clone)]
pub struct Signals {
    seen: Arc<AtomicBool>,
}

impl Signals {
    /// From now on a signal raises `stop`, a second one ends the program.
    pub fn install(stop: &Stop) -> anyhow::Result<Self> {
        let seen = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds `seen` down and only raises it.
            signal_hook::flag::register_conditional_shutdown(signal, AT_ONCE, Arc::clone(&seen))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&seen)))
                .and_then(|_| signal_hook::flag::register(signal, stop.flag()))
                .context("installing the handler of SIGINT and SIGTERM")?;
        }
        Ok(Self { seen })
    }

    /// Whether a signal came.
    pub fn seen(&self) -> bool {
        self.seen.load(std::sync::atomic::Ordering::Relaxed)
    }
}
