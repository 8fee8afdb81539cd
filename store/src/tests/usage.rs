//! Usage.

use std::sync::Arc;

use super::kinds::Shared;
use crate::DurableStore;
use crate::keys::{Digest, NewKey};
use crate::traits::{Batch, KeyRecord};
use crate::usage::{Day, ResolvedUsageQuery, Rows, Spent, Totals, UsageKey, UsageQuery, UsageRow};

in_every_store! {
    usage_of_all_writers_is_summed_and_grouped_as_requested
    spending_of_a_key_is_summed_by_day_and_month
    sums_are_exact_and_do_not_overflow
    concurrent_writers_of_many_rows_add_up
    repeated_batch_counts_once
    failed_requests_are_reported_without_a_model_or_an_upstream
}

fn day(text: &str) -> Day {
    text.parse().expect("a day")
}

fn place(on: &str, key: &str, model: &str) -> UsageKey {
    UsageKey { day: day(on), key: key.into(), model: model.into(), upstream: "one".into() }
}

fn took(input: u64, output: u64, cost: u64) -> Totals {
    Totals { requests: 1, complete: 1, input, output, cost, ..Totals::default() }
}

fn query_of(key: Option<&str>, by: &str) -> ResolvedUsageQuery {
    let text = |text: &str| Some(text.to_owned());
    let mut query = UsageQuery::default();
    (query.from, query.to, query.by) = (text("2026-07-01"), text("2026-08-01"), text(by));
    query.key = key.map(str::to_owned);
    query.read(day("2026-08-01")).expect("a query")
}

/// Day, key, name and model of a row.
fn labels(row: &UsageRow) -> [Option<&str>; 4] {
    [&row.day, &row.key, &row.name, &row.model].map(|label| label.as_deref())
}

async fn usage_of_all_writers_is_summed_and_grouped_as_requested(store: Shared) {
    let key = NewKey::new("ci").issue(1_790_000_000);
    let id = key.id.clone();
    let record = KeyRecord { key, digest: Digest([1; 32]), old: None };
    store.one.add_key(record).await.expect("a store").expect("added");
    let all = Totals {
        requests: 1,
        complete: 2,
        estimated: 3,
        input: 4,
        cached: 5,
        cache_write: 6,
        output: 7,
        reasoning: 8,
        cost: 9_000_000_000,
        unpriced: 10,
        failed: 11,
        timed: 12,
        first_byte_ms: 13,
        latency_ms: 14,
    };
    let rows = Rows::from([
        (place("2026-07-30", &id, "b"), all),
        (place("2026-07-31", &id, "b"), all),
        (place("2026-07-31", "default", "B"), took(1, 1, 1)),
        // Outside the query.
        (place("2026-06-30", &id, "b"), all),
    ]);
    store.one.add_usage(&Batch::first(), &rows).await.expect("a store");
    store.other.add_usage(&Batch::first(), &rows).await.expect("a store");
    let report = async |query: ResolvedUsageQuery| store.other.usage(&query).await.expect("a store");

    let rows = report(query_of(None, "day,key,model,upstream")).await;
    let (one, other) = (Some("2026-07-30"), Some("2026-07-31"));
    let expected = [
        [one, Some(&*id), Some("ci"), Some("b")],
        [other, Some("default"), None, Some("B")],
        [other, Some(&*id), Some("ci"), Some("b")],
    ];
    assert_eq!(rows.iter().map(labels).collect::<Vec<_>>(), expected);
    let row = &rows[0];
    let counts = [
        row.requests,
        row.complete,
        row.estimated,
        row.input_tokens,
        row.cached_tokens,
        row.cache_write_tokens,
        row.output_tokens,
        row.reasoning_tokens,
        row.unpriced,
        row.failed,
        row.timed,
        row.first_byte_ms,
        row.latency_ms,
    ];
    assert_eq!((counts, row.cost), ([2, 4, 6, 8, 10, 12, 14, 16, 20, 22, 24, 26, 28], 18.0));

    let rows = report(query_of(Some(&id), "model")).await;
    assert_eq!(
        rows.iter().map(|row| (labels(row), row.requests)).collect::<Vec<_>>(),
        [([None, None, None, Some("b")], 4)]
    );
    // Sorted by their bytes, whatever the server's language.
    let rows = report(query_of(None, "model")).await;
    assert_eq!(rows.iter().map(|row| row.model.as_deref()).collect::<Vec<_>>(), [Some("B"), Some("b")]);
}

async fn spending_of_a_key_is_summed_by_day_and_month(store: Shared) {
    let rows = Rows::from([
        (place("2026-07-01", "a", "m"), took(1, 2, 3)),
        (place("2026-07-30", "a", "m"), took(10, 20, 30)),
        (place("2026-07-30", "a", "n"), took(100, 200, 300)),
        (place("2026-07-29", "b", "m"), took(5, 5, 5)),
        // Another month, and a future day.
        (place("2026-06-30", "a", "m"), took(7, 7, 7)),
        (place("2026-07-31", "a", "m"), took(7, 7, 7)),
    ]);
    store.one.add_usage(&Batch::first(), &rows).await.expect("a store");
    let spent = store.other.spent(day("2026-07-30")).await.expect("a store");
    let of = |tokens, cost| Spent { tokens, cost };
    assert_eq!((spent["a"], spent["b"]), ((of(330, 330), of(333, 333)), (of(0, 0), of(10, 5))));
    assert_eq!(spent.len(), 2);
}

async fn sums_are_exact_and_do_not_overflow(store: Shared) {
    // Floating point would lose the last digit.
    let much = (1 << 61) + 1;
    let rows = ["a", "b", "c"].map(|model| (place("2026-07-31", "k", model), took(much, 0, 0)));
    store.one.add_usage(&Batch::first(), &Rows::from(rows)).await.expect("a store");
    let rows = store.other.usage(&query_of(None, "day")).await.expect("a store");
    assert_eq!(rows[0].input_tokens, 3 * much);
    for _ in 0..2 {
        let most = Rows::from([(place("2026-07-31", "k", "d"), took(u64::MAX, u64::MAX, u64::MAX))]);
        store.one.add_usage(&Batch::first(), &most).await.expect("a store");
    }
    let rows = store.other.usage(&query_of(None, "day")).await.expect("a store");
    assert!(rows[0].input_tokens >= i64::MAX.unsigned_abs() && rows[0].requests == 5, "{rows:?}");
    let (today, month) = store.other.spent(day("2026-07-31")).await.expect("a store")["k"];
    assert!(today.tokens >= i64::MAX.unsigned_abs() && today == month, "{today:?}");
}

async fn concurrent_writers_of_many_rows_add_up(store: Shared) {
    // More than one statement's rows.
    const MODELS: u64 = 600;
    const TIMES: u64 = 2;
    let writers: Vec<_> = [&store.one, &store.other, &store.one, &store.other]
        .map(|store| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                let rows = (0..MODELS)
                    .map(|model| (place("2026-07-31", "k", &model.to_string()), took(1, model, 0)));
                let rows: Rows = rows.collect();
                let writer = Batch::first();
                for number in 1..=TIMES {
                    let batch = Batch { number, ..writer.clone() };
                    // A writer that waits too long for the others tries again.
                    while store.add_usage(&batch, &rows).await.is_err() {}
                }
            })
        })
        .into();
    for writer in writers {
        writer.await.expect("no panic");
    }
    let rows = store.one.usage(&query_of(None, "model")).await.expect("a store");
    assert_eq!(rows.len() as u64, MODELS);
    for row in rows {
        let model: u64 = row.model.as_deref().and_then(|model| model.parse().ok()).expect("a number");
        assert_eq!((row.requests, row.output_tokens), (4 * TIMES, 4 * TIMES * model));
    }
}

async fn repeated_batch_counts_once(store: Shared) {
    let first = Batch::first();
    let next = Batch { number: 2, ..first.clone() };
    let add = async |store: &Arc<dyn DurableStore>, batch: &Batch| {
        let rows = Rows::from([(place("2026-07-31", "k", "m"), took(1, 1, 1))]);
        store.add_usage(batch, &rows).await.expect("a store");
    };
    let requests = async || {
        let rows = store.other.usage(&query_of(None, "day")).await.expect("a store");
        rows.first().map_or(0, |row| row.requests)
    };
    // Concurrently, as if the first attempt were still in progress when the second one comes.
    tokio::join!(add(&store.one, &first), add(&store.other, &first), add(&store.one, &first));
    assert_eq!(requests().await, 1);
    add(&store.other, &next).await;
    assert_eq!(requests().await, 2);
    add(&store.other, &next).await;
    add(&store.one, &first).await;
    assert_eq!(requests().await, 2);
    // Batch numbers are per writer.
    add(&store.one, &Batch::first()).await;
    assert_eq!(requests().await, 3);
}

async fn failed_requests_are_reported_without_a_model_or_an_upstream(store: Shared) {
    let nowhere = |model: &str| UsageKey { upstream: "".into(), ..place("2026-07-31", "k", model) };
    let failed = |failed| Totals { failed, ..Totals::default() };
    let answered = Totals { timed: 1, first_byte_ms: 20, latency_ms: 300, ..took(1, 1, 0) };
    let rows = Rows::from([
        (nowhere(""), failed(2)),
        (nowhere("m"), failed(1)),
        (place("2026-07-31", "k", "m"), answered),
    ]);
    store.one.add_usage(&Batch::first(), &rows).await.expect("a store");
    let report = async |by: &str| store.other.usage(&query_of(None, by)).await.expect("a store");
    let counts = |row: &UsageRow| [row.requests, row.failed, row.timed, row.first_byte_ms, row.latency_ms];
    let [of_key] = report("key").await.try_into().expect("one row");
    assert_eq!(counts(&of_key), [1, 3, 1, 20, 300]);
    let rows = report("model").await;
    let by_model: Vec<_> = rows.iter().map(|row| (row.model.as_deref(), counts(row))).collect();
    assert_eq!(by_model, [(Some(""), [0, 2, 0, 0, 0]), (Some("m"), [1, 1, 1, 20, 300])]);
    let rows = report("upstream").await;
    let by_upstream: Vec<_> = rows.iter().map(|row| (row.upstream.as_deref(), row.failed)).collect();
    assert_eq!(by_upstream, [(Some(""), 3), (Some("one"), 0)]);
}
