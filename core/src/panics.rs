//! A panic made an error of the call that it happened in. A panic is a defect of ours; in a binding it would end a
//! thread that others share, leave whoever waits for the call waiting, or take the process along. So the bindings run
//! every piece of work in here. Rust callers get the panic itself, as they expect to.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt as _;

use crate::error::{Error, ErrorKind};

/// Runs work, whose panic becomes an error (Internal). Errors: the work's own, too.
pub fn contain<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    // What the work has left half done is not looked at again: its owner gives it up with the error.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(internal(&*panic)))
}

/// As [`contain`], of work that is awaited.
pub async fn contained<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| Err(internal(&*panic)))
}

fn internal(panic: &(dyn Any + Send)) -> Error {
    // A message that was put together at the time may quote what nobody else should read.
    let what = panic.downcast_ref::<&'static str>().map_or_else(String::new, |what| format!(" ({what})"));
    let message = format!(
        "the client itself broke in the middle of this{what}: that is a defect of Gatewright, which its maintainers \
         want to hear of; standard error has the place"
    );
    Error::new(ErrorKind::Internal, message)
}

/// Where tests make the client panic. Not in release builds.
#[cfg(debug_assertions)]
#[doc(hidden)]
pub mod on_purpose {
    use std::sync::atomic::{AtomicU8, Ordering};

    /// A place that can be made to panic.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[repr(u8)]
    pub enum Place {
        /// None of them.
        Nowhere,
        /// The making of a client.
        Build,
        /// The beginning of a call.
        Call,
        /// The reading of a stream's bytes.
        Stream,
        /// What a binding does to call a callback.
        Callback,
        /// What a binding makes of an answer.
        Answer,
        /// What a binding has done with a report.
        Report,
        /// A run of the check kit, and the writing of what it left behind.
        Check,
        /// What a binding has done with a webhook.
        Webhook,
    }

    impl Place {
        /// By its name in lower case; no other name is any place.
        pub fn named(name: &str) -> Self {
            match name {
                "build" => Self::Build,
                "call" => Self::Call,
                "stream" => Self::Stream,
                "callback" => Self::Callback,
                "answer" => Self::Answer,
                "report" => Self::Report,
                "check" => Self::Check,
                "webhook" => Self::Webhook,
                _ => Self::Nowhere,
            }
        }
    }

    static PLACE: AtomicU8 = AtomicU8::new(Place::Nowhere as u8);

    /// Makes the client panic there from now on.
    pub fn panic_at(place: Place) {
        PLACE.store(place as u8, Ordering::SeqCst);
    }

    /// Panics if this is the place.
    pub fn reach(place: Place) {
        assert!(PLACE.load(Ordering::SeqCst) != place as u8, "on purpose");
    }
}

/// A place where tests may want a panic.
macro_rules! may_panic_on_purpose {
    ($place:ident) => {
        #[cfg(debug_assertions)]
        $crate::panics::on_purpose::reach($crate::panics::on_purpose::Place::$place);
    };
}
pub(crate) use may_panic_on_purpose;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_an_error_that_quotes_nothing_but_fixed_words() {
        let quoted = String::from("canary");
        let error = contain::<()>(|| panic!("fixed words")).expect_err("it panicked");
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(error.message().contains("(fixed words)"), "{error}");
        let error = contained::<()>(async { panic!("{quoted}") }).await.expect_err("it panicked");
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(!error.message().contains("canary"), "{error}");
        assert_eq!(contain(|| Ok(1)).expect("no panic"), 1);
    }
}
