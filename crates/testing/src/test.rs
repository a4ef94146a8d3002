//! A test by its name, and how it ends.

use std::error::Error;
use std::panic::resume_unwind;
use std::sync::mpsc::Sender;
use std::thread;

use libtest_mimic::{Completion, Failed, Trial};
use sys::namespace::Namespace;

use crate::skip;
use crate::skipped::Skipped;

/// How a test ends: well, or with why not. A panic is a failure too.
pub type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// What a test function may return.
pub trait Ending {
    /// The same as an [`Outcome`].
    ///
    /// # Errors
    /// When the test failed or was skipped.
    fn outcome(self) -> Outcome;
}

impl Ending for () {
    fn outcome(self) -> Outcome {
        Ok(())
    }
}

impl Ending for Outcome {
    fn outcome(self) -> Outcome {
        self
    }
}

/// A name and what to run; made by [`tests!`](crate::tests).
#[derive(Debug, Clone, Copy)]
pub struct Test {
    /// The path of the function.
    pub name: &'static str,
    /// Runs it.
    pub run: fn() -> Outcome,
}

impl Test {
    /// For the harness. If the process is not `able`, the test is skipped for that reason; tells
    /// `skipped` its name and reason if it is.
    pub(crate) fn into_trial(
        self,
        able: Result<(), String>,
        skipped: Sender<(&'static str, String)>,
    ) -> Trial {
        Trial::ignorable_test(self.name, move || {
            let outcome = match able {
                Ok(()) => self.run_apart(),
                Err(reason) => skip(reason),
            };
            match outcome {
                Ok(()) => Ok(Completion::Completed),
                Err(error) if error.is::<Skipped>() => {
                    skipped.send((self.name, error.to_string()))?;
                    Ok(Completion::ignored())
                }
                Err(error) => Err(Failed::from(error)),
            }
        })
    }

    /// In a thread and a network of its own, which go away with it.
    fn run_apart(self) -> Outcome {
        let thread = thread::spawn(move || {
            Namespace::create()?.enter()?;
            (self.run)()
        });
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// An array of [`Test`] from the paths of functions that return `()` or [`Outcome`].
#[macro_export]
macro_rules! tests {
    ($($function:path),* $(,)?) => {
        [$($crate::Test {
            name: stringify!($function),
            run: || $crate::Ending::outcome($function()),
        }),*]
    };
}
