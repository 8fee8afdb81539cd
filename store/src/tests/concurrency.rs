//! What stores do for several gateways at once: each piece of work goes to one gateway.

use std::collections::HashSet;
use std::sync::Arc;

use super::kinds::Shared;
use super::tasks::{LEASE, accepted, notice};
use crate::{DurableStore, TaskState};

in_every_store! {
    notification_is_taken_by_one_of_several_concurrent_senders
}

async fn notification_is_taken_by_one_of_several_concurrent_senders(shared: Shared) {
    let ids: HashSet<String> = (0..10).map(|number| format!("m_{number}")).collect();
    for (number, id) in ids.iter().enumerate() {
        let lease = accepted(&*shared.one, &format!("task_{number}")).await;
        let ended = shared.one.end_task(&lease, &TaskState::failed("x"), Some(&notice(id))).await;
        assert!(ended.expect("an answer"));
    }
    let take = |store: &Arc<dyn DurableStore>| {
        let store = Arc::clone(store);
        async move {
            let mut taken = Vec::new();
            loop {
                let due = store.due_deliveries(LEASE, 1).await.expect("an answer");
                if due.is_empty() {
                    return taken;
                }
                taken.extend(due.into_iter().map(|due| due.notice.id));
            }
        }
    };
    let takers = (0..4).map(|taker| take(if taker % 2 == 0 { &shared.one } else { &shared.other }));
    let taken: Vec<String> = futures_util::future::join_all(takers).await.concat();
    assert_eq!(taken.len(), ids.len(), "{taken:?}");
    assert_eq!(taken.into_iter().collect::<HashSet<_>>(), ids);
}
