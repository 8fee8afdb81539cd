//! Video generation tasks (2.6, 2.7, 2.9) and their states (section 3). Providers work on their own: the gateway answers
//! with a task of its own at once, and follows the video to its end.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use gatewright::ErrorCode;
use gatewright::limits::Rules;
use serde_json::json;
use tokio::sync::oneshot;
use tracing::{Instrument as _, Span};
use uuid::Uuid;

use super::following::Following;
use super::record::record_of;
use super::simulated::Job;
use super::wanted::Wanted;
use crate::app::App;
use crate::clock::{unix_seconds, whole_seconds};
use crate::config::ModelKind;
use crate::conversation::Usage;
use crate::models;
use crate::observe::Origin;
use crate::outgoing::Delivery;
use crate::protocols::{Film, Stage};
use crate::relay::{self, Accepted, Order, Remote};
use crate::routing::Claim;
use crate::store::{Room, State, Task};
use crate::usage::Charge;
use crate::wire::json::text;
use crate::wire::{ApiError, Call, Response, json_response};

/// `POST /v1/videos/generations`: returns the task, processing (section 3) or, if it has to wait for others, pending.
pub(crate) async fn create(app: &Arc<App>, call: Call) -> Result<Response, ApiError> {
    let (order, wanted) = order(app, call)?;
    let delivery = match order.request["webhook_url"].as_str() {
        Some(url) => Some(app.deliveries.accept(url)?),
        None => None,
    };
    let task = Task {
        id: format!("video_{}", Uuid::new_v4().simple()),
        owner: Arc::clone(order.call.caller.id()),
        created: unix_seconds(),
        model: text(&order.request["model"]).into(),
        state: State::Pending,
    };
    // Before anybody is asked: a video without a task would be lost.
    app.tasks.add(task.clone(), app.hundredths_of_key())?;
    let public = app.public_url(&order.call);
    let work = Work { app: Arc::clone(app), wanted, public, delivery, task };
    let (told, answer) = oneshot::channel();
    app.tasks.spawn(work.run(order, told, Span::current()));
    let stopping = || ApiError::new(&ErrorCode::SERVER_IS_OVERLOADED, "the gateway is shutting down");
    answer.await.unwrap_or_else(|_| Err(stopping()))
}

/// `GET /v1/videos/generations/{task_id}`.
pub(crate) fn retrieve(app: &App, call: &Call) -> Result<Response, ApiError> {
    let id = call.path("task_id");
    let task = app.tasks.get(call.caller.id(), id).ok_or_else(|| {
        ApiError::new(&ErrorCode::NOT_FOUND, format!("there is no video task {id:?}")).param("task_id")
    })?;
    Ok(json_response(&record_of(&task, &app.files, &app.public_url(call))))
}

/// What a client asks for, checked by the limits of its model, with duration and size as they are or are assumed.
fn order(app: &App, call: Call) -> Result<(Order, Wanted), ApiError> {
    let body = call.json_body()?;
    let routes = app.routes.load();
    let route = routes.find_of(ModelKind::Video, text(&body["model"])).map(Arc::clone);
    let limits = route.as_ref().and_then(|route| route.model.limits.clone());
    let rules = Rules::default().private_webhooks(app.config.allow_private_webhooks);
    let request = match &route {
        Some(_) => call.checked_of(body, limits.as_deref(), rules)?,
        None => call.checked_body_by(rules)?,
    };
    let route = route.ok_or_else(|| models::unserved(&routes, text(&request["model"]), call.operation))?;
    let wanted = Wanted::of(&call, &request)?;
    // The defaults of the specification are those of its models. Others have defaults of their own.
    let states = |members: &[&str]| limits.is_some() || members.iter().any(|name| !request[*name].is_null());
    let film = Film {
        duration_s: states(&["duration"]).then_some(wanted.duration_s),
        size: states(&["resolution", "aspect_ratio"]).then_some((wanted.size.0.into(), wanted.size.1.into())),
    };
    Ok((Order { call, route, request, film }, wanted))
}

/// The work on a task, from its submission to its notification.
struct Work {
    app: Arc<App>,
    task: Task,
    wanted: Wanted,
    /// Scheme, host and port of the file URL.
    public: String,
    delivery: Option<Delivery>,
}

/// Who makes the video.
enum Making {
    Simulated(Job),
    Upstream {
        remote: Remote,
        /// For its file.
        room: Option<Room>,
        /// What its upstream said at first.
        first: Stage,
    },
}

impl Work {
    /// `told`: for the response to the submission. The client may have left: the video is followed all the same. `span`:
    /// of the client's request, which is over once that is told.
    async fn run(self, order: Order, told: oneshot::Sender<Result<Response, ApiError>>, span: Span) {
        let work = async {
            match self.submit(order).instrument(span).await {
                Ok((making, response)) => {
                    _ = told.send(Ok(response));
                    self.end(making).await;
                }
                Err(error) => {
                    self.app.tasks.remove(&self.task.id);
                    _ = told.send(Err(error));
                }
            }
        };
        let work = AssertUnwindSafe(work).catch_unwind();
        tokio::select! {
            worked = work => if worked.is_err() {
                // The message of the panic went to standard error.
                tracing::error!(task = &*self.task.id, "a video task panicked");
                self.app.tasks.advance(&self.task.id, State::failed("the gateway failed"));
            },
            () = self.app.tasks.stopped() => {
                let task = &*self.task.id;
                tracing::warn!(task, webhook = self.delivery.is_some(), "abandoned: the gateway stopped");
            }
        }
    }

    /// Finds somebody who makes the video.
    async fn submit(&self, order: Order) -> Result<(Making, Response), ApiError> {
        let model = Arc::clone(&order.route.id);
        // Reserved before the work: without room for its file, the video would be useless. The embedded provider knows
        // better how much it needs.
        let room = if order.route.is_embedded() {
            None
        } else {
            Some(self.app.files.reserve(self.wanted.expected_bytes())?)
        };
        match relay::submit(&order).await? {
            Accepted::Simulator { claim, charge } => self.simulate(&order, claim, charge),
            Accepted::Upstream { remote, report, dropped } => {
                let state = match report.stage {
                    Stage::Waiting => State::Pending,
                    _ => State::Processing,
                };
                let usual = || whole_seconds(self.app.tasks.usual_time(&model));
                let estimate = report.estimated_time.unwrap_or_else(usual);
                let endpoint = &remote.provider.endpoint;
                let origin = Origin { model, upstream: Arc::clone(&endpoint.name) };
                let mut response = self.submitted(state, estimate, origin);
                response.headers_mut().insert(relay::UPSTREAM_HEADER, endpoint.label.clone());
                if let Some(dropped) = dropped {
                    response.headers_mut().insert(relay::DROPPED_HEADER, dropped);
                }
                Ok((Making::Upstream { remote, room, first: report.stage }, response))
            }
        }
    }

    fn simulate(
        &self,
        order: &Order,
        mut claim: Claim,
        mut charge: Charge,
    ) -> Result<(Making, Response), ApiError> {
        let Wanted { duration_s, size } = self.wanted;
        let estimate = self.app.config.video_time + self.app.tasks.wait(duration_s);
        let model = &claim.destination.model;
        // Its own limits hold, too, where the configuration gives the model those of another.
        let rules = Rules::default().private_webhooks(self.app.config.allow_private_webhooks);
        let prepared = models::video_model(model, order.call.operation)
            .and_then(|_| order.call.checked_body_of(Some(model), rules))
            .and_then(|request| Job::new(&self.app, text(&request["prompt"]), size, duration_s));
        let job = match prepared {
            Ok(job) => job,
            Err(error) => {
                charge.void();
                return Err(error);
            }
        };
        claim.succeeded(std::time::Instant::now());
        charge.told(Usage::default());
        charge.complete();
        let upstream = Arc::clone(&claim.destination.provider.endpoint.name);
        let origin = Origin { model: Arc::clone(&order.route.id), upstream };
        let response = self.submitted(job.state(), whole_seconds(estimate), origin);
        Ok((Making::Simulated(job), response))
    }

    /// The response to the submission. `estimate`: in seconds; the source states no unit (2.7).
    fn submitted(&self, state: State, estimate: u64, origin: Origin) -> Response {
        let task = Task { state, ..self.task.clone() };
        self.app.tasks.advance(&task.id, task.state.clone());
        let mut record = record_of(&task, &self.app.files, &self.public);
        record["estimated_time"] = json!(estimate);
        let mut response = json_response(&record);
        response.extensions_mut().insert(origin);
        response
    }

    /// Ends the task and notifies whom the client named.
    async fn end(&self, making: Making) {
        let id = &*self.task.id;
        let state = match making {
            Making::Simulated(job) => job.run(&self.app, id, self.app.config.video_time).await,
            Making::Upstream { remote, room, first } => {
                Following::new(&self.app, &self.task, remote, self.wanted, room).run(first).await
            }
        };
        let Some(task) = self.app.tasks.advance(id, state) else { return };
        if let Some(delivery) = &self.delivery {
            delivery.send(id, &record_of(&task, &self.app.files, &self.public)).await;
        }
    }
}
