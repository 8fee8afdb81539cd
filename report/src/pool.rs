//! Validates many documents in parallel on its own threads; see [`Pool`].

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::validate::{Outcome, Validator};

/// Maximum number of documents per thread that a pool accepts ahead of the fetched results.
const AHEAD_PER_THREAD: usize = 8;

/// Maximum number of threads of a pool.
const MAX_THREADS: usize = 64;

/// A document to validate.
#[derive(Debug)]
#[non_exhaustive]
pub enum Source {
    /// The document itself.
    Bytes(Vec<u8>),
    /// The file with the document; a thread of the pool reads it, but no more of it than the validator's limit
    /// requires.
    File(PathBuf),
    /// A document that could not be read: passed through, so that it keeps its position among the results.
    Failed(io::Error),
}

impl Source {
    /// The bytes of the document. Of a file over the limit it reads just enough to refuse it.
    ///
    /// Errors: the file cannot be read; the error that [`Source::Failed`] holds.
    pub fn read(self, max_bytes: usize) -> io::Result<Vec<u8>> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Failed(error) => Err(error),
            Self::File(path) => {
                let mut document = Vec::new();
                File::open(path)?.take(max_bytes as u64 + 1).read_to_end(&mut document)?;
                Ok(document)
            }
        }
    }
}

/// A result of a pool.
#[derive(Debug)]
#[non_exhaustive]
pub struct Judged<K, T> {
    /// Number of documents submitted before this one.
    pub index: usize,
    /// The key that the document was submitted with.
    pub key: K,
    /// The output for the verdict, or why the document could not be read.
    pub result: io::Result<T>,
}

type Make<K, T> = dyn Fn(&K, &[u8], Outcome) -> T + Send + Sync;
type Job<K> = (usize, K, Source);
type Done<K, T> = (usize, K, thread::Result<io::Result<T>>);

/// Threads that validate documents.
///
/// Submit documents while [`Pool::has_room`], and fetch results while [`Pool::pending`] is not 0: the caller balances
/// the two, so the pool never reads ahead without limit. A pool holds at most 8 documents per thread. The threads read
/// the files, so at most one file per thread is in memory.
pub struct Pool<K, T> {
    jobs: Sender<Job<K>>,
    done: Receiver<Done<K, T>>,
    threads: usize,
    submitted: usize,
    fetched: usize,
    /// Results that arrived out of order, if the order is kept.
    early: Option<BTreeMap<usize, Judged<K, T>>>,
}

impl<K, T> std::fmt::Debug for Pool<K, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool")
            .field("threads", &self.threads)
            .field("pending", &(self.submitted - self.fetched))
            .finish_non_exhaustive()
    }
}

impl<K: Send + 'static, T: Send + 'static> Pool<K, T> {
    /// Starts the threads.
    ///
    /// threads: their number, at most 64; 0 for one per core. ordered: whether results come in the order of the
    /// documents, or as they are ready. make: computes the output from a document's key, its bytes and the verdict, on
    /// the threads. The threads end when the pool is dropped.
    ///
    /// Errors: the system cannot create a thread.
    pub fn new(
        validator: &Validator,
        threads: usize,
        ordered: bool,
        make: impl Fn(&K, &[u8], Outcome) -> T + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let threads = match threads {
            0 => thread::available_parallelism().map_or(1, usize::from),
            _ => threads,
        };
        let threads = threads.min(MAX_THREADS);
        let (jobs, queue) = channel();
        let (sender, done) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let make: Arc<Make<K, T>> = Arc::new(make);
        for _ in 0..threads {
            let (queue, sender) = (Arc::clone(&queue), sender.clone());
            let (validator, make) = (validator.clone(), Arc::clone(&make));
            thread::Builder::new()
                .name("gatewright-report".to_owned())
                .spawn(move || work(&queue, &sender, &validator, &*make))?;
        }
        let early = ordered.then(BTreeMap::new);
        Ok(Self { jobs, done, threads, submitted: 0, fetched: 0, early })
    }

    /// Number of documents submitted whose results are not fetched yet.
    pub fn pending(&self) -> usize {
        self.submitted - self.fetched
    }

    /// Whether there is room to submit another document before fetching a result.
    pub fn has_room(&self) -> bool {
        self.pending() < self.threads * AHEAD_PER_THREAD
    }

    /// Submits a document with a key to identify it. Does not wait.
    #[expect(clippy::missing_panics_doc, reason = "the threads live as long as the pool")]
    pub fn submit(&mut self, key: K, source: Source) {
        let sent = self.jobs.send((self.submitted, key, source)).ok();
        sent.expect("the threads live as long as the pool");
        self.submitted += 1;
    }

    /// The next result; `None` if none is pending, or none is ready within `limit`.
    ///
    /// Panics: if a thread panicked, with its panic.
    pub fn fetch(&mut self, limit: Option<Duration>) -> Option<Judged<K, T>> {
        while self.pending() > 0 {
            if let Some(judged) = self.early.as_mut().and_then(|early| early.remove(&self.fetched)) {
                self.fetched += 1;
                return Some(judged);
            }
            let done = match limit {
                None => self.done.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(limit) => self.done.recv_timeout(limit),
            };
            let judged = match done {
                Ok((index, key, Ok(result))) => Judged { index, key, result },
                Ok((_, _, Err(panic))) => resume_unwind(panic),
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => unreachable!("the threads live as long as the pool"),
            };
            let Some(early) = &mut self.early else {
                self.fetched += 1;
                return Some(judged);
            };
            early.insert(judged.index, judged);
        }
        None
    }

    /// Validates all documents of an iterator, and returns the results as an iterator. Reads ahead only while
    /// [`Pool::has_room`].
    pub fn run<I>(mut self, sources: I) -> impl Iterator<Item = Judged<K, T>>
    where
        I: IntoIterator<Item = (K, Source)>,
    {
        let mut sources = sources.into_iter().fuse();
        std::iter::from_fn(move || {
            while self.has_room() {
                let Some((key, source)) = sources.next() else { break };
                self.submit(key, source);
            }
            self.fetch(None)
        })
    }
}

fn work<K, T>(
    queue: &Mutex<Receiver<Job<K>>>,
    done: &Sender<Done<K, T>>,
    validator: &Validator,
    make: &Make<K, T>,
) {
    loop {
        // One thread waits in `recv`, the others for the lock: the next job wakes one of them.
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        // The pool was dropped.
        let Ok((index, key, source)) = job else { return };
        let result = catch_unwind(AssertUnwindSafe(|| {
            let document = source.read(validator.max_bytes())?;
            let outcome = validator.check(&document);
            Ok(make(&key, &document, outcome))
        }));
        if done.send((index, key, result)).is_err() {
            return;
        }
    }
}
