//! Videos at upstreams: submits one, failing over to the next upstream; polls its state, and opens its file.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gatewright_config::Kind;
use gatewright_protocol::conversation::{Protocol, Usage};
use gatewright_protocol::{Action, Finished, Report, VideoDimensions, VideoForm};
use http::{HeaderMap, HeaderValue, Uri, header};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::attempt::opened;
use super::attempt_metrics::AttemptMetrics;
use super::document::Patience;
use super::failure::AttemptFailure;
use super::{document, failover, translate_request, unanswered};
use crate::access::refused;
use crate::bounds::memory_budget::MemoryBudget;
use crate::observe::{Metrics, current_span};
use crate::routing::{ModelRoute, Plan, Provider, Routes, UpstreamAttempt};
use crate::upstream::{LookUp, NoAnswer, Request};
use crate::usage::{Charge, MediaUnits};
use crate::webhooks::Fetcher;
use crate::wire::{ApiError, Body, BodyError, Call};

/// Maximum size of an upstream's report on a video.
const MAX_REPORT_BYTES: usize = 1024 * 1024;
/// Maximum memory of a report while it is read.
pub(crate) const MAX_REPORT_MEMORY: usize = 3 * MAX_REPORT_BYTES;
/// Idle timeout within that.
const REPORT_SILENCE: Duration = Duration::from_secs(30);

/// A video that a client requests, with the validated request.
pub(crate) struct VideoRequest {
    pub(crate) call: Call,
    pub(crate) route: Arc<ModelRoute>,
    pub(crate) request: Value,
    pub(crate) duration_s: u32,
    /// What upstreams get in the public format.
    pub(crate) film: VideoDimensions,
}

/// Who makes the video.
pub(crate) enum AcceptedVideo {
    Upstream {
        remote: Remote,
        report: Report,
        /// What the upstream's format can't express.
        dropped: Option<HeaderValue>,
    },
    /// The embedded provider makes it.
    Simulator { attempt: UpstreamAttempt, charge: Charge },
}

/// A video at an upstream.
pub(crate) struct Remote {
    pub(crate) provider: Arc<Provider>,
    /// The mark of the key that submitted it: the video belongs to that key.
    key: Option<i64>,
    form: VideoForm,
    /// The upstream's id.
    id: String,
    /// The id of the client's request.
    request_id: String,
}

/// A video at an upstream, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RemoteRecord {
    /// The name of the upstream.
    upstream: String,
    /// A digest of its address and protocol. None: stored by an earlier version.
    #[serde(default)]
    place: Option<i64>,
    key: Option<i64>,
    form: VideoForm,
    id: String,
    request_id: String,
}

/// Why a stored video can't be polled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PollError {
    #[error("the upstream {0} that generates the video is no longer configured")]
    Gone(String),
    /// The key and the video id are never sent to another server.
    #[error("the upstream {0} that generates the video now has another base_url or kind")]
    Changed(String),
}

/// A file being fetched.
pub(crate) struct FetchedFile {
    /// If reported.
    pub(crate) length: Option<usize>,
    pub(crate) body: Body,
    /// Idle timeout of the body.
    pub(crate) idle_timeout: Duration,
}

/// Submits a video to an upstream of its model. A submitted request continues even if the client disconnects, because the video
/// may be billed.
pub(crate) async fn submit(metrics: &Arc<Metrics>, order: &VideoRequest) -> Result<AcceptedVideo, ApiError> {
    let mut plan = order.route.plan(Some(Protocol::Chat));
    let mut failure = None;
    while let Some(attempt) = plan.next(Instant::now(), rand::random()) {
        if attempt.destination.provider.is_simulator() {
            let charge = order.charge(&attempt)?;
            return Ok(AcceptedVideo::Simulator { attempt, charge });
        }
        match order.ask(metrics, &mut plan, attempt).await? {
            Ok(accepted) => return Ok(accepted),
            Err(failed) => failure = Some(failed),
        }
    }
    Err(unanswered(failure, &plan, &order.route.id, order.call.operation))
}

impl VideoRequest {
    /// Sends the request to one upstream, trying each of its keys if needed. Errors: the request itself is at fault.
    async fn ask(
        &self,
        metrics: &Arc<Metrics>,
        plan: &mut Plan,
        mut attempt: UpstreamAttempt,
    ) -> Result<Result<AcceptedVideo, AttemptFailure>, ApiError> {
        let span = current_span();
        let is_gateway = attempt.destination.provider.endpoint.kind == Kind::Gatewright;
        let form = if is_gateway { VideoForm::Specified } else { VideoForm::Public };
        let outgoing = form.request_out(&self.request, &attempt.destination.model, self.film);
        let strict = translate_request::is_strict(&self.call, &self.route);
        let dropped = translate_request::reported(&outgoing.dropped, strict)?;
        let body: Bytes = outgoing.body.to_string().into();
        loop {
            if self.call.presence.has_ended() {
                return Err(ApiError::client_disconnected());
            }
            let mut charge = self.charge(&attempt)?;
            let mut attempt_metrics =
                AttemptMetrics::at(&attempt, metrics, span.as_ref(), self.call.operation, false);
            let trace = attempt_metrics.trace(&attempt.destination);
            let failure = match self.attempt(&attempt, form, body.clone(), trace.as_ref()).await {
                Ok(report) => {
                    attempt_metrics.answered();
                    attempt.succeeded(Instant::now());
                    charge.complete();
                    let remote = Remote {
                        provider: Arc::clone(&attempt.destination.provider),
                        key: attempt.key().and_then(|key| attempt.destination.provider.endpoint.mark_of(key)),
                        form,
                        id: report.id.clone(),
                        request_id: self.call.request_id.clone(),
                    };
                    return Ok(Ok(AcceptedVideo::Upstream { remote, report, dropped }));
                }
                Err(failure) => {
                    let upstream = &attempt.destination.provider.endpoint;
                    self.call.failed_at.get_or_init(|| Arc::clone(&upstream.name));
                    failure.at(&upstream.label)
                }
            };
            attempt_metrics.failed(&failure);
            drop(attempt_metrics);
            charge.void();
            match failover::after(failure, plan, &mut attempt, &self.route.id) {
                ControlFlow::Continue(()) => {}
                ControlFlow::Break(outcome) => return outcome.map(Err),
            }
        }
    }

    async fn attempt(
        &self,
        attempt: &UpstreamAttempt,
        form: VideoForm,
        body: Bytes,
        trace: Option<&HeaderMap>,
    ) -> Result<Report, AttemptFailure> {
        let request = Request {
            protocol: Protocol::Chat,
            action: Action::Video,
            model: &attempt.destination.model,
            body,
            form: None,
            client: &self.call.headers,
            relayed: true,
            id: &self.call.request_id,
            trace,
        };
        let provider = &attempt.destination.provider;
        report(provider, form, provider.endpoint.send(request, attempt.key()).await).await
    }

    /// Opens the charge for an attempt. Errors: the key's budget doesn't cover it.
    fn charge(&self, attempt: &UpstreamAttempt) -> Result<Charge, ApiError> {
        let upstream = Arc::clone(&attempt.destination.provider.endpoint.name);
        let (caller, model) = (self.call.caller.clone(), Arc::clone(&self.route.id));
        let charge = Charge::new(caller, model, upstream, self.call.started);
        let charge = charge.priced(attempt.destination.rates.clone()).shown_in(&self.call.consumed);
        let media = MediaUnits { video_seconds: self.duration_s.into(), ..MediaUnits::default() };
        // The tokens of a video can't be estimated.
        let charge = charge.reserve(Usage::default(), media);
        let mut charge = charge.map_err(|exceeded| refused(exceeded, &self.call.caller))?;
        charge.set_usage(Usage::default());
        charge.set_media(media);
        Ok(charge)
    }
}

impl Remote {
    /// Restores a stored video.
    pub(crate) fn of(record: &RemoteRecord, routes: &Routes) -> Result<Self, PollError> {
        let RemoteRecord { upstream, place, key, form, id, request_id } = record.clone();
        let Some(provider) = routes.provider(&upstream).map(Arc::clone) else {
            return Err(PollError::Gone(upstream));
        };
        if place.is_some_and(|place| place != provider.place()) {
            return Err(PollError::Changed(upstream));
        }
        Ok(Self { provider, key, form, id, request_id })
    }

    pub(crate) fn record(&self) -> RemoteRecord {
        RemoteRecord {
            upstream: self.provider.endpoint.name.to_string(),
            place: Some(self.provider.place()),
            key: self.key,
            form: self.form,
            id: self.id.clone(),
            request_id: self.request_id.clone(),
        }
    }

    /// Polls the state of the video.
    pub(crate) async fn look_up(&self, routes: &Routes) -> Result<Report, AttemptFailure> {
        let provider = routes.current(&self.provider);
        let look_up = LookUp::State(&self.id);
        let answer = provider.endpoint.look_up(look_up, self.key, &self.request_id).await;
        report(&provider, self.form, answer).await
    }

    /// Opens the file of the finished video: at the upstream, or at the address it returned. The key is only ever sent to the
    /// upstream.
    pub(crate) async fn open(
        &self,
        routes: &Routes,
        fetcher: &Fetcher,
        finished: &Finished,
    ) -> Result<FetchedFile, AttemptFailure> {
        let provider = routes.current(&self.provider);
        let endpoint = &provider.endpoint;
        let Some(url) = &finished.url else {
            let answer = endpoint.look_up(LookUp::Content(&self.id), self.key, &self.request_id).await;
            return content(&provider, answer).await;
        };
        open_url(&provider, fetcher, url, &self.request_id).await
    }
}

/// Opens a file at a URL that an upstream returned: at the upstream itself, or at a public address. The URL grants access by
/// itself (8), so no key is sent.
pub(super) async fn open_url(
    provider: &Provider,
    fetcher: &Fetcher,
    url: &str,
    request_id: &str,
) -> Result<FetchedFile, AttemptFailure> {
    match url.parse::<Uri>() {
        Ok(address) if provider.endpoint.has_origin_of(&address) => {
            let answer = provider.endpoint.look_up(LookUp::File(&address), None, request_id).await;
            content(provider, answer).await
        }
        _ => content(provider, fetcher.open(url).await.map_err(NoAnswer::Broken)).await,
    }
}

/// An upstream's report on a video.
async fn report(
    provider: &Provider,
    form: VideoForm,
    answer: Result<http::Response<gatewright_connect::Body>, NoAnswer>,
) -> Result<Report, AttemptFailure> {
    let endpoint = &provider.endpoint;
    let redactor = &endpoint.redactor;
    let (_, body) = opened(answer, Protocol::Chat, redactor).await?;
    let silence = endpoint.idle_timeout.min(REPORT_SILENCE);
    let patience = Patience { begin: silence, idle: silence };
    // A submission has reserved it, and few polls run at a time.
    let mut share = MemoryBudget::new(MAX_REPORT_MEMORY).share();
    let reading = document::read(body, MAX_REPORT_BYTES, patience, redactor, &mut share);
    let document = reading.await?;
    form.report_in(&document).map_err(|malformed| AttemptFailure::broken(&malformed.0, redactor))
}

/// The file in a response.
async fn content<B>(
    provider: &Provider,
    answer: Result<http::Response<B>, NoAnswer>,
) -> Result<FetchedFile, AttemptFailure>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BodyError>,
{
    let (head, body) = opened(answer, Protocol::Chat, &provider.endpoint.redactor).await?;
    // The length of an encoded file isn't that of its content.
    let length = head.headers.get(header::CONTENT_LENGTH);
    let length = length.filter(|_| !head.headers.contains_key(header::CONTENT_ENCODING));
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    Ok(FetchedFile { length, body, idle_timeout: provider.endpoint.idle_timeout })
}
