//! An S3 service with one bucket. It is third-party code, which verifies the signature of each request and stores objects as
//! files in a folder.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, HttpError};
use s3s_fs::FileSystem;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

/// Threads that serve it.
const THREADS: usize = 2;

/// See the module. It runs on its own threads, at a free port of this machine, until it is dropped.
#[derive(Debug)]
pub struct Bucket {
    objects: PathBuf,
    port: u16,
    state: Arc<State>,
    /// Removed when it is dropped.
    runtime: Option<Runtime>,
}

/// What a bucket does with requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BucketMode {
    /// It answers them.
    Works,
    /// It rejects all of them, like an overloaded service.
    Refuses,
    /// It breaks each connection at its first request, like a host that is gone behind a proxy that is not.
    Breaks,
    /// It answers none until its mode changes, and those that still wait then.
    Hangs,
}

#[derive(Debug)]
struct State {
    mode: watch::Sender<BucketMode>,
    answered: AtomicU64,
}

impl Bucket {
    /// The name of the bucket.
    pub const NAME: &str = "files-of-gateways";
    /// The access key ID.
    pub const ACCESS_KEY: &str = "bucket-access";
    /// Its secret. It must not appear in any message.
    pub const SECRET_KEY: &str = "bucket-canary-5b1e";

    /// Starts the service, which stores its data in this folder.
    ///
    /// # Panics
    /// The folder cannot be created, or there is no free port.
    pub fn start(folder: &Path) -> Self {
        let objects = folder.join(Self::NAME);
        fs::create_dir_all(&objects).expect("a folder");
        let files = FileSystem::new(folder).expect("a folder");
        let mut builder = S3ServiceBuilder::new(files);
        builder.set_auth(SimpleAuth::from_single(Self::ACCESS_KEY, Self::SECRET_KEY));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        listener.set_nonblocking(true).expect("a socket");
        let runtime = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
        let runtime = runtime.expect("threads");
        let state =
            Arc::new(State { mode: watch::Sender::new(BucketMode::Works), answered: AtomicU64::new(0) });
        runtime.spawn(serve(listener, builder.build(), Arc::clone(&state)));
        Self { objects, port, state, runtime: Some(runtime) }
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its URL.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The files that contain the bucket's objects, in order. Their paths end with the names of the objects.
    ///
    /// # Panics
    /// They cannot be listed.
    pub fn objects(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.objects.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() { folders.push(path) } else { found.push(path) }
            }
        }
        found.sort();
        found
    }

    /// Sets what it does with requests from now on. It never fails by itself.
    pub fn set(&self, mode: BucketMode) {
        self.state.mode.send_replace(mode);
    }

    /// How many requests it has answered.
    pub fn answered(&self) -> u64 {
        self.state.answered.load(Ordering::Relaxed)
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        // It may be dropped by a task, which must not wait for threads.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn serve(listener: TcpListener, service: S3Service, state: Arc<State>) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (socket, _) = listener.accept().await?;
        let (service, state) = (service.clone(), Arc::clone(&state));
        tokio::spawn(async move {
            let answer = service_fn(|request| answer(&service, &state, request));
            // A client that disconnects ends only its own connection.
            _ = http1::Builder::new().serve_connection(TokioIo::new(socket), answer).await;
        });
    }
}

async fn answer(
    service: &S3Service,
    state: &State,
    request: Request<Incoming>,
) -> Result<Response<Body>, HttpError> {
    let mut mode = state.mode.subscribe();
    let mode =
        mode.wait_for(|mode| *mode != BucketMode::Hangs).await.map_or(BucketMode::Breaks, |mode| *mode);
    match mode {
        BucketMode::Works | BucketMode::Hangs => {}
        BucketMode::Refuses => {
            let body =
                "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>";
            let mut refusal = Response::new(Body::from(body.to_owned()));
            *refusal.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            return Ok(refusal);
        }
        // An error ends the connection without an answer.
        BucketMode::Breaks => return Err(HttpError::new("the bucket is away".into())),
    }
    state.answered.fetch_add(1, Ordering::Relaxed);
    service.call(request.map(Body::from)).await
}
