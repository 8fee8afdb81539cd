//! DNS for webhook receivers: uses the system resolver on separate threads and vets the addresses.
//!
//! The system resolver (with hosts file and search lists) blocks the calling thread, and a slow name blocks it for half
//! a minute. These threads are few and serve nothing else; images are drawn on others.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};

use gatewright::limits;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::runtime::{Builder, Runtime};

/// Maximum number of concurrent attempts. Others wait; between attempts, a delivery holds only its record.
pub(super) const MAX_ATTEMPTS: usize = 16;
/// Maximum number of concurrent lookups: every attempt gets a thread, unless abandoned lookups still hold theirs.
const MAX_LOOK_UPS: usize = MAX_ATTEMPTS;

pub(super) type AddressLookUp = fn(&str) -> io::Result<Vec<SocketAddr>>;

/// Resolves names, and returns only public addresses unless configured otherwise.
pub(super) struct GuardedResolver {
    /// Never polled: only the runtime's threads for blocking work are used.
    threads: Option<Runtime>,
    allow_private: bool,
    look_up: AddressLookUp,
}

impl GuardedResolver {
    pub(super) fn new(allow_private: bool) -> Result<Self, String> {
        // Without a port: the client adds the port of its URL.
        Self::with(allow_private, |name| (name, 0).to_socket_addrs().map(Iterator::collect))
    }

    /// The same with a resolver other than the system's.
    pub(super) fn with(allow_private: bool, look_up: AddressLookUp) -> Result<Self, String> {
        let threads = Builder::new_current_thread()
            .max_blocking_threads(MAX_LOOK_UPS)
            .thread_name("gatewright-names")
            .build()
            .map_err(|error| format!("cannot start threads for name lookups: {error}"))?;
        Ok(Self { threads: Some(threads), allow_private, look_up })
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let Some(threads) = &self.threads else { return Box::pin(std::future::pending()) };
        let (look_up, allow_private) = (self.look_up, self.allow_private);
        let task = threads.spawn_blocking(move || look_up(name.as_str()));
        // A lookup that still waits for a thread when its attempt is abandoned never starts.
        let task = AbortOnDrop(task);
        Box::pin(async move {
            let found = task.await.map_err(|error| format!("the lookup failed: {error}"))?;
            let found = found.map_err(|error| format!("the host has no address: {error}"))?;
            let vetted: Vec<SocketAddr> =
                found.into_iter().filter(|found| allow_private || limits::is_public(found.ip())).collect();
            if vetted.is_empty() {
                return Err("the host has no public address".into());
            }
            Ok(Box::new(vetted.into_iter()) as Addrs)
        })
    }
}

impl Drop for GuardedResolver {
    fn drop(&mut self) {
        // Waiting for a slow name would block the thread that drops this.
        if let Some(threads) = self.threads.take() {
            threads.shutdown_background();
        }
    }
}

struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Future for AbortOnDrop<T> {
    type Output = Result<T, tokio::task::JoinError>;

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        std::pin::Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    static RUNNING: AtomicUsize = AtomicUsize::new(0);
    static MOST: AtomicUsize = AtomicUsize::new(0);
    static STARTED: AtomicUsize = AtomicUsize::new(0);

    #[expect(clippy::unnecessary_wraps, reason = "the type of a look-up, which may fail")]
    fn slow(_: &str) -> io::Result<Vec<SocketAddr>> {
        assert_eq!(std::thread::current().name(), Some("gatewright-names"), "a thread of their own");
        STARTED.fetch_add(1, Ordering::SeqCst);
        MOST.fetch_max(RUNNING.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(100));
        RUNNING.fetch_sub(1, Ordering::SeqCst);
        Ok(vec![SocketAddr::from(([93, 184, 215, 14], 0))])
    }

    #[expect(clippy::unnecessary_wraps, reason = "the type of a look-up, which may fail")]
    fn flipping(_: &str) -> io::Result<Vec<SocketAddr>> {
        static LOOKED_UP: AtomicUsize = AtomicUsize::new(0);
        let public: SocketAddr = ([93, 184, 215, 14], 0).into();
        let inside = ["127.0.0.1:0", "[::1]:0", "[::ffff:10.0.0.1]:0", "169.254.169.254:0"];
        let inside = inside.into_iter().filter_map(|address| address.parse().ok());
        Ok(match LOOKED_UP.fetch_add(1, Ordering::SeqCst) {
            0 => vec![public],
            1 => inside.chain([public]).collect(),
            _ => inside.collect(),
        })
    }

    #[tokio::test]
    async fn name_is_vetted_at_each_lookup() {
        let names = GuardedResolver::with(false, flipping).expect("threads");
        let ask = || names.resolve("flips.example".parse().expect("a name"));
        for _ in 0..2 {
            let found: Vec<SocketAddr> = ask().await.expect("a public address").collect();
            assert_eq!(found, [([93, 184, 215, 14], 0).into()]);
        }
        for _ in 0..2 {
            let error = ask().await.err().expect("inside");
            assert_eq!(error.to_string(), "the host has no public address");
        }
    }

    #[tokio::test]
    async fn slow_lookups_use_bounded_threads_and_abandoned_ones_are_skipped() {
        let names = GuardedResolver::with(false, slow).expect("threads");
        let ask = || names.resolve("example.com".parse().expect("a name"));
        let lookups: Vec<Resolving> = (0..4 * MAX_LOOK_UPS).map(|_| ask()).collect();
        let (kept, given_up): (Vec<_>, Vec<_>) =
            lookups.into_iter().enumerate().partition(|(number, _)| *number < 2 * MAX_LOOK_UPS);
        drop(given_up);
        for (_, lookup) in kept {
            assert_eq!(lookup.await.expect("an address").count(), 1);
        }
        assert_eq!(MOST.load(Ordering::SeqCst), MAX_LOOK_UPS);
        assert_eq!(STARTED.load(Ordering::SeqCst), 2 * MAX_LOOK_UPS);
    }
}
