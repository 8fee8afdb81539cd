//! What a stream amounts to for those who count: the key that asked for it, and the breaker of its upstream.

use std::time::Instant;

use super::Stream;
use crate::conversation::Usage;
use crate::routing::Claim;
use crate::usage::Charge;

/// Who answers, and what it takes.
pub(crate) struct Account {
    pub(crate) claim: Claim,
    pub(crate) charge: Charge,
    /// Estimated number of tokens of the request.
    pub(crate) input: u64,
}

impl Stream {
    pub(super) fn note_usage(&mut self) {
        if let (Some(account), Some(usage)) = (&mut self.account, self.events.usage()) {
            account.charge.told(usage);
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.note_usage();
        if let Some(account) = &mut self.account {
            if self.failed {
                account.claim.failed(Instant::now());
            }
            // An event is about a token.
            let output = Some(self.events.pieces());
            account.charge.estimated(Usage { input: Some(account.input), output, ..Usage::default() });
            if self.complete {
                account.charge.complete();
            }
        }
    }
}
