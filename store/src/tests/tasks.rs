//! Video tasks and their notifications.

use std::time::Duration;

use gatewright_system::clock::unix_seconds;
use tokio::time::Instant;

use super::kinds::Shared;
use crate::file_name::FileName;
use crate::traits::{DELIVERY_RETENTION, KNOWN_FOR, ResumedTask};
use crate::{
    DeliveryOutcome, DurableStore, FileKind, Lease, Notice, Output, Quota, QuotaExceeded, Status, StoredFile,
    Task, TaskState,
};

in_every_store! {
    task_ends_once_and_only_for_its_lease_holder
    unaccepted_task_is_forgotten
    tasks_and_notifications_in_progress_are_limited
    ended_tasks_of_a_key_are_limited_to_its_share
    notification_is_retried_until_delivered_or_dead
    tasks_and_notifications_are_visible_to_all_processes
    task_is_resumed_by_one_of_several_processes
    accepted_tasks_of_all_keys_are_listed
    late_change_does_not_revert_a_task
}

const MOST: Quota = Quota { of_key: 10, of_all: 10, notices: 10, notices_of_key: 10, ended_percent: 100 };
/// Duration of leases: tests age them instead of letting time pass.
pub(super) const LEASE: Duration = Duration::from_mins(1);
/// Shorter than a lease by more than a test takes.
const SHORTER: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);

fn task(id: &str, owner: &str) -> Task {
    Task {
        id: id.to_owned(),
        owner: owner.into(),
        created: 7,
        model: "mine".into(),
        state: TaskState::Pending,
    }
}

pub(super) fn notice(id: &str) -> Notice {
    let text = str::to_owned;
    Notice { id: text(id), task: text("a"), owner: text("key"), url: text("https://x/y"), body: text("{}") }
}

/// An accepted task, with its lease.
pub(super) async fn accepted(store: &dyn DurableStore, id: &str) -> Lease {
    let lease = store.add_task(&task(id, "key"), true, MOST, LEASE).await.expect("added").expect("a place");
    assert!(store.accept_task(&lease, &TaskState::Processing, "what to do").await.expect("accepted"));
    lease
}

/// Whether a time in seconds since 1970 is the test's, allowing for its clock and the store's.
fn is_now(seconds: u64) -> bool {
    unix_seconds().abs_diff(seconds) < 60
}

async fn state(store: &dyn DurableStore, id: &str) -> Option<TaskState> {
    store.task("key", id).await.expect("an answer").map(|task| task.state)
}

/// Takes the notifications that are due.
async fn due(store: &dyn DurableStore) -> Vec<String> {
    let due = store.due_deliveries(LEASE, 100).await.expect("an answer");
    due.into_iter().map(|due| due.notice.id).collect()
}

async fn resume(store: &dyn DurableStore) -> Vec<ResumedTask> {
    store.resume_tasks(LEASE, 10).await.expect("an answer")
}

/// Lets time pass.
pub(super) async fn age(store: &dyn DurableStore, by: Duration) {
    store.age_tasks(by).await.expect("a store");
    store.age_deliveries(by).await.expect("a store");
}

async fn task_ends_once_and_only_for_its_lease_holder(shared: Shared) {
    let store = shared.one;
    let first = accepted(&*store, "a").await;
    age(&*store, SHORTER).await;
    assert!(resume(&*store).await.is_empty(), "it is leased");
    age(&*store, LEASE).await;
    let resumed = resume(&*store).await.pop().expect("the task");
    assert_eq!((&*resumed.task_payload, &resumed.task.state), ("what to do", &TaskState::Processing));
    let now = store.clock().await.expect("an answer");
    assert!(now.checked_sub(resumed.now).is_some_and(|passed| passed < 60_000), "{resumed:?}");
    assert!(resume(&*store).await.is_empty(), "once");

    // The slow holder can't change anything any more.
    let file = StoredFile { name: FileName::random(FileKind::Mp4), expires: 9 };
    let output = Output { file, duration_s: 3, size: (1, 2) };
    let done = TaskState::Completed(output);
    assert!(!store.advance_task(&first, &TaskState::Pending).await.expect("an answer"));
    assert!(!store.end_task(&first, &TaskState::failed("x"), Some(&notice("m1"))).await.expect("an answer"));
    assert_eq!(store.renew_leases(std::slice::from_ref(&first), LEASE).await.expect("an answer"), [first]);
    assert_eq!(state(&*store, "a").await, Some(TaskState::Processing));
    assert!(due(&*store).await.is_empty());

    let renew = async |last| {
        let lost = store.renew_leases(std::slice::from_ref(&resumed.lease), last).await;
        assert!(lost.expect("an answer").is_empty());
    };
    age(&*store, SHORTER).await;
    renew(LEASE).await;
    age(&*store, SHORTER).await;
    assert!(resume(&*store).await.is_empty(), "it was renewed");
    for (ends, id) in [(true, "m2"), (false, "m3")] {
        let ended = store.end_task(&resumed.lease, &done, Some(&notice(id))).await;
        assert_eq!(ended.expect("an answer"), ends, "{id}");
    }
    assert_eq!(state(&*store, "a").await, Some(done));
    assert_eq!(due(&*store).await, ["m2"]);
    age(&*store, LEASE).await;
    assert!(resume(&*store).await.is_empty(), "it has ended");
    assert!(store.task("other", "a").await.expect("an answer").is_none(), "it belongs to one key");
}

async fn unaccepted_task_is_forgotten(shared: Shared) {
    let store = shared.one;
    let add = |id| {
        let store = std::sync::Arc::clone(&store);
        async move {
            let added = store.add_task(&task(id, "key"), false, MOST, LEASE).await;
            added.expect("an answer").expect("a place")
        }
    };
    let (given_up, left) = (add("a").await, add("b").await);
    store.drop_task(&given_up).await.expect("an answer");
    assert!(state(&*store, "a").await.is_none() && state(&*store, "b").await.is_some());
    // Its process died while submitting it.
    age(&*store, SHORTER).await;
    store.forget_tasks().await.expect("an answer");
    assert!(state(&*store, "b").await.is_some());
    age(&*store, LEASE).await;
    assert!(resume(&*store).await.is_empty());
    store.forget_tasks().await.expect("an answer");
    assert!(state(&*store, "b").await.is_none());
    assert!(!store.accept_task(&left, &TaskState::Pending, "late").await.expect("an answer"));
    // Its acceptance was recorded, but not returned in time.
    let lease = accepted(&*store, "c").await;
    store.drop_task(&lease).await.expect("an answer");
    assert!(state(&*store, "c").await.is_none());
    // An accepted task is not removed.
    let lease = accepted(&*store, "c").await;
    age(&*store, LEASE).await;
    store.forget_tasks().await.expect("an answer");
    assert!(state(&*store, "c").await.is_some());
    // After it has ended, it is kept for a while.
    assert!(store.end_task(&lease, &TaskState::failed("x"), None).await.expect("an answer"));
    age(&*store, KNOWN_FOR.saturating_sub(LEASE)).await;
    store.forget_tasks().await.expect("an answer");
    assert!(state(&*store, "c").await.is_some());
    age(&*store, LEASE + SECOND).await;
    store.forget_tasks().await.expect("an answer");
    assert!(state(&*store, "c").await.is_none());
}

async fn tasks_and_notifications_in_progress_are_limited(shared: Shared) {
    let store = shared.one;
    let most = Quota { of_key: 2, of_all: 3, notices: 2, notices_of_key: 1, ended_percent: 100 };
    let add = |id, owner, announced| {
        let store = std::sync::Arc::clone(&store);
        async move { store.add_task(&task(id, owner), announced, most, LEASE).await.expect("an answer") }
    };
    let one = add("a", "key", true).await.expect("a place");
    assert_eq!(add("b", "key", true).await, Err(QuotaExceeded::NoticesOfKey(1)));
    add("b", "key", false).await.expect("a place");
    assert_eq!(add("c", "key", false).await, Err(QuotaExceeded::OfKey(2)));
    add("c", "other", false).await.expect("a place");
    assert_eq!(add("d", "third", false).await, Err(QuotaExceeded::OfAll(3)));
    // An ended task takes no slot, but its notification does until it is delivered.
    assert!(store.end_task(&one, &TaskState::failed("x"), Some(&notice("m"))).await.expect("an answer"));
    assert_eq!(add("d", "key", true).await, Err(QuotaExceeded::NoticesOfKey(1)));
    add("d", "third", true).await.expect("a place");
    // Each key has its own share, but there is one limit for all.
    let fourth = Quota { of_all: 9, ..most };
    let full = store.add_task(&task("e", "fourth"), true, fourth, LEASE).await.expect("an answer");
    assert_eq!(full, Err(QuotaExceeded::Notices(2)));
}

async fn notification_is_retried_until_delivered_or_dead(shared: Shared) {
    let store = shared.one;
    let lease = accepted(&*store, "a").await;
    assert_eq!(store.next_delivery().await.expect("an answer"), None);
    assert!(store.end_task(&lease, &TaskState::failed("x"), Some(&notice("m"))).await.expect("an answer"));
    let next = async || store.next_delivery().await.expect("an answer").expect("one waits");
    assert_eq!(next().await, Duration::ZERO);

    // The process that tried it has died: it is due again, and a late outcome is ignored.
    let take = async || store.due_deliveries(LEASE, 10).await.expect("an answer").pop();
    let late = take().await.expect("due");
    age(&*store, SHORTER).await;
    assert!(take().await.is_none());
    age(&*store, SHORTER).await;
    let again = take().await.expect("due");
    assert_eq!((again.attempts, &again.notice), (0, &notice("m")));
    assert!(!store.attempted(&late.lease, &DeliveryOutcome::Delivered).await.expect("an answer"));

    let problem = "status 502".to_owned();
    let started = Instant::now();
    let later = DeliveryOutcome::Again { after: 2 * LEASE, problem: problem.clone() };
    assert!(store.attempted(&again.lease, &later).await.expect("an answer"));
    let wait = next().await;
    assert!(wait <= 2 * LEASE && wait + started.elapsed() + SECOND >= 2 * LEASE, "{wait:?}");
    age(&*store, LEASE + SHORTER).await;
    assert!(take().await.is_none());
    age(&*store, SHORTER).await;
    let last = take().await.expect("due");
    assert_eq!(last.attempts, 1);
    let dead = DeliveryOutcome::Dead { problem };
    assert!(store.attempted(&last.lease, &dead).await.expect("an answer"));
    age(&*store, LEASE).await;
    assert!(take().await.is_none() && store.next_delivery().await.expect("an answer").is_none());
    let listed = store.deliveries(Some(Status::Dead)).await.expect("an answer");
    assert_eq!(
        listed.iter().map(|one| (one.attempts, one.problem.as_deref())).collect::<Vec<_>>(),
        [(2, Some("status 502"))]
    );
    assert!(store.deliveries(Some(Status::Delivered)).await.expect("an answer").is_empty());

    // Redelivering it starts over.
    assert!(store.redeliver("m").await.expect("an answer"));
    assert!(!store.redeliver("other").await.expect("an answer"));
    let by_hand = take().await.expect("due");
    assert_eq!((by_hand.attempts, &*by_hand.notice.id), (0, "m"));
    assert!(store.attempted(&by_hand.lease, &DeliveryOutcome::Delivered).await.expect("an answer"));
    let listed = store.deliveries(None).await.expect("an answer").pop().expect("the notification");
    assert_eq!((listed.status, listed.due), (Status::Delivered, None));
    assert!(is_now(listed.ended.expect("its end")) && is_now(listed.created), "{listed:?}");
    age(&*store, DELIVERY_RETENTION.saturating_sub(LEASE)).await;
    store.forget_deliveries().await.expect("an answer");
    assert_eq!(store.deliveries(None).await.expect("an answer").len(), 1);
    age(&*store, LEASE + SECOND).await;
    store.forget_deliveries().await.expect("an answer");
    assert!(store.deliveries(None).await.expect("an answer").is_empty());
}

async fn ended_tasks_of_a_key_are_limited_to_its_share(shared: Shared) {
    let store = shared.one;
    // A hundredth of the limit is one, and that is the task being added.
    let most = Quota { ended_percent: 0, ..MOST };
    for (id, owner) in [("a", "key"), ("b", "other"), ("c", "key")] {
        let added = store.add_task(&task(id, owner), false, most, LEASE).await;
        let lease = added.expect("an answer").expect("a place");
        assert!(store.end_task(&lease, &TaskState::failed("x"), None).await.expect("an answer"));
        age(&*store, SECOND).await;
    }
    assert!(state(&*store, "a").await.is_none() && state(&*store, "c").await.is_some());
    assert!(store.task("other", "b").await.expect("an answer").is_some());
}

async fn tasks_and_notifications_are_visible_to_all_processes(shared: Shared) {
    let Shared { one, other, .. } = &shared;
    let lease = accepted(&**one, "a").await;
    let ended = accepted(&**one, "b").await;
    assert!(one.end_task(&ended, &TaskState::failed("why"), Some(&notice("m"))).await.expect("ended"));
    assert_eq!(state(&**other, "a").await, Some(TaskState::Processing));
    assert_eq!(state(&**other, "b").await, Some(TaskState::failed("why")));
    assert_eq!(due(&**other).await, ["m"]);
    age(&**one, LEASE).await;
    let resumed = resume(&**other).await.pop().expect("the task");
    assert_eq!((&*resumed.task.id, resumed.lease.number), ("a", lease.number + 1));
}

async fn task_is_resumed_by_one_of_several_processes(shared: Shared) {
    let ids: Vec<String> = (0..10).map(|number| format!("task_{number}")).collect();
    for id in &ids {
        let lease = accepted(&*shared.one, id).await;
        assert_eq!(lease.number, 1);
    }
    age(&*shared.one, LEASE).await;
    let take = |store: &std::sync::Arc<dyn DurableStore>| {
        let store = std::sync::Arc::clone(store);
        async move {
            let mut taken = Vec::new();
            loop {
                let resumed = store.resume_tasks(LEASE, 1).await.expect("an answer");
                if resumed.is_empty() {
                    return taken;
                }
                taken.extend(resumed.into_iter().map(|resumed| resumed.task.id));
            }
        }
    };
    let (mut taken, others) = tokio::join!(take(&shared.one), take(&shared.other));
    taken.extend(others);
    taken.sort();
    assert_eq!(taken, ids);
}

async fn accepted_tasks_of_all_keys_are_listed(shared: Shared) {
    let store = shared.one;
    let add = |id, owner, created| {
        let store = std::sync::Arc::clone(&store);
        async move {
            let task = Task { created, ..task(id, owner) };
            store.add_task(&task, false, MOST, LEASE).await.expect("added").expect("a place")
        }
    };
    let listed = |status| {
        let store = std::sync::Arc::clone(&store);
        async move {
            let listed = store.tasks(status).await.expect("an answer").into_iter();
            let row = |(task, ended): (Task, _)| (task.id, task.owner.to_string(), task.state.name(), ended);
            listed.map(row).collect::<Vec<_>>()
        }
    };
    let row = |id: &str, owner: &str, status, ended| (id.to_owned(), owner.to_owned(), status, ended);
    let (first, second) = (add("z", "key", 7).await, add("a", "other", 8).await);
    assert!(listed(None).await.is_empty(), "they are being submitted");
    assert!(store.accept_task(&first, &TaskState::Processing, "what to do").await.expect("accepted"));
    assert!(store.accept_task(&second, &TaskState::Pending, "what to do").await.expect("accepted"));
    add("m", "key", 9).await;
    let both = [row("a", "other", "pending", None), row("z", "key", "processing", None)];
    assert_eq!(listed(None).await, both, "newest first");

    assert!(store.end_task(&first, &TaskState::failed("x"), None).await.expect("an answer"));
    let ended = listed(Some("failed")).await.pop().and_then(|row| row.3);
    assert!(is_now(ended.expect("its end")), "{ended:?}");
    let failed = row("z", "key", "failed", ended);
    assert_eq!(listed(None).await, [row("a", "other", "pending", None), failed.clone()]);
    assert_eq!(listed(Some("failed")).await, [failed]);
    assert_eq!(listed(Some("pending")).await, [row("a", "other", "pending", None)]);
    assert!(listed(Some("processing")).await.is_empty());
    let problem = |state: TaskState| {
        if let TaskState::Failed(problem) = state { problem.message } else { state.name().to_owned() }
    };
    let failed = store.tasks(Some("failed")).await.expect("an answer").pop().expect("the task");
    assert_eq!((failed.0.created, &*failed.0.model, &*problem(failed.0.state)), (7, "mine", "x"));
}

async fn late_change_does_not_revert_a_task(shared: Shared) {
    let store = shared.one;
    let lease = store.add_task(&task("a", "key"), false, MOST, LEASE).await.expect("added").expect("a place");
    let accept = async |state| store.accept_task(&lease, &state, "what to do").await.expect("an answer");
    let advance = async |state| store.advance_task(&lease, &state).await.expect("an answer");
    assert!(accept(TaskState::Pending).await);
    assert!(accept(TaskState::Pending).await, "repeating the acceptance succeeds");
    assert!(advance(TaskState::Pending).await && advance(TaskState::Processing).await);
    assert!(advance(TaskState::Processing).await, "it is repeated");
    // An outdated change.
    assert!(!advance(TaskState::Pending).await);
    assert!(!accept(TaskState::Pending).await);
    assert!(!store.accept_task(&lease, &TaskState::Processing, "something else").await.expect("an answer"));
    assert_eq!(state(&*store, "a").await, Some(TaskState::Processing));
    age(&*store, LEASE).await;
    assert_eq!(resume(&*store).await.pop().expect("the task").task_payload, "what to do");
}
