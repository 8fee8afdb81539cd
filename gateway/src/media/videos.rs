//! Video generation tasks (2.6, 2.7, 2.9) and their states (section 3). Providers work asynchronously: the gateway immediately
//! returns a task of its own, and follows the video to its end.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use gatewright::ErrorCode;
use gatewright::limits::Rules;
use gatewright::redact::Redactor;
use gatewright_config::ModelKind;
use gatewright_protocol::json::text;
use gatewright_protocol::{VideoDimensions, VideoStage, public_seconds};
use gatewright_store::{FileName, ResumedTask, Task, TaskState};
use gatewright_system::clock::{millis, unix_seconds, whole_seconds};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::{Instrument as _, Span};
use uuid::Uuid;

use super::poller::PolledVideo;
use super::record::record_of;
use super::simulated::Job;
use super::task_payload::{self, Receiver, StoredPayload, TaskPayload, VideoProvider};
use super::video_params::VideoParams;
use crate::app::App;
use crate::models;
use crate::observe::Origin;
use crate::relay::{self, AcceptedVideo, AttemptFailure, Remote, VideoRequest};
use crate::routing::UpstreamAttempt;
use crate::storage::FileReservation;
use crate::tasks::{LeaseGuard, VideoInProgress};
use crate::usage::Charge;
use crate::webhooks::notice;
use crate::wire::{ApiError, Call, Response, json_response};

/// `POST /v1/videos/generations`: returns the task, always as `processing` (sections 3 and 4).
pub(crate) async fn create(app: &Arc<App>, call: Call) -> Result<Response, ApiError> {
    let (order, params) = order(app, call)?;
    let webhook = order.request["webhook_url"].as_str().map(str::to_owned);
    if let Some(url) = &webhook {
        app.webhooks.outbox.check(url)?;
    }
    let task = Task {
        id: format!("video_{}", Uuid::new_v4().simple()),
        owner: Arc::clone(order.call.caller.id()),
        created: unix_seconds(),
        model: text(&order.request["model"]).into(),
        state: TaskState::Pending,
    };
    // Before any upstream gets the request: a video without a task would be lost.
    let lease = app.task_runner.add(&task, webhook.is_some(), app.percent_of_key()).await?;
    let public = app.public_url(&order.call);
    let work =
        VideoWork { app: Arc::clone(app), task, lease, params, public, webhook, made: Mutex::default() };
    let (reply, answer) = oneshot::channel();
    app.task_runner.spawn(work.begin(order, reply, Span::current()));
    answer.await.map_err(|_| ApiError::new(&ErrorCode::SERVER_IS_OVERLOADED, "the gateway is shutting down"))
}

/// Resumes a task that another process left.
pub(super) fn resume(app: &Arc<App>, resumed: ResumedTask, lease: LeaseGuard) {
    let ResumedTask { task, task_payload, .. } = resumed;
    let task_payload = match StoredPayload::read(&task_payload, lease.now()) {
        StoredPayload::TaskPayload(task_payload) => task_payload,
        StoredPayload::Newer => {
            // A gateway that can read it takes it over when this lease expires.
            tracing::warn!(task = task.id, "a video task requires a newer gateway");
            return;
        }
        StoredPayload::Unreadable(error) => {
            tracing::error!(task = task.id, %error, "a stored video task cannot be read");
            let task = Task { state: TaskState::failed("the stored task cannot be read"), ..task };
            let notice = Receiver::of(&task_payload).map(|Receiver { public, webhook }| {
                notice(&task, &webhook, &record_of(&task, &app.storage.files, &public))
            });
            app.task_runner.spawn(async move { _ = lease.end(&task.state, notice.as_ref()).await });
            return;
        }
    };
    tracing::info!(task = task.id, "resuming a video task");
    let TaskPayload { version: _, params, public, webhook, deadline, maker } = task_payload;
    let deadline = lease.at(deadline);
    let work =
        VideoWork { app: Arc::clone(app), task, lease, params, public, webhook, made: Mutex::default() };
    app.task_runner.spawn(work.go_on(maker, deadline));
}

/// `GET /v1/videos/generations/{task_id}`.
pub(crate) async fn retrieve(app: &App, call: &Call) -> Result<Response, ApiError> {
    let id = call.path("task_id");
    let task = app.task_runner.find(call.caller.id(), id).await?.ok_or_else(|| {
        ApiError::new(&ErrorCode::NOT_FOUND, format!("there is no video task {id:?}")).param("task_id")
    })?;
    Ok(json_response(&record_of(&task, &app.storage.files, &app.public_url(call))))
}

/// The client's request, checked against the limits of its model, with explicit or default duration and size.
fn order(app: &App, call: Call) -> Result<(VideoRequest, VideoParams), ApiError> {
    let body = call.json_body()?;
    let routes = app.live.routes.load();
    let route = routes.find_of(ModelKind::Video, text(&body["model"])).map(Arc::clone);
    let limits = route.as_ref().and_then(|route| route.model.limits.clone());
    let rules = Rules::default().private_webhooks(app.config.allow_private_webhooks);
    let request = match &route {
        Some(_) => call.checked_of(body, limits.as_deref(), rules)?,
        None => call.checked_body_by(rules)?,
    };
    let route = route.ok_or_else(|| models::unserved(&routes, text(&request["model"]), call.operation))?;
    let params = VideoParams::of(&call, &request)?;
    // The defaults of the specification only apply to its own models. Others have their own defaults.
    let states = |members: &[&str]| limits.is_some() || members.iter().any(|name| !request[*name].is_null());
    let film = VideoDimensions {
        duration_s: states(&["duration"]).then_some(params.duration_s),
        size: states(&["resolution", "aspect_ratio"]).then_some((params.size.0.into(), params.size.1.into())),
    };
    let duration_s = match film.duration_s {
        Some(duration_s) => duration_s,
        // What the provider makes of it is what it bills.
        None => public_seconds(&request).unwrap_or(params.duration_s),
    };
    Ok((VideoRequest { call, route, request, duration_s, film }, params))
}

/// The work on a task, until its end.
struct VideoWork {
    app: Arc<App>,
    task: Task,
    lease: LeaseGuard,
    params: VideoParams,
    /// Scheme, host and port of the file URL.
    public: String,
    /// The webhook to notify of its end.
    webhook: Option<String>,
    /// Its file, until the task has it.
    made: Mutex<Option<FileName>>,
}

/// How the video is made.
enum Making {
    Simulated(Job),
    Upstream {
        remote: Remote,
        /// Space for its file.
        room: Option<FileReservation>,
        /// The first stage that its upstream reported.
        first: VideoStage,
        /// Counts it among the videos in progress at its upstream.
        under_way: VideoInProgress,
    },
}

impl VideoWork {
    /// `reply`: receives the response to the submission. If the client has disconnected, the video is still followed. `span`: of
    /// the client's request, which ends with that response.
    async fn begin(self, order: VideoRequest, reply: oneshot::Sender<Response>, span: Span) {
        let work = async {
            let submitted = self.submit(&order).instrument(span).await;
            match submitted {
                Ok((making, deadline, response)) => {
                    _ = reply.send(response);
                    // The memory of the request isn't needed while the video is made.
                    drop(order);
                    self.end(making, deadline).await;
                }
                Err(error) => {
                    self.lease.forget().await;
                    _ = reply.send(relay::failed(&order.call, Arc::clone(&order.route.id), error));
                }
            }
        };
        self.guard(Box::pin(work)).await;
    }

    /// Continues where another process stopped.
    async fn go_on(self, maker: VideoProvider, deadline: Instant) {
        let work = async {
            let making = match maker {
                VideoProvider::Simulator { prompt } => {
                    let VideoParams { duration_s, size } = self.params;
                    let job = Job::new(&self.app, &self.task.owner, &prompt, size, duration_s).await;
                    job.map(Making::Simulated)
                }
                VideoProvider::Upstream(record) => {
                    let remote = Remote::of(&record, &self.app.live.routes.load());
                    let first = match self.task.state {
                        TaskState::Pending => VideoStage::Waiting,
                        _ => VideoStage::Working,
                    };
                    let under_way = self.under_way();
                    let making =
                        remote.map(|remote| Making::Upstream { remote, room: None, first, under_way });
                    making.map_err(|why| ApiError::new(&ErrorCode::SERVER_ERROR, why.to_string()))
                }
            };
            match making {
                Ok(making) => self.end(making, deadline).await,
                // There may be space, or the upstream may be available, when the task is taken over again.
                Err(error) if Instant::now() < deadline => {
                    tracing::warn!(task = self.task.id, "a video task is delayed: {error}");
                }
                Err(error) => self.finish(TaskState::failed(error.to_string())).await,
            }
        };
        self.guard(Box::pin(work)).await;
    }

    /// Works until the task is taken over or the gateway stops. A panic ends the task.
    async fn guard(&self, work: impl Future<Output = ()>) {
        let work = async {
            if AssertUnwindSafe(work).catch_unwind().await.is_err() {
                // The panic message went to standard error.
                tracing::error!(task = self.task.id, "a video task panicked");
                self.finish(TaskState::failed("the gateway failed")).await;
            }
        };
        tokio::select! {
            // Work that has just recorded its file says so before the task is given up, so that the file can be removed.
            biased;
            () = work => self.discard().await,
            () = self.lease.lost() => {
                tracing::warn!(task = self.task.id, "another gateway took over the video task");
                self.discard().await;
            }
            () = self.app.task_runner.stopped() => {
                tracing::warn!(task = self.task.id, "abandoned: the gateway stopped");
                self.lease.leave();
            }
        }
    }

    /// Submits the video to the embedded provider or an upstream. Also returns its deadline.
    async fn submit(&self, order: &VideoRequest) -> Result<(Making, Instant, Response), ApiError> {
        let model = Arc::clone(&order.route.id);
        // The request as a tree, and as it is sent, and the provider's report: without room for that, the provider might charge
        // for a video that nobody gets.
        let mut share = self.app.share_of(&order.call.caller);
        let weight = gatewright::json_weight(&order.call.body).saturating_add(order.call.body.len());
        let report = if order.route.is_embedded() { 0 } else { relay::MAX_REPORT_MEMORY };
        share
            .hold(weight.saturating_add(report))
            .map_err(|why| AttemptFailure::no_room(why, &Redactor::default()).into_error())?;
        // Reserved before the work: without space for its file, the video would be useless. The embedded provider knows better
        // how much it needs.
        let room = if order.route.is_embedded() {
            None
        } else {
            Some(self.app.room_for_files(&self.task.owner, self.params.expected_bytes()).await?)
        };
        match relay::submit(&self.app.telemetry.metrics, order).await? {
            AcceptedVideo::Simulator { attempt, charge } => self.simulate(order, attempt, charge).await,
            AcceptedVideo::Upstream { remote, report, dropped } => {
                let state = match report.stage {
                    VideoStage::Waiting => TaskState::Pending,
                    _ => TaskState::Processing,
                };
                let estimates = &self.app.task_runner.schedule.estimates;
                let usual = || estimates.of(&model, self.params.duration_s, state == TaskState::Pending);
                let estimate = report.estimated_time.unwrap_or_else(|| whole_seconds(usual()));
                // Later videos queue behind it.
                let mut under_way = self.under_way();
                if state == TaskState::Pending {
                    under_way.waits();
                } else {
                    under_way.works();
                }
                let endpoint = &remote.provider.endpoint;
                let origin = Origin::new(model, Arc::clone(&endpoint.name));
                let maker = VideoProvider::Upstream(remote.record());
                let (deadline, mut response) = self.accept(state, maker, estimate, origin).await?;
                response.headers_mut().insert(relay::UPSTREAM_HEADER, endpoint.label.clone());
                if let Some(dropped) = dropped {
                    response.headers_mut().insert(relay::DROPPED_HEADER, dropped);
                }
                Ok((Making::Upstream { remote, room, first: report.stage, under_way }, deadline, response))
            }
        }
    }

    fn under_way(&self) -> VideoInProgress {
        self.app.task_runner.schedule.estimates.under_way(&self.task.model, self.params.duration_s)
    }

    async fn simulate(
        &self,
        order: &VideoRequest,
        mut attempt: UpstreamAttempt,
        mut charge: Charge,
    ) -> Result<(Making, Instant, Response), ApiError> {
        let VideoParams { duration_s, size } = self.params;
        let estimate = self.app.config.video_time + self.app.task_runner.schedule.wait(duration_s);
        let model = &attempt.destination.model;
        // Its own limits also apply if the configuration gives the model those of another.
        let rules = Rules::default().private_webhooks(self.app.config.allow_private_webhooks);
        let prepared = models::video_model(model, order.call.operation)
            .and_then(|_| order.call.checked_body_of(Some(model), rules));
        let prepared = match prepared {
            Ok(request) => {
                let prompt = text(&request["prompt"]).to_owned();
                let job = Job::new(&self.app, &self.task.owner, &prompt, size, duration_s).await;
                job.map(|job| (job, prompt))
            }
            Err(error) => Err(error),
        };
        let (job, prompt) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                charge.void();
                return Err(error.header(relay::SIMULATED_HEADER, relay::SIMULATED));
            }
        };
        attempt.succeeded(std::time::Instant::now());
        // Before it is accepted: then this gateway may end at any moment.
        charge.complete();
        let upstream = Arc::clone(&attempt.destination.provider.endpoint.name);
        let origin = Origin::new(Arc::clone(&order.route.id), upstream);
        let maker = VideoProvider::Simulator { prompt };
        let accepted = self.accept(job.state(), maker, whole_seconds(estimate), origin).await;
        let (deadline, mut response) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Nobody makes this video.
                charge.void();
                return Err(error);
            }
        };
        response.headers_mut().insert(relay::SIMULATED_HEADER, relay::SIMULATED);
        Ok((Making::Simulated(job), deadline, response))
    }

    /// Accepts the task, which can't be lost from now on. Returns its deadline and the response to the submission. `estimate`: in
    /// seconds; the source states no unit (2.7).
    async fn accept(
        &self,
        state: TaskState,
        maker: VideoProvider,
        estimate: u64,
        origin: Origin,
    ) -> Result<(Instant, Response), ApiError> {
        // A gateway that takes the task over may have another clock.
        let deadline = self.lease.now().saturating_add(millis(self.app.config.video_timeout));
        let task_payload = TaskPayload {
            version: task_payload::VERSION,
            params: self.params,
            public: self.public.clone(),
            webhook: self.webhook.clone(),
            deadline,
            maker,
        };
        let task_payload = serde_json::to_string(&task_payload).expect("plain values");
        self.lease.accept(&state, &task_payload).await?;
        // A task that waits for a free slot or at its provider is pending in look-ups alone.
        let task = Task { state: TaskState::Processing, ..self.task.clone() };
        let mut record = record_of(&task, &self.app.storage.files, &self.public);
        record["estimated_time"] = json!(estimate);
        let mut response = json_response(&record);
        response.extensions_mut().insert(origin);
        Ok((self.lease.at(deadline), response))
    }

    /// Follows the video to its end.
    async fn end(&self, making: Making, deadline: Instant) {
        let state = match making {
            Making::Simulated(job) => {
                job.run(&self.app, &self.lease, self.app.config.video_time, deadline).await
            }
            Making::Upstream { remote, room, first, under_way } => {
                let Self { app, task, lease, params, .. } = self;
                let following = PolledVideo::new(app, task, lease, remote, *params, room, under_way);
                following.run(first, deadline).await
            }
        };
        self.finish(state).await;
    }

    /// Ends the task and queues the notification that the client requested.
    async fn finish(&self, state: TaskState) {
        let task = Task { state, ..self.task.clone() };
        let notice = self.webhook.as_ref().map(|url| {
            let record = record_of(&task, &self.app.storage.files, &self.public);
            notice(&task, url, &record)
        });
        if let TaskState::Completed(output) = &task.state {
            *self.made() = Some(output.file.name.clone());
        }
        if self.lease.end(&task.state, notice.as_ref()).await {
            self.made().take();
        }
    }

    /// Deletes the file if the task didn't take it, because another process has ended or taken over the task; otherwise it would
    /// count for an hour. A lost task stays lost, even for an end that is still on its way to the store; if only the store's
    /// reply was lost, the task has the file.
    async fn discard(&self) {
        let Some(file) = self.made().take() else { return };
        let Task { id, owner, .. } = &self.task;
        match self.app.task_runner.find(owner, id).await {
            Ok(Some(Task { state: TaskState::Completed(output), .. })) if output.file.name == file => {}
            Ok(_) => self.app.storage.files.discard(file).await,
            // It will expire.
            Err(_) => {}
        }
    }

    fn made(&self) -> MutexGuard<'_, Option<FileName>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gatewright_store::{FileKind, Output, StoredFile};

    use super::*;
    use crate::server::Embedded;
    use crate::storage::LIFETIME;
    use gatewright_config::Config;

    const HOUR: Duration = Duration::from_hours(1);

    /// A task in progress with a file. Its lease expires soon after it is no longer renewed.
    async fn work(gateway: &Embedded) -> (VideoWork, StoredFile) {
        let app = Arc::clone(gateway.app());
        let task = Task {
            id: "video_1".to_owned(),
            owner: "default".into(),
            created: unix_seconds(),
            model: "video_model_3".into(),
            state: TaskState::Pending,
        };
        let room = app.room_for_files(&task.owner, 4).await.expect("room");
        let files = room.keep(FileKind::Mp4, vec![b"film".to_vec()], LIFETIME).await.expect("it is kept");
        let lease = app.task_runner.add(&task, false, 100).await.expect("a place");
        lease.accept(&TaskState::Processing, "").await.expect("accepted");
        let params = VideoParams { duration_s: 3, size: (1280, 720) };
        let (public, webhook, made) = Default::default();
        (VideoWork { app, task, lease, params, public, webhook, made }, files[0].clone())
    }

    fn gateway() -> Embedded {
        let video_lease = Duration::from_millis(1);
        Embedded::new(Config { video_lease, ..Config::default() }).expect("a gateway")
    }

    fn completed(file: &StoredFile) -> TaskState {
        TaskState::Completed(Output { file: file.clone(), duration_s: 3, size: (1280, 720) })
    }

    async fn is_there(work: &VideoWork, file: &StoredFile) -> bool {
        let is_recorded = work.app.storage.store.has_file(&file.name).await.expect("an answer");
        let address = work.app.storage.files.address(file);
        let (path, query) = address.split_once('?').expect("a query");
        let query: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let name = path.rsplit_once('/').expect("a path").1;
        assert_eq!(work.app.storage.files.open(name, &query).await.is_ok(), is_recorded);
        is_recorded
    }

    #[tokio::test]
    async fn file_of_a_task_taken_over_by_another_process_is_removed() {
        let gateway = gateway();
        let (work, file) = work(&gateway).await;
        // The lease is renewed until then.
        let taken = loop {
            std::thread::sleep(Duration::from_millis(5));
            let taken = work.app.storage.store.resume_tasks(HOUR, 10).await.expect("an answer");
            if !taken.is_empty() {
                break taken;
            }
        };
        assert_eq!(taken.len(), 1);
        assert!(is_there(&work, &file).await);
        work.guard(work.finish(completed(&file))).await;
        assert!(!is_there(&work, &file).await);
        let goes_on =
            work.app.task_runner.find("default", "video_1").await.expect("an answer").expect("a task");
        assert_eq!(goes_on.state, TaskState::Processing);
    }

    #[tokio::test]
    async fn file_is_kept_when_the_ended_task_is_ended_again() {
        let gateway = gateway();
        let (work, file) = work(&gateway).await;
        assert!(work.lease.end(&completed(&file), None).await);
        // The end is retried.
        work.guard(work.finish(completed(&file))).await;
        assert!(is_there(&work, &file).await);
    }
}
