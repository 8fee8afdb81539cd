//! Many documents judged at once, on threads of their own; see [`Pool`].

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::validate::{Outcome, Validator};

/// Documents that a pool takes ahead of the results that were fetched, per thread.
const AHEAD_PER_THREAD: usize = 8;

/// Most threads of a pool.
const MAX_THREADS: usize = 64;

/// A document to be judged.
#[derive(Debug)]
#[non_exhaustive]
pub enum Source {
    /// The document itself.
    Bytes(Vec<u8>),
    /// The file that holds it; a thread of the pool reads it, no more of it than the validator's bound asks for.
    File(PathBuf),
    /// What could not be read when its turn came: handed through, so that it keeps its place among the results.
    Failed(io::Error),
}

/// A result of a pool.
#[derive(Debug)]
#[non_exhaustive]
pub struct Judged<K, T> {
    /// How many documents were submitted before this one.
    pub index: usize,
    /// What the document was submitted with.
    pub key: K,
    /// What was made of the verdict, or why the document could not be read.
    pub result: io::Result<T>,
}

type Make<K, T> = dyn Fn(&K, &[u8], Outcome) -> T + Send + Sync;
type Job<K> = (usize, K, Source);
type Answer<K, T> = (usize, K, thread::Result<io::Result<T>>);

/// Threads that judge documents.
///
/// Documents are submitted while [`Pool::has_room`], results are fetched while [`Pool::pending`] is not 0: it is
/// the caller who keeps the balance, so nothing is read ahead without bound. A pool holds at most 8 documents
/// per thread; files are read by the threads, so that no more than one per thread is in memory.
pub struct Pool<K, T> {
    jobs: Sender<Job<K>>,
    answers: Receiver<Answer<K, T>>,
    threads: usize,
    submitted: usize,
    fetched: usize,
    /// Results that came before their turn, if there are turns.
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
    /// threads: how many, at most 64; 0 for one per core. ordered: whether results come in the order of the
    /// documents, or as they are ready. make: what the threads make of a document's key, its bytes and
    /// the verdict. The threads end
    /// when the pool is dropped.
    ///
    /// Errors: the system has no thread to give.
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
        let (answer, answers) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let make: Arc<Make<K, T>> = Arc::new(make);
        for _ in 0..threads {
            let (queue, answer) = (Arc::clone(&queue), answer.clone());
            let (validator, make) = (validator.clone(), Arc::clone(&make));
            thread::Builder::new()
                .name("gatewright-report".to_owned())
                .spawn(move || work(&queue, &answer, &validator, &*make))?;
        }
        let early = ordered.then(BTreeMap::new);
        Ok(Self { jobs, answers, threads, submitted: 0, fetched: 0, early })
    }

    /// Results that were submitted and not fetched.
    pub fn pending(&self) -> usize {
        self.submitted - self.fetched
    }

    /// Whether another document may be submitted before a result is fetched.
    pub fn has_room(&self) -> bool {
        self.pending() < self.threads * AHEAD_PER_THREAD
    }

    /// Hands a document to the threads, and what to know it again by. Does not wait.
    #[expect(clippy::missing_panics_doc, reason = "the threads live as long as the pool")]
    pub fn submit(&mut self, key: K, source: Source) {
        let sent = self.jobs.send((self.submitted, key, source)).ok();
        sent.expect("the threads live as long as the pool");
        self.submitted += 1;
    }

    /// The next result; `None` when none is pending, and when there is none within `limit`.
    ///
    /// Panics: with the panic of a thread, should there be one.
    pub fn fetch(&mut self, limit: Option<Duration>) -> Option<Judged<K, T>> {
        while self.pending() > 0 {
            if let Some(judged) = self.early.as_mut().and_then(|early| early.remove(&self.fetched)) {
                self.fetched += 1;
                return Some(judged);
            }
            let answer = match limit {
                None => self.answers.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(limit) => self.answers.recv_timeout(limit),
            };
            let judged = match answer {
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

    /// Judges all documents of an iterator, and gives the results as an iterator. It takes documents only as far
    /// ahead as [`Pool::has_room`] says.
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
    answer: &Sender<Answer<K, T>>,
    validator: &Validator,
    make: &Make<K, T>,
) {
    loop {
        // One thread waits in `recv`, the others for the lock: the next job wakes one of them.
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        // The pool was dropped.
        let Ok((index, key, source)) = job else { return };
        let result = catch_unwind(AssertUnwindSafe(|| {
            let document = read(source, validator.max_bytes())?;
            let outcome = validator.check(&document);
            Ok(make(&key, &document, outcome))
        }));
        if answer.send((index, key, result)).is_err() {
            return;
        }
    }
}

/// The bytes of a document; of a file over the bound just enough to be refused.
fn read(source: Source, max_bytes: usize) -> io::Result<Vec<u8>> {
    match source {
        Source::Bytes(bytes) => Ok(bytes),
        Source::Failed(error) => Err(error),
        Source::File(path) => {
            let mut document = Vec::new();
            File::open(path)?.take(max_bytes as u64 + 1).read_to_end(&mut document)?;
            Ok(document)
        }
    }
}
