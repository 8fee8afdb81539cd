//! Validates many reports on the core's threads: whole documents, or the lines of incremental input.

use std::mem;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use gatewright::report::{Line, Outcome, Pool, Source, Splitter};
use gatewright::{Error, ErrorKind};
use napi::Env;
use napi::bindgen_prelude::{Either, PromiseRaw};
use napi_derive::napi;

use crate::error::{describe, misconfigured};
use crate::lifetime::{self, PromiseValue};
use crate::report::{Judged, Made, Validator, judged};

/// A result, or nothing if none is pending.
#[napi(object, object_from_js = false)]
#[derive(Default)]
pub struct Fetched {
    /// The failure of the pool as JSON.
    pub error: Option<String>,
    /// Number of the document or line.
    pub number: Option<u32>,
    /// The verdict, or why there is none; nothing if the document is clean.
    pub made: Option<Judged>,
}

impl PromiseValue for Fetched {
    fn failed(error: String) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}

/// Threads that validate documents; see the core's `Pool`.
#[napi(js_name = "EnginePool")]
pub struct ReportPool {
    shared: Arc<SharedPool>,
}

struct SharedPool {
    /// None once closed.
    state: Mutex<Option<PoolState>>,
    /// Set without the lock, which a fetch holds while it waits.
    closed: AtomicBool,
}

struct PoolState {
    pool: Pool<Key, Option<Judged>>,
    splitter: Splitter,
    /// Bytes of lines, and the number of consumed bytes.
    bytes: Vec<u8>,
    taken: usize,
}

/// The key of a document.
struct Key {
    number: u32,
    path: Option<String>,
}

#[napi]
impl ReportPool {
    /// Starts the threads, one per core, or returns as JSON why that fails. ordered: whether results come in the order
    /// of the documents, or as they are ready.
    #[napi]
    pub fn create(validator: &Validator, ordered: bool) -> Either<ReportPool, String> {
        let judge = |_: &Key, _: &[u8], outcome: Outcome| judged(|| outcome);
        let started = gatewright::contain(|| {
            Pool::new(&validator.validator, 0, ordered, judge)
                .map_err(|error| misconfigured(format!("cannot start threads: {error}")))
        });
        match started {
            Ok(pool) => {
                let splitter = Splitter::new(validator.validator.max_bytes());
                let state = PoolState { pool, splitter, bytes: Vec::new(), taken: 0 };
                let shared = SharedPool { state: Mutex::new(Some(state)), closed: AtomicBool::new(false) };
                Either::A(ReportPool { shared: Arc::new(shared) })
            }
            Err(error) => Either::B(describe(&error)),
        }
    }

    /// Submits a document: its bytes or the path of a file. Returns whether there is room for another before a result
    /// is fetched.
    #[napi]
    pub fn submit(&self, number: u32, document: Either<&[u8], String>) -> bool {
        let mut state = self.shared.lock();
        let Some(PoolState { pool, .. }) = state.as_mut() else { return false };
        match document {
            // Copied: JavaScript may write to the bytes while a thread reads.
            Either::A(bytes) => pool.submit(Key { number, path: None }, Source::Bytes(bytes.to_vec())),
            Either::B(path) => {
                let source = Source::File(PathBuf::from(&path));
                pool.submit(Key { number, path: Some(path) }, source);
            }
        }
        pool.has_room()
    }

    /// Adds the next bytes of lines, after all previous ones are consumed.
    #[napi]
    pub fn feed(&self, bytes: &[u8]) {
        if let Some(state) = self.shared.lock().as_mut() {
            state.bytes.extend_from_slice(bytes);
        }
    }

    /// Submits complete non-blank lines, and the last one at the end of the input, as many as there is room for.
    /// Returns whether all were submitted.
    #[napi]
    pub fn advance(&self, ended: bool) -> bool {
        self.shared.lock().as_mut().is_none_or(|state| state.advance(ended))
    }

    /// Waits for the next result. Never rejects.
    #[napi]
    pub fn fetch<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, Fetched>> {
        let shared = Arc::clone(&self.shared);
        lifetime::spawn_blocking(env, move || Ok(shared.fetch()))
    }

    /// Ends the threads; discards documents that are not validated yet.
    #[napi]
    pub fn close(&self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        match self.shared.state.try_lock() {
            Ok(mut state) => drop(state.take()),
            Err(TryLockError::Poisoned(state)) => drop(state.into_inner().take()),
            // A fetch waits: it closes the pool when it is done.
            Err(TryLockError::WouldBlock) => {}
        }
    }
}

impl SharedPool {
    fn lock(&self) -> MutexGuard<'_, Option<PoolState>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fetch(&self) -> Fetched {
        let mut state = self.lock();
        let judged = state.as_mut().and_then(|state| state.pool.fetch(None));
        if self.closed.load(Ordering::SeqCst) {
            state.take();
        }
        drop(state);
        let Some(judged) = judged else { return Fetched::default() };
        let Key { number, path } = judged.key;
        let made = judged.result.unwrap_or_else(|error| {
            let message = format!("{}: {error}", path.unwrap_or_default());
            Some(Either::B(Made::failed(&Error::new(ErrorKind::Io, message))))
        });
        Fetched { number: Some(number), made, ..Fetched::default() }
    }
}

impl PoolState {
    fn advance(&mut self, ended: bool) -> bool {
        while self.pool.has_room() {
            let mut rest = &self.bytes[self.taken..];
            let line = self.splitter.next_line(&mut rest);
            self.taken = self.bytes.len() - rest.len();
            if let Some(line) = line {
                self.submit(line);
                continue;
            }
            drop(mem::take(&mut self.bytes));
            self.taken = 0;
            if ended && let Some(line) = self.splitter.finish() {
                self.submit(line);
            }
            return true;
        }
        false
    }

    fn submit(&mut self, Line { number, bytes, .. }: Line) {
        // Beyond four billion lines the number is the last one.
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        self.pool.submit(Key { number, path: None }, Source::Bytes(bytes));
    }
}
