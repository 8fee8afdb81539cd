//! Turns a panic into an error of its call. A panic is a defect of ours. In a binding it would end a shared thread,
//! leave the caller waiting or end the process, so the bindings run all work through this file. Rust callers see the
//! panic itself, as they expect.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt as _;

use crate::wire::error::{Error, ErrorKind};

/// Runs work and turns a panic into an error (Internal). Errors: also those of the work itself.
///
/// ```
/// use gatewright::{ErrorKind, contain};
///
/// assert_eq!(contain(|| Ok(1)).unwrap(), 1);
/// let error = contain::<()>(|| panic!("broken")).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Internal);
/// ```
pub fn contain<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    // Half-finished state is not used again: its owner gives it up with the error.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(internal(&*panic)))
}

/// As [`contain`], for asynchronous work.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use gatewright::{ErrorKind, contained};
///
/// let error = contained::<()>(async { panic!("broken") }).await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Internal);
/// # });
/// ```
pub async fn contained<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| Err(internal(&*panic)))
}

fn internal(panic: &(dyn Any + Send)) -> Error {
    // A message formatted at run time may quote something that must not be disclosed.
    let what = panic.downcast_ref::<&'static str>().map_or_else(String::new, |what| format!(" ({what})"));
    let message = format!(
        "the client itself failed during this call{what}: this is a bug in Gatewright, please report it; standard error has \
            the location"
    );
    Error::new(ErrorKind::Internal, message)
}

/// The places where tests can make the client panic. Not in release builds.
#[cfg(debug_assertions)]
#[doc(hidden)]
pub mod on_purpose {
    use std::sync::atomic::{AtomicU8, Ordering};

    /// A place that can be made to panic.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[repr(u8)]
    pub enum PanicPoint {
        /// No place.
        Nowhere,
        /// While a client is built.
        Build,
        /// At the start of a call.
        Call,
        /// While the bytes of a stream are read.
        Stream,
        /// While a binding calls a callback.
        Callback,
        /// While a binding converts a response.
        Answer,
        /// After a binding has handled a report.
        Report,
        /// While the check kit runs and while its leftovers are written.
        Check,
        /// After a binding has handled a webhook.
        Webhook,
        /// While a binding runs the program.
        Program,
    }

    impl PanicPoint {
        /// The place with this name in lower case; any other name is not a place.
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
                "program" => Self::Program,
                _ => Self::Nowhere,
            }
        }
    }

    static PLACE: AtomicU8 = AtomicU8::new(PanicPoint::Nowhere as u8);

    /// Makes the client panic at this place from now on.
    pub fn panic_at(place: PanicPoint) {
        PLACE.store(place as u8, Ordering::SeqCst);
    }

    /// Panics if the client is to panic at this place.
    pub fn reach(place: PanicPoint) {
        assert!(PLACE.load(Ordering::SeqCst) != place as u8, "on purpose");
    }
}

/// Marks a place where tests may want a panic.
macro_rules! may_panic_on_purpose {
    ($place:ident) => {
        #[cfg(debug_assertions)]
        $crate::wire::panics::on_purpose::reach($crate::wire::panics::on_purpose::PanicPoint::$place);
    };
}
pub(crate) use may_panic_on_purpose;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn panic_becomes_an_error_quoting_only_static_text() {
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
