//! The service of S3 in which the gateways' files lie. It is another maker's, and verifies the signature of each
//! request.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Context as _, Result};
use axum::http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, HttpError};
use s3s_fs::FileSystem;
use tokio::net::TcpListener;

pub(crate) const NAME: &str = "torture";
pub(crate) const ACCESS_KEY: &str = "torture-access";
pub(crate) const SECRET_KEY: &str = "torture-secret-5b1e";

/// See the module.
#[derive(Default)]
pub(crate) struct Bucket {
    refuses: AtomicBool,
    answered: AtomicU64,
}

impl Bucket {
    /// Starts the service at a free port of this machine, with an empty bucket in a folder. Gives the port, too.
    pub(crate) async fn start(folder: &Path) -> Result<(Arc<Self>, u16)> {
        std::fs::create_dir_all(folder.join(NAME))?;
        let files = FileSystem::new(folder).map_err(|error| anyhow::anyhow!("{error:?}"))?;
        let mut builder = S3ServiceBuilder::new(files);
        builder.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let service = builder.build();
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no free port")?;
        let port = listener.local_addr()?.port();
        let bucket = Arc::new(Self::default());
        tokio::spawn(serve(listener, service, Arc::clone(&bucket)));
        Ok((bucket, port))
    }

    /// Whether it refuses everything.
    pub(crate) fn refuse(&self, refuses: bool) {
        self.refuses.store(refuses, Ordering::Relaxed);
    }

    /// How many requests it has answered.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    async fn answer(
        &self,
        service: &S3Service,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, HttpError> {
        if self.refuses.load(Ordering::Relaxed) {
            let body =
                "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>";
            let mut refusal = Response::new(Body::from(body.to_owned()));
            *refusal.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            return Ok(refusal);
        }
        self.answered.fetch_add(1, Ordering::Relaxed);
        service.call(request.map(Body::from)).await
    }
}

async fn serve(listener: TcpListener, service: S3Service, bucket: Arc<Bucket>) {
    while let Ok((socket, _)) = listener.accept().await {
        let (service, bucket) = (service.clone(), Arc::clone(&bucket));
        tokio::spawn(async move {
            let answer = service_fn(|request| bucket.answer(&service, request));
            // A client that leaves ends only its own connection.
            _ = http1::Builder::new().serve_connection(TokioIo::new(socket), answer).await;
        });
    }
}
