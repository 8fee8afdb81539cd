//! Threads that process many jobs of the same kind; see [`Workers`].

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Maximum number of jobs per thread that are accepted ahead of the fetched results.
const AHEAD_PER_THREAD: usize = 8;

/// Maximum number of threads.
const MAX_THREADS: usize = 64;

/// Threads that compute a result for each job.
///
/// Submit jobs while [`Workers::has_room`], and fetch results while [`Workers::pending`] is not 0: the caller balances
/// the two, so nothing is read ahead without limit. At most 8 jobs per thread are held.
///
/// ```
/// use gatewright_report::Workers;
///
/// let workers = Workers::new(2, true, |text: &str| text.len())?;
/// let lengths: Vec<usize> = workers.run(["a", "bb", "ccc"]).collect();
/// assert_eq!(lengths, [1, 2, 3]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Workers<J, T> {
    jobs: Sender<(usize, J)>,
    done: Receiver<(usize, thread::Result<T>)>,
    threads: usize,
    submitted: usize,
    fetched: usize,
    /// Results that arrived out of order, if the order is kept.
    early: Option<BTreeMap<usize, T>>,
}

impl<J, T> std::fmt::Debug for Workers<J, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workers")
            .field("threads", &self.threads)
            .field("pending", &(self.submitted - self.fetched))
            .finish_non_exhaustive()
    }
}

impl<J: Send + 'static, T: Send + 'static> Workers<J, T> {
    /// Starts the threads, which end when this is dropped.
    ///
    /// threads: their number, at most 64; 0 for one per core. ordered: whether results arrive in the order of the
    /// jobs, or as soon as they are ready. work: computes a result, on the threads.
    ///
    /// Errors: the system cannot create a thread.
    ///
    /// ```
    /// use gatewright_report::Workers;
    ///
    /// let mut workers = Workers::new(0, false, |path: String| std::fs::metadata(path).is_ok())?;
    /// workers.submit("no such file".to_owned());
    /// assert_eq!(workers.fetch(None), Some((0, false)));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new(
        threads: usize,
        ordered: bool,
        work: impl Fn(J) -> T + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let threads = match threads {
            0 => thread::available_parallelism().map_or(1, usize::from),
            _ => threads,
        };
        let threads = threads.min(MAX_THREADS);
        let (jobs, queue) = channel();
        let (sender, done) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let work = Arc::new(work);
        for _ in 0..threads {
            let (queue, sender, work) = (Arc::clone(&queue), sender.clone(), Arc::clone(&work));
            thread::Builder::new()
                .name("gatewright-report".to_owned())
                .spawn(move || serve(&queue, &sender, &*work))?;
        }
        let early = ordered.then(BTreeMap::new);
        Ok(Self { jobs, done, threads, submitted: 0, fetched: 0, early })
    }

    /// Number of jobs submitted whose results are not fetched yet.
    ///
    /// ```
    /// let mut workers = gatewright_report::Workers::new(1, true, |text: &str| text.len())?;
    /// workers.submit("a");
    /// assert_eq!(workers.pending(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn pending(&self) -> usize {
        self.submitted - self.fetched
    }

    /// Whether there is room to submit another job before fetching a result.
    ///
    /// ```
    /// let mut workers = gatewright_report::Workers::new(1, true, |text: &str| text.len())?;
    /// while workers.has_room() {
    ///     workers.submit("a");
    /// }
    /// assert_eq!(workers.pending(), 8);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn has_room(&self) -> bool {
        self.pending() < self.threads * AHEAD_PER_THREAD
    }

    /// Submits a job. Does not wait.
    ///
    /// ```
    /// let mut workers = gatewright_report::Workers::new(2, true, |text: &str| text.len())?;
    /// for text in ["a", "bb"] {
    ///     workers.submit(text);
    /// }
    /// assert_eq!(workers.fetch(None), Some((0, 1)));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[expect(clippy::missing_panics_doc, reason = "the threads live as long as this")]
    pub fn submit(&mut self, job: J) {
        self.jobs.send((self.submitted, job)).expect("the threads live as long as this");
        self.submitted += 1;
    }

    /// The next result, and how many jobs were submitted before its own; `None` if none is pending, or none is ready
    /// within `limit`.
    ///
    /// Panics: if a job panicked, with its panic.
    ///
    /// ```
    /// let mut workers = gatewright_report::Workers::new(2, true, |text: &str| text.len())?;
    /// workers.submit("bb");
    /// assert_eq!(workers.fetch(None), Some((0, 2)));
    /// assert_eq!(workers.fetch(None), None);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn fetch(&mut self, limit: Option<Duration>) -> Option<(usize, T)> {
        while self.pending() > 0 {
            let next = self.fetched;
            if let Some(result) = self.early.as_mut().and_then(|early| early.remove(&next)) {
                self.fetched += 1;
                return Some((next, result));
            }
            let done = match limit {
                None => self.done.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(limit) => self.done.recv_timeout(limit),
            };
            let (index, result) = match done {
                Ok((index, Ok(result))) => (index, result),
                Ok((_, Err(panic))) => resume_unwind(panic),
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => unreachable!("the threads live as long as this"),
            };
            let Some(early) = &mut self.early else {
                self.fetched += 1;
                return Some((index, result));
            };
            early.insert(index, result);
        }
        None
    }

    /// Does all jobs of an iterator, and returns the results as an iterator. Reads ahead only while
    /// [`Workers::has_room`].
    ///
    /// ```
    /// let workers = gatewright_report::Workers::new(0, true, |number: u64| number * number)?;
    /// assert_eq!(workers.run(1..=3).collect::<Vec<_>>(), [1, 4, 9]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn run<I: IntoIterator<Item = J>>(mut self, jobs: I) -> impl Iterator<Item = T> {
        let mut jobs = jobs.into_iter().fuse();
        std::iter::from_fn(move || {
            while self.has_room() {
                // The next job may take a while to arrive.
                if let Some((_, result)) = self.fetch(Some(Duration::ZERO)) {
                    return Some(result);
                }
                let Some(job) = jobs.next() else { break };
                self.submit(job);
            }
            self.fetch(None).map(|(_, result)| result)
        })
    }
}

fn serve<J, T>(
    queue: &Mutex<Receiver<(usize, J)>>,
    done: &Sender<(usize, thread::Result<T>)>,
    work: &dyn Fn(J) -> T,
) {
    loop {
        // One thread waits in `recv`, the others for the lock: the next job wakes one of them.
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        // The caller no longer waits.
        let Ok((index, job)) = job else { return };
        let result = catch_unwind(AssertUnwindSafe(|| work(job)));
        if done.send((index, result)).is_err() {
            return;
        }
    }
}
