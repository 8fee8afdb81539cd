//! Accounting for a stream: the charge to its key, and the outcome for its upstream's breaker.

use std::time::Instant;

use gatewright_protocol::conversation::Usage;
use gatewright_protocol::inspect::StreamProgress;

use super::super::attempt_metrics::AttemptMetrics;
use super::Stream;
use crate::routing::UpstreamAttempt;
use crate::usage::{Charge, MediaUnits, SoundLength};

/// The upstream that answers, and the charge for the request.
pub(crate) struct StreamAccount {
    pub(crate) attempt: UpstreamAttempt,
    /// None once it is settled.
    pub(crate) charge: Option<Charge>,
    /// Estimated number of tokens of the request.
    pub(crate) input: u64,
    attempt_metrics: AttemptMetrics,
    /// For a response that the upstream finishes even if nobody reads the stream.
    follow: Option<Follow>,
}

/// Takes over the charge for a response. Gets its document at the start of the stream, which has its id.
pub(crate) type Follow = Box<dyn FnOnce(&str, Charge) + Send>;

impl StreamAccount {
    pub(crate) fn new(
        attempt: UpstreamAttempt,
        charge: Charge,
        input: u64,
        attempt_metrics: AttemptMetrics,
    ) -> Self {
        Self { attempt, charge: Some(charge), input, attempt_metrics, follow: None }
    }

    /// For a response that the upstream generates in the background.
    pub(crate) fn following(self, follow: Option<Follow>) -> Self {
        Self { follow, ..self }
    }
}

impl Stream {
    pub(super) fn note_usage(&mut self) {
        let charge = self.account.as_mut().and_then(|account| account.charge.as_mut());
        let Some(charge) = charge else { return };
        if let Some(usage) = self.events.usage() {
            charge.set_usage(usage);
        }
        if let Some(millis) = self.events.sound_millis() {
            charge.set_media(MediaUnits { sound: SoundLength::Millis(millis), ..MediaUnits::default() });
        }
    }

    /// Records the usage of the answer, once.
    pub(super) fn settle(&mut self, complete: bool) {
        self.note_usage();
        let Some(account) = &mut self.account else { return };
        let Some(mut charge) = account.charge.take() else { return };
        let output = Some(self.events.output());
        charge.estimated(Usage { input: Some(account.input), output, ..Usage::default() });
        if complete {
            charge.complete();
        } else if self.events.progress() == StreamProgress::Underway
            && let Some(started) = self.events.started()
            && let Some(follow) = account.follow.take()
        {
            follow(started.get(), charge);
        } else if self.ends_in_error {
            charge.fail();
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.settle(self.complete);
        let Some(account) = &mut self.account else { return };
        account.attempt_metrics.record_usage(self.events.usage().as_ref());
        if self.failed {
            account.attempt.failed(Instant::now());
            account.attempt_metrics.broke_off();
        }
    }
}
