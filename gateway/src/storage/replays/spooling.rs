//! Answers in the spool: those that the store did not accept in time, and those that earlier processes left
//! behind.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use gatewright::operations;
use gatewright_store::{AnswerQuota, EntryKind, KeyedRequest, Lease, ReplaySlot};
use gatewright_system::clock::{millis, unix_millis};
use serde::{Deserialize, Serialize};

use super::pending::PendingAnswer;
use super::{LIFETIME, Replays, record};

/// The line of JSON before the answer in an item.
#[derive(Serialize, Deserialize)]
struct ReplayHeader {
    slot: String,
    operation: String,
    owner: String,
    fingerprint: [u8; 32],
    /// Number of the lease.
    number: i64,
    /// Whether the store confirmed the lease.
    has_lease: bool,
    /// Milliseconds since 1970.
    expires: u64,
    answers: usize,
    #[serde(rename = "hundredths")]
    percent: u8,
}

impl Replays {
    /// Spools a waiting answer. False if the spool can't accept it, or if there is none.
    pub(super) async fn spool_one(&self, late: &PendingAnswer) -> bool {
        let Some(spool) = &self.spool else { return false };
        let Some(entry) = spool.keep(EntryKind::Answer, late.written()).await else { return false };
        // Another task was faster.
        if let Err(entry) = late.spooled.set(entry) {
            entry.remove().await;
        }
        true
    }

    /// Spools waiting answers that the spool could not accept before.
    pub(super) async fn spool_others(&self) {
        loop {
            let Some(late) = self.waiting().unspooled() else { return };
            if !self.spool_one(&late).await {
                return;
            }
            let is_gone = !self.waiting().has(&late);
            if is_gone {
                late.forget().await;
            }
        }
    }

    /// Takes over the answers that earlier processes left behind: they are replayed here immediately, and wait for the
    /// store.
    pub(super) fn inherit(self: &Arc<Self>) {
        let Some(spool) = &self.spool else { return };
        for one in spool.inherited(EntryKind::Answer) {
            let Some(late) = PendingAnswer::read(&one.content) else {
                one.leave("it has no answer");
                continue;
            };
            if !self.knows(&late) {
                one.leave("its answer cannot be read");
                continue;
            }
            if let Some(lease) = &late.lease {
                // No other gateway executes the request while the store doesn't have the answer.
                self.held().insert(lease.clone());
            }
            _ = late.spooled.set(one.entry);
            self.keep_later(late);
        }
    }

    /// Whether an answer of an earlier process is now known here, or too old.
    fn knows(&self, late: &PendingAnswer) -> bool {
        let lasts = late.expires.saturating_duration_since(Instant::now());
        let Some(sealer) = self.sealer.as_ref().filter(|_| !lasts.is_zero()) else { return lasts.is_zero() };
        let Ok(record) = sealer.open(&late.keyed.slot, &late.answer, record::MAX_RECORD_BYTES) else {
            return false;
        };
        if let ReplaySlot::First(own) = self.own.reserve(&late.keyed, Duration::MAX) {
            self.own.keep_answer(&own, &record, lasts, late.room);
        }
        true
    }
}

impl PendingAnswer {
    fn written(&self) -> Vec<u8> {
        let lasts = self.expires.saturating_duration_since(Instant::now());
        let head = ReplayHeader {
            slot: self.keyed.slot.clone(),
            operation: self.keyed.operation.to_owned(),
            owner: self.keyed.owner.to_string(),
            fingerprint: self.keyed.fingerprint,
            number: self.number,
            has_lease: self.lease.is_some(),
            expires: unix_millis().saturating_add(millis(lasts)),
            answers: self.room.answers,
            percent: self.room.percent,
        };
        let mut content = serde_json::to_vec(&head).expect("texts and numbers");
        content.push(b'\n');
        content.extend_from_slice(&self.answer);
        content
    }

    /// None: it is not an item. Whatever the clocks show, it lasts no longer than a new one.
    fn read(content: &[u8]) -> Option<Self> {
        let end = memchr::memchr(b'\n', content)?;
        let head: ReplayHeader = serde_json::from_slice(&content[..end]).ok()?;
        let ReplayHeader {
            slot,
            operation,
            owner,
            fingerprint,
            number,
            has_lease,
            expires,
            answers,
            percent,
        } = head;
        let operation = operations::ALL.iter().find(|known| known.id == operation)?.id;
        let lease = has_lease.then(|| Lease { id: slot.clone(), number });
        let lasts = Duration::from_millis(expires.saturating_sub(unix_millis())).min(LIFETIME);
        Some(Self {
            keyed: KeyedRequest { slot, operation, owner: owner.into(), fingerprint },
            number,
            lease,
            answer: content[end + 1..].to_vec(),
            expires: Instant::now() + lasts,
            room: AnswerQuota { answers, percent },
            spooled: OnceLock::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(expires: Instant, lease: Option<Lease>) -> PendingAnswer {
        let keyed = KeyedRequest {
            slot: "5107".to_owned(),
            operation: "create_video",
            owner: "key".into(),
            fingerprint: [7; 32],
        };
        let room = AnswerQuota { answers: 9, percent: 50 };
        PendingAnswer {
            keyed,
            number: -3,
            lease,
            answer: b"an\nanswer".to_vec(),
            expires,
            room,
            spooled: OnceLock::new(),
        }
    }

    #[test]
    fn pending_answer_round_trips_with_its_expiry() {
        let second = Duration::from_secs(1);
        for lease in [None, Some(Lease { id: "5107".to_owned(), number: -3 })] {
            let (now, lasts) = (Instant::now(), LIFETIME / 2);
            let written = late(now + lasts, lease.clone()).written();
            let read = PendingAnswer::read(&written).expect("an answer");
            assert_eq!((&read.keyed.slot[..], read.keyed.operation), ("5107", "create_video"));
            assert_eq!((&*read.keyed.owner, read.keyed.fingerprint), ("key", [7; 32]));
            assert_eq!((read.room.answers, read.room.percent), (9, 50));
            assert_eq!((&read.answer[..], read.number, &read.lease), (&b"an\nanswer"[..], -3, &lease));
            let (least, most) = (now + lasts, Instant::now() + lasts);
            assert!(read.expires + second > least && read.expires < most + second);
        }
        // One that has expired, and one that a wrong clock put into the future.
        let lasts = |expires| {
            let read = PendingAnswer::read(&late(expires, None).written()).expect("an answer");
            read.expires.saturating_duration_since(Instant::now())
        };
        let now = Instant::now();
        assert_eq!(lasts(now), Duration::ZERO);
        assert!(lasts(now + 9 * LIFETIME) <= LIFETIME);
        for broken in [&b""[..], b"{}\n", b"answer"] {
            assert!(PendingAnswer::read(broken).is_none());
        }
    }
}
