//! What clients do with keys: they create and revoke them, and use up those with limits.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::future::{join, join_all};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::{Load, node_of, nodes_of, rest};
use crate::history::{Limits, Outcome};

/// The budgets of keys, and the limits of others.
const TOKENS_A_DAY: u64 = 1_500;
/// In units of the currency.
const COST_A_DAY: u64 = 7;
const REQUESTS_A_MINUTE: u64 = 30;
const TOKENS_A_MINUTE: u64 = 500;
const PLACES: u64 = 2;
/// After this many rejections, the next key is created.
const MAX_REFUSED: usize = 40;
/// How long a revoked key is tried.
const TRYING: Duration = Duration::from_secs(5);

/// A kind of key with a limit.
#[derive(Debug, Clone, Copy)]
struct Kind {
    name: &'static str,
    limits: Limits,
    /// How many requests are made at the same time.
    at_once: u64,
}

/// One of each.
fn kinds() -> [Kind; 5] {
    let none = Limits::default();
    let kind = |name, limits, at_once| Kind { name, limits, at_once };
    [
        kind("budget", Limits { tokens_per_day: Some(TOKENS_A_DAY), ..none }, 1),
        kind("money", Limits { cost_per_day: Some(COST_A_DAY), ..none }, 1),
        kind("pace", Limits { requests_per_minute: Some(REQUESTS_A_MINUTE), ..none }, 1),
        kind("tokens", Limits { tokens_per_minute: Some(TOKENS_A_MINUTE), ..none }, 1),
        kind("places", Limits { concurrent_requests: Some(PLACES), ..none }, 2 * PLACES),
    ]
}

/// The name of a key, which no key of the other store has.
fn name(kind: &str, number: u32, is_alone: bool) -> String {
    if is_alone { format!("{kind}-alone-{number}") } else { format!("{kind}-{number}") }
}

impl Load {
    /// Creates keys, uses them, revokes them, and keeps trying them. `is_alone`: at the node that shares nothing.
    pub(super) async fn change_keys(self: Arc<Self>, mut random: StdRng, is_alone: bool) {
        let mut number = 0;
        while !self.stop.load(Ordering::Relaxed) {
            number += 1;
            let name = name("key", number, is_alone);
            let node = node_of(is_alone, &mut random);
            if let Outcome::Done = self.clients.create_key(node, &name, Limits::default()).await {
                for _ in 0..10 {
                    self.clients.chat(node_of(is_alone, &mut random), &name, false).await;
                    rest(&mut random).await;
                }
                let mut revoked = Outcome::Lost { why: String::new() };
                while !matches!(revoked, Outcome::Done) && !self.stop.load(Ordering::Relaxed) {
                    revoked = self.clients.revoke_key(node_of(is_alone, &mut random), &name).await;
                    rest(&mut random).await;
                }
                let started = Instant::now();
                while started.elapsed() < TRYING {
                    // All at once: one of them may hang.
                    let tried = nodes_of(is_alone).map(|node| self.clients.chat(node, &name, false));
                    join_all(tried).await;
                    rest(&mut random).await;
                }
            }
            rest(&mut random).await;
        }
    }

    /// Uses up keys with limits, and keeps trying them to the end: all kinds at once at the nodes that share counters, one after
    /// the other at the standalone node.
    pub(super) async fn use_up(self: Arc<Self>, mut random: StdRng) {
        let mut another = || StdRng::seed_from_u64(random.random());
        let shared = kinds().map(|kind| self.use_limited(vec![kind], another(), false));
        let alone = self.use_limited(kinds().to_vec(), another(), true);
        join(join_all(shared), alone).await;
    }

    /// `kinds`: which keys are created in turn.
    async fn use_limited(&self, kinds: Vec<Kind>, mut random: StdRng, is_alone: bool) {
        let mut made: Option<(Kind, String)> = None;
        let (mut number, mut refused) = (0, 0);
        let mut next = kinds.iter().cycle();
        while !self.end.load(Ordering::Relaxed) {
            if let Some((kind, name)) = &made {
                let chats = (0..kind.at_once).map(|_| {
                    let node = node_of(is_alone, &mut random);
                    // A stream takes longer.
                    self.clients.chat(node, name, kind.at_once > 1)
                });
                let is_refused = |outcome: &&Outcome| matches!(outcome, Outcome::Refused { status: 429, .. });
                refused += join_all(chats).await.iter().filter(is_refused).count();
                if refused >= MAX_REFUSED {
                    (made, refused) = (None, 0);
                }
            } else if let Some(kind) = next.next() {
                number += 1;
                let name = name(kind.name, number, is_alone);
                let node = node_of(is_alone, &mut random);
                if let Outcome::Done = self.clients.create_key(node, &name, kind.limits).await {
                    made = Some((*kind, name));
                }
            }
            rest(&mut random).await;
        }
    }
}
