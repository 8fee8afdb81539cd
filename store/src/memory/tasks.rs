//! Video tasks and their notifications in memory, until the process ends, on a monotonic clock.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gatewright_system::clock::{millis, unix_millis, unix_seconds};

use super::{MemoryStore, done, now};
use crate::traits::{
    DELIVERY_RETENTION, Delivery, DeliveryOutcome, DeliveryStore, DueDelivery, KNOWN_FOR, Lease,
    MAX_DELIVERIES, MAX_LISTED, MAX_TASKS, Notice, Quota, QuotaExceeded, ResumedTask, Status, StoreFuture,
    Task, TaskState, TaskStore,
};

/// Maximum number of ended tasks; the oldest are removed first.
const MAX_ENDED: usize = MAX_TASKS;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Queues(Mutex<QueueState>);

#[derive(Debug, Default)]
struct QueueState {
    tasks: HashMap<String, MemoryTask>,
    deliveries: HashMap<String, MemoryDelivery>,
    /// Number of tasks and notifications created.
    count: u64,
}

/// When something ended.
#[derive(Debug, Clone, Copy)]
struct EndedAt {
    /// By [`now`].
    at: u64,
    /// Seconds since 1970, shown to operators.
    shown: u64,
}

impl EndedAt {
    fn now() -> Self {
        Self { at: now(), shown: unix_seconds() }
    }

    fn is_since(self, time: Duration) -> bool {
        self.at >= now().saturating_sub(millis(time))
    }
}

#[derive(Debug)]
struct MemoryTask {
    number: u64,
    task: Task,
    announced: bool,
    task_payload: Option<String>,
    lease: i64,
    due: u64,
    ended: Option<EndedAt>,
}

#[derive(Debug)]
struct MemoryDelivery {
    number: u64,
    delivery: Delivery,
    lease: i64,
    due: u64,
    ended: Option<EndedAt>,
}

impl MemoryDelivery {
    /// It waits, and is due after this time.
    fn wait(&mut self, time: Duration) {
        self.due = now().saturating_add(millis(time));
        self.ended = None;
        let due = unix_seconds().saturating_add(time.as_secs());
        (self.delivery.status, self.delivery.due, self.delivery.ended) = (Status::Pending, Some(due), None);
    }

    /// It was delivered or given up.
    fn end(&mut self, status: Status) {
        let ended = EndedAt::now();
        self.ended = Some(ended);
        (self.delivery.status, self.delivery.due, self.delivery.ended) = (status, None, Some(ended.shown));
    }
}

impl Queues {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    fn next_number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// The task of a lease that is the latest one, while the task is in progress.
    fn at(&mut self, lease: &Lease) -> Option<&mut MemoryTask> {
        self.tasks.get_mut(&lease.id).filter(|entry| entry.lease == lease.number && entry.ended.is_none())
    }

    fn in_progress(&self) -> impl Iterator<Item = &MemoryTask> {
        self.tasks.values().filter(|entry| entry.ended.is_none())
    }

    fn pending(&self) -> impl Iterator<Item = &MemoryDelivery> {
        self.deliveries.values().filter(|entry| entry.delivery.status == Status::Pending)
    }

    fn full(&self, owner: &str, announced: bool, most: Quota) -> Option<QuotaExceeded> {
        if self.in_progress().filter(|entry| *entry.task.owner == *owner).count() >= most.of_key {
            return Some(QuotaExceeded::OfKey(most.of_key));
        }
        if self.in_progress().count() >= most.of_all {
            return Some(QuotaExceeded::OfAll(most.of_all));
        }
        let own_notices = || {
            let promised = self.in_progress().filter(|entry| entry.announced && *entry.task.owner == *owner);
            promised.count() + self.pending().filter(|entry| entry.delivery.notice.owner == owner).count()
        };
        if announced && own_notices() >= most.notices_of_key {
            return Some(QuotaExceeded::NoticesOfKey(most.notices_of_key));
        }
        let notices = || self.in_progress().filter(|entry| entry.announced).count() + self.pending().count();
        (announced && notices() >= most.notices).then_some(QuotaExceeded::Notices(most.notices))
    }

    /// For all keys, or for one.
    fn forget_oldest_tasks(&mut self, owner: Option<&str>, most: usize) {
        let is_forgettable = |entry: &MemoryTask| {
            entry.ended.is_some() && owner.is_none_or(|owner| *entry.task.owner == *owner)
        };
        let ended = self.tasks.values().filter(|entry| is_forgettable(entry));
        let mut numbers: Vec<u64> = ended.map(|entry| entry.number).collect();
        if let Some(excess) = numbers.len().checked_sub(most).filter(|excess| *excess > 0) {
            let (_, last, _) = numbers.select_nth_unstable(excess - 1);
            let last = *last;
            self.tasks.retain(|_, entry| !is_forgettable(entry) || entry.number > last);
        }
    }

    /// Only those with a status.
    fn forget_oldest_deliveries(&mut self, status: Status) {
        let deliveries = self.deliveries.values().filter(|entry| entry.delivery.status == status);
        let mut numbers: Vec<u64> = deliveries.map(|entry| entry.number).collect();
        if let Some(excess) = numbers.len().checked_sub(MAX_DELIVERIES).filter(|excess| *excess > 0) {
            let (_, last, _) = numbers.select_nth_unstable(excess - 1);
            let last = *last;
            self.deliveries.retain(|_, entry| entry.delivery.status != status || entry.number > last);
        }
    }

    fn add_notice(&mut self, notice: &Notice) {
        let delivery = Delivery {
            notice: notice.clone(),
            status: Status::Pending,
            created: unix_seconds(),
            attempts: 0,
            problem: None,
            due: None,
            ended: None,
        };
        let mut entry =
            MemoryDelivery { number: self.next_number(), delivery, lease: 0, due: 0, ended: None };
        entry.wait(Duration::ZERO);
        self.deliveries.insert(notice.id.clone(), entry);
    }
}

impl TaskStore for MemoryStore {
    fn add_task<'s>(
        &'s self,
        task: &'s Task,
        announced: bool,
        most: Quota,
        lasts: Duration,
    ) -> StoreFuture<'s, Result<Lease, QuotaExceeded>> {
        let mut queues = self.queues.lock();
        if let Some(full) = queues.full(&task.owner, announced, most) {
            return done(Err(full));
        }
        queues.forget_oldest_tasks(Some(&task.owner), most.ended_of_key(MAX_ENDED));
        let (number, task) = (queues.next_number(), task.clone());
        let lease = Lease { id: task.id.clone(), number: 1 };
        let due = now().saturating_add(millis(lasts));
        let new = MemoryTask { number, task, announced, task_payload: None, lease: 1, due, ended: None };
        queues.tasks.insert(lease.id.clone(), new);
        done(Ok(lease))
    }

    fn accept_task<'s>(
        &'s self,
        lease: &'s Lease,
        state: &'s TaskState,
        task_payload: &'s str,
    ) -> StoreFuture<'s, bool> {
        let mut queues = self.queues.lock();
        let is_new = |entry: &&mut MemoryTask| {
            entry
                .task_payload
                .as_deref()
                .is_none_or(|before| before == task_payload && entry.task.state == *state)
        };
        let found = queues.at(lease).filter(is_new);
        done(found.is_some_and(|entry| {
            entry.task.state = state.clone();
            entry.task_payload = Some(task_payload.to_owned());
            true
        }))
    }

    fn drop_task<'s>(&'s self, lease: &'s Lease) -> StoreFuture<'s, ()> {
        let mut queues = self.queues.lock();
        if queues.at(lease).is_some() {
            queues.tasks.remove(&lease.id);
        }
        done(())
    }

    fn task<'s>(&'s self, owner: &'s str, id: &'s str) -> StoreFuture<'s, Option<Task>> {
        let queues = self.queues.lock();
        let found = queues.tasks.get(id).filter(|entry| *entry.task.owner == *owner);
        done(found.map(|entry| entry.task.clone()))
    }

    fn tasks<'s>(&'s self, status: Option<&'s str>) -> StoreFuture<'s, Vec<(Task, Option<u64>)>> {
        let queues = self.queues.lock();
        let is_listed = |entry: &&MemoryTask| {
            let was_submitted = entry.task_payload.is_some() || entry.ended.is_some();
            was_submitted && status.is_none_or(|status| status == entry.task.state.name())
        };
        let mut list: Vec<&MemoryTask> = queues.tasks.values().filter(is_listed).collect();
        list.sort_by_key(|entry| std::cmp::Reverse(entry.number));
        let listed = list.into_iter().take(MAX_LISTED);
        done(listed.map(|entry| (entry.task.clone(), entry.ended.map(|ended| ended.shown))).collect())
    }

    fn advance_task<'s>(&'s self, lease: &'s Lease, state: &'s TaskState) -> StoreFuture<'s, bool> {
        let mut queues = self.queues.lock();
        let is_left = |entry: &&mut MemoryTask| [&TaskState::Pending, state].contains(&&entry.task.state);
        let found = queues.at(lease).filter(is_left);
        done(found.is_some_and(|entry| {
            entry.task.state = state.clone();
            true
        }))
    }

    fn end_task<'s>(
        &'s self,
        lease: &'s Lease,
        state: &'s TaskState,
        notice: Option<&'s Notice>,
    ) -> StoreFuture<'s, bool> {
        let mut queues = self.queues.lock();
        let Some(ending) = queues.at(lease) else { return done(false) };
        ending.task.state = state.clone();
        (ending.task_payload, ending.ended) = (None, Some(EndedAt::now()));
        if let Some(notice) = notice {
            queues.add_notice(notice);
        }
        queues.forget_oldest_tasks(None, MAX_ENDED);
        done(true)
    }

    fn renew_leases<'s>(&'s self, leases: &'s [Lease], last: Duration) -> StoreFuture<'s, Vec<Lease>> {
        let due = now().saturating_add(millis(last));
        let mut queues = self.queues.lock();
        let is_lost = |lease: &&Lease| match queues.at(lease) {
            Some(entry) => {
                entry.due = due;
                false
            }
            None => true,
        };
        done(leases.iter().filter(is_lost).cloned().collect())
    }

    fn resume_tasks(&self, last: Duration, most: usize) -> StoreFuture<'_, Vec<ResumedTask>> {
        let (mut queues, now) = (self.queues.lock(), now());
        let idle = |entry: &&mut MemoryTask| {
            entry.ended.is_none() && entry.task_payload.is_some() && entry.due <= now
        };
        let mut waiting: Vec<&mut MemoryTask> = queues.tasks.values_mut().filter(idle).collect();
        waiting.sort_by_key(|entry| entry.due);
        let resumed = waiting.into_iter().take(most).map(|entry| {
            entry.lease += 1;
            entry.due = now.saturating_add(millis(last));
            let lease = Lease { id: entry.task.id.clone(), number: entry.lease };
            let task_payload = entry.task_payload.clone().unwrap_or_default();
            ResumedTask { task: entry.task.clone(), lease, now: unix_millis(), task_payload }
        });
        done(resumed.collect())
    }

    fn forget_tasks(&self) -> StoreFuture<'_, ()> {
        let (mut queues, now) = (self.queues.lock(), now());
        queues.tasks.retain(|_, entry| match entry.ended {
            Some(ended) => ended.is_since(KNOWN_FOR),
            None => entry.task_payload.is_some() || entry.due > now,
        });
        done(())
    }

    #[cfg(test)]
    fn age_tasks(&self, by: Duration) -> StoreFuture<'_, ()> {
        for entry in self.queues.lock().tasks.values_mut() {
            entry.due = entry.due.saturating_sub(millis(by));
            age(&mut entry.ended, by);
        }
        done(())
    }
}

impl DeliveryStore for MemoryStore {
    fn due_deliveries(&self, last: Duration, most: usize) -> StoreFuture<'_, Vec<DueDelivery>> {
        let (mut queues, now) = (self.queues.lock(), now());
        let is_due =
            |entry: &&mut MemoryDelivery| entry.delivery.status == Status::Pending && entry.due <= now;
        let mut waiting: Vec<&mut MemoryDelivery> = queues.deliveries.values_mut().filter(is_due).collect();
        waiting.sort_by_key(|entry| entry.due);
        let taken = waiting.into_iter().take(most).map(|entry| {
            entry.lease += 1;
            entry.due = now.saturating_add(millis(last));
            let notice = entry.delivery.notice.clone();
            let lease = Lease { id: notice.id.clone(), number: entry.lease };
            DueDelivery { notice, lease, attempts: entry.delivery.attempts }
        });
        done(taken.collect())
    }

    fn next_delivery(&self) -> StoreFuture<'_, Option<Duration>> {
        let next = self.queues.lock().pending().map(|entry| entry.due).min();
        done(next.map(|due| Duration::from_millis(due.saturating_sub(now()))))
    }

    fn attempted<'s>(&'s self, lease: &'s Lease, attempted: &'s DeliveryOutcome) -> StoreFuture<'s, bool> {
        let mut guard = self.queues.lock();
        let found = guard.deliveries.get_mut(&lease.id);
        let is_last = |entry: &&mut MemoryDelivery| {
            entry.lease == lease.number && entry.delivery.status == Status::Pending
        };
        let Some(entry) = found.filter(is_last) else { return done(false) };
        entry.delivery.attempts += 1;
        let (status, problem) = match attempted.clone() {
            DeliveryOutcome::Again { after, problem } => {
                entry.wait(after);
                entry.delivery.problem = Some(problem);
                return done(true);
            }
            DeliveryOutcome::Delivered => (Status::Delivered, None),
            DeliveryOutcome::Dead { problem } => (Status::Dead, Some(problem)),
        };
        entry.end(status);
        entry.delivery.problem = problem;
        guard.forget_oldest_deliveries(status);
        done(true)
    }

    fn deliveries(&self, status: Option<Status>) -> StoreFuture<'_, Vec<Delivery>> {
        let queues = self.queues.lock();
        let is_listed = |entry: &&MemoryDelivery| status.is_none_or(|status| status == entry.delivery.status);
        let mut list: Vec<&MemoryDelivery> = queues.deliveries.values().filter(is_listed).collect();
        list.sort_by_key(|entry| std::cmp::Reverse(entry.number));
        done(list.into_iter().take(MAX_LISTED).map(|entry| entry.delivery.clone()).collect())
    }

    fn redeliver<'s>(&'s self, id: &'s str) -> StoreFuture<'s, bool> {
        let mut queues = self.queues.lock();
        let found = queues.deliveries.get_mut(id);
        done(found.is_some_and(|entry| {
            entry.lease += 1;
            entry.wait(Duration::ZERO);
            entry.delivery.attempts = 0;
            true
        }))
    }

    fn forget_deliveries(&self) -> StoreFuture<'_, ()> {
        let is_kept =
            |entry: &MemoryDelivery| entry.ended.is_none_or(|ended| ended.is_since(DELIVERY_RETENTION));
        self.queues.lock().deliveries.retain(|_, entry| is_kept(entry));
        done(())
    }

    #[cfg(test)]
    fn age_deliveries(&self, by: Duration) -> StoreFuture<'_, ()> {
        for entry in self.queues.lock().deliveries.values_mut() {
            entry.due = entry.due.saturating_sub(millis(by));
            age(&mut entry.ended, by);
        }
        done(())
    }
}

#[cfg(test)]
fn age(ended: &mut Option<EndedAt>, by: Duration) {
    if let Some(ended) = ended {
        ended.at = ended.at.saturating_sub(millis(by));
        ended.shown = ended.shown.saturating_sub(by.as_secs());
    }
}
