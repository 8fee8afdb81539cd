//! Long work, away from the runtime's threads: a bounded number of requests at once, and none for a client that has
//! gone.

use std::sync::Arc;

use gatewright::ErrorCode;
use tokio::sync::Semaphore;

use crate::error::ApiError;
use crate::simulator::budget::Budget;

/// Where long work is done.
#[derive(Debug)]
pub(crate) struct Workshop {
    places: Arc<Semaphore>,
    /// Works that ended because nobody waited for them any longer.
    #[cfg(test)]
    abandoned: Arc<std::sync::atomic::AtomicUsize>,
}

impl Default for Workshop {
    /// As many places as there are processors.
    fn default() -> Self {
        Self::of(std::thread::available_parallelism().map_or(2, Into::into))
    }
}

impl Workshop {
    fn of(places: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(places)),
            #[cfg(test)]
            abandoned: Arc::default(),
        }
    }

    /// Does work on a thread of its own once there is a place, with the budget of one request. Dropping the future, as
    /// happens when the client goes, ends the work at its next step. A panic of the work goes on here.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Budget) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let failed = || ApiError::new(&ErrorCode::SERVER_ERROR, "the gateway is shutting down");
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| failed())?;
        let budget = Budget::new();
        let _waiting = budget.waiting();
        // The place is given back when the work has ended, not when nobody waits for it any longer.
        #[cfg(test)]
        let abandoned = Arc::clone(&self.abandoned);
        let done = tokio::task::spawn_blocking(move || {
            let done = work(&budget);
            #[cfg(test)]
            abandoned.fetch_add(usize::from(budget.is_abandoned()), std::sync::atomic::Ordering::SeqCst);
            drop(place);
            done
        });
        done.await.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(failed()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt as _;

    use super::*;

    /// Works until the budget says that nobody waits.
    fn work_until_left(budget: &Budget) {
        while budget.work(0).is_ok() {
            std::thread::yield_now();
        }
    }

    #[tokio::test]
    async fn work_ends_and_gives_its_place_back_when_the_client_goes() {
        let workshop = Workshop::of(1);
        let begun = Arc::new(AtomicUsize::new(0));
        let beginning = Arc::clone(&begun);
        let mut waiting = Box::pin(workshop.work(move |budget| {
            beginning.fetch_add(1, Ordering::SeqCst);
            work_until_left(budget);
            Ok(())
        }));
        while begun.load(Ordering::SeqCst) == 0 {
            assert!((&mut waiting).now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        assert_eq!(workshop.places.available_permits(), 0);
        drop(waiting);
        // Work that did not end would keep the only place, and this would wait for ever.
        assert_eq!(workshop.work(|_| Ok(7)).await.ok(), Some(7));
    }

    #[tokio::test]
    async fn a_client_that_breaks_its_connection_ends_the_work_for_it() {
        use serde_json::json;
        use tokio::io::AsyncWriteExt as _;

        let names: Vec<String> = (0..8).map(|number| format!("p{number}")).collect();
        let itself: serde_json::Map<_, _> =
            names.iter().map(|name| (name.clone(), json!({ "$ref": "#" }))).collect();
        let schema = json!({ "properties": itself, "required": names });
        let format = json!({ "type": "json_schema", "json_schema": { "name": "x", "schema": schema } });
        let body = json!({ "model": "model-sol", "messages": [{ "role": "user", "content": "x" }], "response_format": format });
        let body = body.to_string();

        let config = crate::Config { listen: "127.0.0.1:0".to_owned(), ..crate::Config::default() };
        let gateway = crate::Gateway::bind(config).await.expect("a free port");
        let (provider, address) = (gateway.provider(), gateway.address());
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            gateway.key().expose(),
            body.len()
        );
        let serving = tokio::spawn(gateway.serve(std::future::pending()));
        let mut client = tokio::net::TcpStream::connect(address).await.expect("a connection");
        client.write_all(format!("{head}{body}").as_bytes()).await.expect("sent");
        let workshop = &provider.workshop;
        let all = Workshop::default().places.available_permits();
        while workshop.places.available_permits() == all {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        // A client that only ends its sending half may still wait for the answer.
        socket2::SockRef::from(&client).set_linger(Some(std::time::Duration::ZERO)).expect("set");
        drop(client);
        while workshop.places.available_permits() < all {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        assert_eq!(workshop.abandoned.load(Ordering::SeqCst), 1);
        serving.abort();
    }

    #[tokio::test]
    async fn no_more_is_worked_at_once_than_there_are_places() {
        let workshop = Workshop::of(2);
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let works = (0..20).map(|_| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            workshop.work(move |_| {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::yield_now();
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            })
        });
        let done = futures_util::future::join_all(works).await;
        assert!(done.iter().all(Result::is_ok));
        assert!((1..=2).contains(&most.load(Ordering::SeqCst)));
    }

    #[tokio::test]
    async fn a_panic_of_the_work_is_one_of_the_caller() {
        let workshop = Workshop::default();
        let work = workshop.work::<()>(|_| panic!("on purpose"));
        let caught = std::panic::AssertUnwindSafe(work).catch_unwind().await;
        assert!(caught.is_err());
        assert_eq!(workshop.work(|_| Ok(7)).await.ok(), Some(7));
    }
}
