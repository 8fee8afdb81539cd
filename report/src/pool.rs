//! Validates many documents in parallel on its own threads; see [`Pool`].

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use crate::validate::{Outcome, Validator};
use crate::workers::Workers;

/// A document to validate.
///
/// ```
/// use gatewright_report::{MAX_BYTES, Source};
///
/// assert_eq!(Source::Bytes(b"{}".to_vec()).read(MAX_BYTES)?, b"{}");
/// assert!(Source::File("no such file".into()).read(MAX_BYTES).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
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
    ///
    /// ```
    /// use gatewright_report::Source;
    ///
    /// let source = Source::Bytes(b"{}".to_vec());
    /// assert_eq!(source.read(1024)?, b"{}");
    /// # Ok::<(), std::io::Error>(())
    /// ```
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
///
/// ```
/// use gatewright_report::PoolResult;
///
/// /// A line for a document.
/// fn line(judged: PoolResult<String, bool>) -> String {
///     match judged.result {
///         Ok(true) => format!("{} is valid", judged.key),
///         Ok(false) => format!("{} is not valid", judged.key),
///         Err(error) => format!("{}: {error}", judged.key),
///     }
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct PoolResult<K, T> {
    /// Number of documents submitted before this one.
    pub index: usize,
    /// The key that the document was submitted with.
    pub key: K,
    /// The output for the verdict, or why the document could not be read.
    pub result: io::Result<T>,
}

/// Threads that validate documents.
///
/// Submit documents while [`Pool::has_room`], and fetch results while [`Pool::pending`] is not 0: the caller balances
/// the two, so the pool never reads ahead without limit. A pool holds at most 8 documents per thread. The threads read
/// the files, so at most one file per thread is in memory.
///
/// ```
/// use gatewright_report::{Pool, Source, Validator};
///
/// let pool = Pool::new(&Validator::default(), 2, true, |_, _, outcome| outcome.valid)?;
/// let documents = ["{}", "[]"].map(|text| (text, Source::Bytes(text.into())));
/// for judged in pool.run(documents) {
///     println!("{}: {}", judged.key, judged.result?);
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Pool<K, T>(Workers<(K, Source), (K, io::Result<T>)>);

impl<K, T> std::fmt::Debug for Pool<K, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Pool").field(&self.0).finish()
    }
}

impl<K: Send + 'static, T: Send + 'static> Pool<K, T> {
    /// Starts the threads.
    ///
    /// threads: their number, at most 64; 0 for one per core. ordered: whether results arrive in the order of the
    /// documents, or as soon as they are ready. make: computes the output from a document's key, its bytes and the
    /// verdict, on the threads. The threads end when the pool is dropped.
    ///
    /// Errors: the system cannot create a thread.
    ///
    /// ```
    /// use gatewright_report::{Pool, Source, Validator};
    ///
    /// // One thread per core; each verdict as soon as it is ready, as a line of text.
    /// let pool = Pool::new(&Validator::default(), 0, false, |name, _, outcome| {
    ///     format!("{name}: {}", outcome.summary())
    /// })?;
    /// let files = ["monday.json", "tuesday.json"].map(|name| (name, Source::File(name.into())));
    /// assert_eq!(pool.run(files).count(), 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new(
        validator: &Validator,
        threads: usize,
        ordered: bool,
        make: impl Fn(&K, &[u8], Outcome) -> T + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let validator = validator.clone();
        let judge = move |(key, source): (K, Source)| {
            let result = source.read(validator.max_bytes()).map(|document| {
                let outcome = validator.check(&document);
                make(&key, &document, outcome)
            });
            (key, result)
        };
        Workers::new(threads, ordered, judge).map(Self)
    }

    /// Number of documents submitted whose results are not fetched yet.
    ///
    /// ```
    /// use gatewright_report::{Pool, Source, Validator};
    ///
    /// let mut pool = Pool::new(&Validator::default(), 1, true, |_, _, outcome| outcome.valid)?;
    /// pool.submit("empty", Source::Bytes(Vec::new()));
    /// assert_eq!(pool.pending(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn pending(&self) -> usize {
        self.0.pending()
    }

    /// Whether there is room to submit another document before fetching a result.
    ///
    /// ```
    /// use gatewright_report::{Pool, Source, Validator};
    ///
    /// let mut pool = Pool::new(&Validator::default(), 1, true, |_, _, outcome| outcome.valid)?;
    /// while pool.has_room() {
    ///     pool.submit((), Source::Bytes(b"{}".to_vec()));
    /// }
    /// assert_eq!(pool.pending(), 8);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn has_room(&self) -> bool {
        self.0.has_room()
    }

    /// Submits a document with a key to identify it. Does not wait.
    ///
    /// ```
    /// use gatewright_report::{Pool, Source, Validator};
    ///
    /// let mut pool = Pool::new(&Validator::default(), 2, true, |_, _, outcome| outcome.valid)?;
    /// pool.submit("monday.json", Source::Bytes(b"{}".to_vec()));
    /// assert_eq!(pool.fetch(None).unwrap().key, "monday.json");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn submit(&mut self, key: K, source: Source) {
        self.0.submit((key, source));
    }

    /// The next result; `None` if none is pending, or none is ready within `limit`.
    ///
    /// Panics: if a thread panicked, with its panic.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use gatewright_report::{Pool, Source, Validator};
    ///
    /// let mut pool = Pool::new(&Validator::default(), 1, true, |_, _, outcome| outcome.valid)?;
    /// assert!(pool.fetch(Some(Duration::ZERO)).is_none());
    /// pool.submit("monday.json", Source::Bytes(b"{}".to_vec()));
    /// assert!(!pool.fetch(None).unwrap().result?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn fetch(&mut self, limit: Option<Duration>) -> Option<PoolResult<K, T>> {
        self.0.fetch(limit).map(|(index, (key, result))| PoolResult { index, key, result })
    }

    /// Validates all documents of an iterator, and returns the results as an iterator. Reads ahead only while
    /// [`Pool::has_room`].
    ///
    /// ```no_run
    /// use gatewright_report::{Pool, Source, Validator};
    ///
    /// let pool = Pool::new(&Validator::default(), 0, true, |_, _, outcome| outcome.valid)?;
    /// for judged in pool.run(std::env::args().skip(1).map(|file| (file.clone(), Source::File(file.into())))) {
    ///     println!("{}: {}", judged.key, judged.result?);
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn run<I>(mut self, sources: I) -> impl Iterator<Item = PoolResult<K, T>>
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
