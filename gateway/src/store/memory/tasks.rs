//! Video tasks and their notifications in memory, until the process ends.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{MemoryStore, done};
use crate::store::durable::{
    Attempted, Delivery, DeliveryStore, Due, Full, LONGEST_LIST, Lease, MOST_TASKS, MOST_TOLD, Most, Notice,
    Resumed, State, Status, Stored, Task, TaskStore,
};

/// Maximum number of tasks that have ended; the oldest are removed first.
const MOST_ENDED: usize = MOST_TASKS;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Queues(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    tasks: HashMap<String, KeptTask>,
    deliveries: HashMap<String, KeptDelivery>,
    /// How many tasks and notifications there have been.
    count: u64,
}

#[derive(Debug)]
struct KeptTask {
    number: u64,
    task: Task,
    announced: bool,
    errand: Option<String>,
    lease: i64,
    due: u64,
    /// In milliseconds since 1970.
    ended: Option<u64>,
}

#[derive(Debug)]
struct KeptDelivery {
    number: u64,
    delivery: Delivery,
    lease: i64,
    due: u64,
}

impl Queues {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn next_number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// The task of a lease that is the last one, while it goes on.
    fn at(&mut self, lease: &Lease) -> Option<&mut KeptTask> {
        self.tasks.get_mut(&lease.id).filter(|kept| kept.lease == lease.number && kept.ended.is_none())
    }

    fn in_progress(&self) -> impl Iterator<Item = &KeptTask> {
        self.tasks.values().filter(|kept| kept.ended.is_none())
    }

    fn pending(&self) -> impl Iterator<Item = &KeptDelivery> {
        self.deliveries.values().filter(|kept| kept.delivery.status == Status::Pending)
    }

    fn full(&self, owner: &str, announced: bool, most: Most) -> Option<Full> {
        if self.in_progress().filter(|kept| *kept.task.owner == *owner).count() >= most.of_key {
            return Some(Full::OfKey(most.of_key));
        }
        if self.in_progress().count() >= most.of_all {
            return Some(Full::OfAll(most.of_all));
        }
        let own_notices = || {
            let promised = self.in_progress().filter(|kept| kept.announced && *kept.task.owner == *owner);
            promised.count() + self.pending().filter(|kept| kept.delivery.notice.owner == owner).count()
        };
        if announced && own_notices() >= most.notices_of_key {
            return Some(Full::NoticesOfKey(most.notices_of_key));
        }
        let notices = || self.in_progress().filter(|kept| kept.announced).count() + self.pending().count();
        (announced && notices() >= most.notices).then_some(Full::Notices(most.notices))
    }

    /// Of all keys, or of one.
    fn forget_oldest_tasks(&mut self, owner: Option<&str>, most: usize) {
        let is_meant =
            |kept: &KeptTask| kept.ended.is_some() && owner.is_none_or(|owner| *kept.task.owner == *owner);
        let ended = self.tasks.values().filter(|kept| is_meant(kept));
        let mut numbers: Vec<u64> = ended.map(|kept| kept.number).collect();
        if let Some(excess) = numbers.len().checked_sub(most).filter(|excess| *excess > 0) {
            let (_, last, _) = numbers.select_nth_unstable(excess - 1);
            let last = *last;
            self.tasks.retain(|_, kept| !is_meant(kept) || kept.number > last);
        }
    }

    /// Of those with a status.
    fn forget_oldest_deliveries(&mut self, status: Status) {
        let told = self.deliveries.values().filter(|kept| kept.delivery.status == status);
        let mut numbers: Vec<u64> = told.map(|kept| kept.number).collect();
        if let Some(excess) = numbers.len().checked_sub(MOST_TOLD).filter(|excess| *excess > 0) {
            let (_, last, _) = numbers.select_nth_unstable(excess - 1);
            let last = *last;
            self.deliveries.retain(|_, kept| kept.delivery.status != status || kept.number > last);
        }
    }

    fn add_notice(&mut self, notice: &Notice, now: u64) {
        let delivery = Delivery {
            notice: notice.clone(),
            status: Status::Pending,
            created: now / 1000,
            attempts: 0,
            problem: None,
            due: Some(now / 1000),
            ended: None,
        };
        let kept = KeptDelivery { number: self.next_number(), delivery, lease: 0, due: now };
        self.deliveries.insert(notice.id.clone(), kept);
    }
}

impl TaskStore for MemoryStore {
    fn add_task<'s>(
        &'s self,
        task: &'s Task,
        announced: bool,
        most: Most,
        due: u64,
    ) -> Stored<'s, Result<Lease, Full>> {
        let mut kept = self.queues.lock();
        if let Some(full) = kept.full(&task.owner, announced, most) {
            return done(Err(full));
        }
        kept.forget_oldest_tasks(Some(&task.owner), most.ended_of_key(MOST_ENDED));
        let (number, task) = (kept.next_number(), task.clone());
        let lease = Lease { id: task.id.clone(), number: 1 };
        let new = KeptTask { number, task, announced, errand: None, lease: 1, due, ended: None };
        kept.tasks.insert(lease.id.clone(), new);
        done(Ok(lease))
    }

    fn accept_task<'s>(&'s self, lease: &'s Lease, state: &'s State, errand: &'s str) -> Stored<'s, bool> {
        let mut kept = self.queues.lock();
        let found = kept.at(lease);
        done(found.is_some_and(|kept| {
            kept.task.state = state.clone();
            kept.errand = Some(errand.to_owned());
            true
        }))
    }

    fn drop_task<'s>(&'s self, lease: &'s Lease) -> Stored<'s, ()> {
        let mut kept = self.queues.lock();
        if kept.at(lease).is_some() {
            kept.tasks.remove(&lease.id);
        }
        done(())
    }

    fn task<'s>(&'s self, owner: &'s str, id: &'s str) -> Stored<'s, Option<Task>> {
        let kept = self.queues.lock();
        let found = kept.tasks.get(id).filter(|kept| *kept.task.owner == *owner);
        done(found.map(|kept| kept.task.clone()))
    }

    fn tasks<'s>(&'s self, status: Option<&'s str>) -> Stored<'s, Vec<(Task, Option<u64>)>> {
        let kept = self.queues.lock();
        let is_wanted = |kept: &&KeptTask| {
            let was_submitted = kept.errand.is_some() || kept.ended.is_some();
            was_submitted && status.is_none_or(|wanted| wanted == kept.task.state.name())
        };
        let mut list: Vec<&KeptTask> = kept.tasks.values().filter(is_wanted).collect();
        list.sort_by_key(|kept| std::cmp::Reverse(kept.number));
        let listed = list.into_iter().take(LONGEST_LIST);
        done(listed.map(|kept| (kept.task.clone(), kept.ended.map(|ended| ended / 1000))).collect())
    }

    fn advance_task<'s>(&'s self, lease: &'s Lease, state: &'s State) -> Stored<'s, bool> {
        let mut kept = self.queues.lock();
        let found = kept.at(lease);
        done(found.is_some_and(|kept| {
            kept.task.state = state.clone();
            true
        }))
    }

    fn end_task<'s>(
        &'s self,
        lease: &'s Lease,
        state: &'s State,
        notice: Option<&'s Notice>,
        now: u64,
    ) -> Stored<'s, bool> {
        let mut kept = self.queues.lock();
        let Some(ending) = kept.at(lease) else { return done(false) };
        ending.task.state = state.clone();
        (ending.errand, ending.ended) = (None, Some(now));
        if let Some(notice) = notice {
            kept.add_notice(notice, now);
        }
        kept.forget_oldest_tasks(None, MOST_ENDED);
        done(true)
    }

    fn renew_leases<'s>(&'s self, leases: &'s [Lease], due: u64) -> Stored<'s, Vec<Lease>> {
        let mut kept = self.queues.lock();
        let is_lost = |lease: &&Lease| match kept.at(lease) {
            Some(kept) => {
                kept.due = due;
                false
            }
            None => true,
        };
        done(leases.iter().filter(is_lost).cloned().collect())
    }

    fn resume_tasks(&self, now: u64, due: u64, most: usize) -> Stored<'_, Vec<Resumed>> {
        let mut kept = self.queues.lock();
        let idle = |kept: &&mut KeptTask| kept.ended.is_none() && kept.errand.is_some() && kept.due <= now;
        let mut waiting: Vec<&mut KeptTask> = kept.tasks.values_mut().filter(idle).collect();
        waiting.sort_by_key(|kept| kept.due);
        let resumed = waiting.into_iter().take(most).map(|kept| {
            kept.lease += 1;
            kept.due = due;
            let lease = Lease { id: kept.task.id.clone(), number: kept.lease };
            Resumed { task: kept.task.clone(), lease, errand: kept.errand.clone().unwrap_or_default() }
        });
        done(resumed.collect())
    }

    fn forget_tasks(&self, now: u64, ended_before: u64) -> Stored<'_, ()> {
        let mut kept = self.queues.lock();
        kept.tasks.retain(|_, kept| match kept.ended {
            Some(ended) => ended >= ended_before,
            None => kept.errand.is_some() || kept.due > now,
        });
        done(())
    }
}

impl DeliveryStore for MemoryStore {
    fn due_deliveries(&self, now: u64, due: u64, most: usize) -> Stored<'_, Vec<Due>> {
        let mut kept = self.queues.lock();
        let is_due = |kept: &&mut KeptDelivery| kept.delivery.status == Status::Pending && kept.due <= now;
        let mut waiting: Vec<&mut KeptDelivery> = kept.deliveries.values_mut().filter(is_due).collect();
        waiting.sort_by_key(|kept| kept.due);
        let taken = waiting.into_iter().take(most).map(|kept| {
            kept.lease += 1;
            kept.due = due;
            let notice = kept.delivery.notice.clone();
            let lease = Lease { id: notice.id.clone(), number: kept.lease };
            Due { notice, lease, attempts: kept.delivery.attempts }
        });
        done(taken.collect())
    }

    fn next_delivery(&self) -> Stored<'_, Option<u64>> {
        done(self.queues.lock().pending().map(|kept| kept.due).min())
    }

    fn attempted<'s>(&'s self, lease: &'s Lease, attempted: &'s Attempted, now: u64) -> Stored<'s, bool> {
        let mut guard = self.queues.lock();
        let found = guard.deliveries.get_mut(&lease.id);
        let is_last =
            |kept: &&mut KeptDelivery| kept.lease == lease.number && kept.delivery.status == Status::Pending;
        let Some(kept) = found.filter(is_last) else { return done(false) };
        let (status, due, problem) = match attempted.clone() {
            Attempted::Delivered => (Status::Delivered, None, None),
            Attempted::Again { due, problem } => (Status::Pending, Some(due), Some(problem)),
            Attempted::Dead { problem } => (Status::Dead, None, Some(problem)),
        };
        kept.due = due.unwrap_or(now);
        let delivery = &mut kept.delivery;
        delivery.attempts += 1;
        (delivery.status, delivery.due, delivery.problem) = (status, due.map(|due| due / 1000), problem);
        delivery.ended = (status != Status::Pending).then_some(now / 1000);
        if status != Status::Pending {
            guard.forget_oldest_deliveries(status);
        }
        done(true)
    }

    fn deliveries(&self, status: Option<Status>) -> Stored<'_, Vec<Delivery>> {
        let kept = self.queues.lock();
        let is_wanted = |kept: &&KeptDelivery| status.is_none_or(|wanted| wanted == kept.delivery.status);
        let mut list: Vec<&KeptDelivery> = kept.deliveries.values().filter(is_wanted).collect();
        list.sort_by_key(|kept| std::cmp::Reverse(kept.number));
        done(list.into_iter().take(LONGEST_LIST).map(|kept| kept.delivery.clone()).collect())
    }

    fn redeliver<'s>(&'s self, id: &'s str, now: u64) -> Stored<'s, bool> {
        let mut kept = self.queues.lock();
        let found = kept.deliveries.get_mut(id);
        done(found.is_some_and(|kept| {
            kept.lease += 1;
            kept.due = now;
            let delivery = &mut kept.delivery;
            (delivery.status, delivery.attempts) = (Status::Pending, 0);
            (delivery.due, delivery.ended) = (Some(now / 1000), None);
            true
        }))
    }

    fn forget_deliveries(&self, ended_before: u64) -> Stored<'_, ()> {
        let is_kept =
            |kept: &KeptDelivery| kept.delivery.ended.is_none_or(|ended| ended * 1000 >= ended_before);
        self.queues.lock().deliveries.retain(|_, kept| is_kept(kept));
        done(())
    }
}
