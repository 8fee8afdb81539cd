//! The state that all requests of a gateway share: configuration, access control and stores.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arc_swap::{ArcSwap, ArcSwapOption};
use gatewright::webhook::Secret;
use gatewright_config::{Config, ModelConfig, UpstreamConfig};
use gatewright_store::{AnswerQuota, DurableStore, Sealer, random_key};
use http::header;

use crate::access::{ApiKey, Authenticator, ConfiguredKeyChanges, Data, Registry, UsageWriter, start};
use crate::bounds::memory_budget::{MemoryBudget, Reservation};
use crate::counters::SharedCounters;
use crate::fault::FailedOnce;
use crate::observe::{Metrics, Recent};
use crate::routing::{InvalidRoutes, Routes};
use crate::shared::Shared;
#[cfg(feature = "console")]
use crate::sign_in::SignIn;
use crate::storage::{self, GeneratedFiles, History, HistoryKeeper, ProviderObjects, Replays};
use crate::tasks::TaskRunner;
use crate::usage::{Caller, FollowedResponses, Ledger};
use crate::webhooks::{Fetcher, Outbox};
use crate::wire::{ApiError, Call};
use crate::work::BlockingPool;

/// The state of a gateway, without its socket.
pub(crate) struct App {
    /// The configuration at startup. Settings that may change at run time are in the other members.
    pub(crate) config: Config,
    pub(crate) live: LiveConfig,
    pub(crate) access: Access,
    pub(crate) storage: Storage,
    pub(crate) webhooks: Webhooks,
    pub(crate) task_runner: Arc<TaskRunner>,
    pub(crate) resources: Resources,
    pub(crate) telemetry: Telemetry,
    /// The requests that a fault has already failed once.
    pub(crate) failed_once: FailedOnce,
    /// Whether the gateway is about to stop.
    pub(crate) draining: AtomicBool,
    #[cfg(feature = "console")]
    pub(crate) sign_in: SignIn,
    address: SocketAddr,
}

/// What a reload or a shared configuration changes.
pub(crate) struct LiveConfig {
    pub(crate) routes: ArcSwap<Routes>,
    /// Set while the running configuration differs from the file, because the file was rejected.
    pub(crate) stale: ArcSwapOption<RejectedConfig>,
    /// Whether the file has changes that take effect only after a restart.
    pub(crate) needs_restart: AtomicBool,
    /// State of the shared configuration, if this gateway uses it.
    pub(crate) shared: Option<Shared>,
}

/// Who may call, and what they have used.
pub(crate) struct Access {
    /// The key that clients must send.
    pub(crate) key: ApiKey,
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) registry: Registry,
    /// Its counters feed the usage metrics.
    pub(crate) ledger: Arc<Ledger>,
    /// Writes usage into the store.
    pub(crate) writer: Arc<UsageWriter>,
    /// Background responses whose usage isn't known yet.
    pub(crate) followed: Arc<FollowedResponses>,
    /// The shared counters, if there are any.
    pub(crate) counters: Option<Arc<SharedCounters>>,
}

/// The store, and what the gateway keeps in memory of it.
pub(crate) struct Storage {
    pub(crate) store: Arc<dyn DurableStore>,
    /// Whether the store's content survives the process.
    pub(crate) lasting: bool,
    pub(crate) files: Arc<GeneratedFiles>,
    pub(crate) replays: Arc<Replays>,
    pub(crate) objects: Arc<ProviderObjects>,
    pub(crate) history: Arc<History>,
    /// Writes stored responses, and which upstreams store them, into the store.
    pub(crate) history_keeper: Arc<HistoryKeeper>,
}

/// Notifications of clients, and files at addresses that they name.
pub(crate) struct Webhooks {
    pub(crate) secret: Secret,
    /// Whether it was just created, so that no receiver has it yet.
    pub(crate) secret_is_new: bool,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) fetcher: Fetcher,
}

/// Bounded memory and threads.
pub(crate) struct Resources {
    /// The memory of requests and answers in progress.
    pub(crate) memory: Arc<MemoryBudget>,
    pub(crate) blocking_pool: BlockingPool,
    /// The workers that draw images: an image takes a processor for longer than other work.
    pub(crate) image_pool: BlockingPool,
    /// Limits how many report pages are rendered for the console concurrently.
    #[cfg(feature = "console")]
    pub(crate) renderings: tokio::sync::Semaphore,
}

/// What operators see of the traffic.
pub(crate) struct Telemetry {
    pub(crate) metrics: Arc<Metrics>,
    /// The newest requests.
    pub(crate) recent: Arc<Recent>,
}

/// A configuration file that was rejected while the gateway runs.
pub(crate) struct RejectedConfig {
    /// Line and column of the first problem, from 1, if known.
    pub(crate) place: Option<(usize, usize)>,
}

impl App {
    /// `address`: the address that the gateway is bound to. Needs a Tokio runtime.
    ///
    /// `counters`: the shared ones. Errors: upstreams and models contradict each other.
    pub(crate) fn new(
        config: Config,
        data: Data,
        counters: Option<Arc<SharedCounters>>,
        address: SocketAddr,
    ) -> Result<Self, InvalidRoutes> {
        let live = LiveConfig::new(&config)?;
        let metrics = Arc::<Metrics>::default();
        let webhooks = Webhooks::start(&config, &data);
        let task_runner = {
            let (store, outbox) = (Arc::clone(&data.store), Arc::clone(&webhooks.outbox));
            Arc::new(TaskRunner::new(store, outbox, data.lasting, config.video_lease))
        };
        let access = Access::start(&config, &data, &metrics, counters);
        let storage = Storage::start(&config, data, &access.authenticator);
        let recent = Arc::new(Recent::new(config.content_requests, config.content_time));
        Ok(Self {
            live,
            access,
            storage,
            webhooks,
            task_runner,
            resources: Resources::new(&config),
            telemetry: Telemetry { metrics, recent },
            failed_once: FailedOnce::default(),
            draining: AtomicBool::new(false),
            #[cfg(feature = "console")]
            sign_in: SignIn::default(),
            config,
            address,
        })
    }

    /// Applies the upstreams, models and keys of a changed configuration, and returns which of its keys have
    /// changed. Errors: upstreams and models contradict each other; nothing changes.
    pub(crate) fn reload(&self, config: &Config) -> Result<ConfiguredKeyChanges, InvalidRoutes> {
        match &self.live.shared {
            // Providers and models are not in this configuration. Their secrets may have changed.
            Some(shared) => shared.again.notify_one(),
            None if config.shared_config.is_some() => {}
            None => self.route(&config.upstreams, &config.models)?,
        }
        Ok(self.access.authenticator.configure(self.key_of(config), config.admin_key.as_ref()))
    }

    /// Applies upstreams and models. Errors: they contradict each other; nothing changes.
    pub(crate) fn route(
        &self,
        upstreams: &[UpstreamConfig],
        models: &[ModelConfig],
    ) -> Result<(), InvalidRoutes> {
        let routes = self.live.routes.load().renewed(upstreams, models)?;
        self.live.routes.store(Arc::new(routes));
        Ok(())
    }

    /// The key that clients must send, with a changed configuration. If it sets none, the random key printed at the start
    /// remains valid; `None`: there was no such key, and a new one couldn't be shown to the operator.
    pub(crate) fn key_of<'k>(&'k self, config: &'k Config) -> Option<&'k ApiKey> {
        config.key.as_ref().or_else(|| self.config.key.is_none().then_some(&self.access.key))
    }

    /// An empty reservation of memory for the requests and answers of a caller.
    pub(crate) fn share_of(&self, caller: &Caller) -> Reservation {
        self.resources.memory.share_of(caller.held(), self.percent_of_key())
    }

    /// Reserves space for an API key's files, before the work that produces them. `bytes`: an estimate.
    ///
    /// Errors: there is no room until files expire, with the seconds until then; the store does not answer.
    pub(crate) async fn room_for_files(
        &self,
        owner: &Arc<str>,
        bytes: usize,
    ) -> Result<storage::FileReservation, ApiError> {
        let limit = self
            .access
            .authenticator
            .file_bytes(owner)
            .await
            .map_err(|error| storage::store_unavailable(&error))?;
        let most = storage::KeyFileQuota { percent: self.percent_of_key(), bytes: limit };
        self.storage.files.reserve(owner, most, u64::try_from(bytes).unwrap_or(u64::MAX)).await
    }

    /// The space for answers by idempotency key.
    pub(crate) fn room_for_answers(&self) -> AnswerQuota {
        AnswerQuota { answers: self.config.max_idempotent_answers, percent: self.percent_of_key() }
    }

    /// The percentage of shared resources that one key may take: all of them while there is no other key.
    pub(crate) fn percent_of_key(&self) -> u8 {
        if self.access.authenticator.has_other_keys() { self.config.max_percent_per_key } else { 100 }
    }

    /// Scheme, host and port for file URLs: as configured, otherwise as the client addressed the gateway.
    pub(crate) fn public_url(&self, call: &Call) -> String {
        if let Some(public) = &self.config.public_url {
            return public.trim_end_matches('/').to_owned();
        }
        let scheme = if call.is_tls { "https" } else { "http" };
        let host = call.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let authority = host.and_then(|host| host.parse::<http::uri::Authority>().ok());
        match authority.filter(|authority| !authority.as_str().contains('@')) {
            Some(authority) => format!("{scheme}://{authority}"),
            None => format!("{scheme}://{}", self.address),
        }
    }
}

impl LiveConfig {
    fn new(config: &Config) -> Result<Self, InvalidRoutes> {
        let shared = Shared::of(config);
        // The shared configuration has not been read yet.
        let routes = match &shared {
            Some(_) => Routes::new(&[], &[])?,
            None => Routes::new(&config.upstreams, &config.models)?,
        };
        Ok(Self {
            routes: ArcSwap::from_pointee(routes),
            stale: ArcSwapOption::empty(),
            needs_restart: AtomicBool::new(false),
            shared,
        })
    }
}

impl Access {
    /// Starts to follow the keys in the store, and to write usage into it.
    fn start(
        config: &Config,
        data: &Data,
        metrics: &Arc<Metrics>,
        counters: Option<Arc<SharedCounters>>,
    ) -> Self {
        let key = config.key.clone().unwrap_or_else(random_key);
        let (store, metrics) = (Arc::clone(&data.store), Arc::clone(metrics));
        let writer = Arc::new(UsageWriter::new(store, metrics, data.journals.as_deref()));
        let ledger = Arc::clone(writer.ledger());
        let (admin, counting) = (config.admin_key.as_ref(), counters.clone());
        let authenticator = Arc::new(Authenticator::new(data.clone(), &key, admin, &ledger, counting));
        start(&authenticator, &writer);
        let (registry, followed) = (Registry::new(data.clone()), Arc::default());
        Self { key, authenticator, registry, ledger, writer, followed, counters }
    }
}

impl Storage {
    /// Opens the spool and starts to write what waits in it.
    fn start(config: &Config, data: Data, authenticator: &Arc<Authenticator>) -> Self {
        let (authenticator, most) = (Arc::downgrade(authenticator), config.max_percent_per_key);
        let percent_of_key = move || match authenticator.upgrade() {
            Some(authenticator) if authenticator.has_other_keys() => most,
            _ => 100,
        };
        let store = || Arc::clone(&data.store);
        let history = Arc::new(History::new(data.lasting));
        let spool = data.open_spool();
        let copies = Sealer::new(data.derived("seal of copies"));
        let history_keeper =
            HistoryKeeper::start(Arc::clone(&history), store(), copies, percent_of_key, spool.clone());
        let answers = data.lasting.then(|| Arc::new(Sealer::new(data.derived("seal of answers"))));
        let replays = Replays::start(store(), answers, data.derived("key of digests of requests"), spool);
        let objects = ProviderObjects::new(store(), Sealer::new(data.derived("seal of files and batches")));
        let (contents, signer) = (data.contents.clone(), data.key_of_addresses());
        let files = GeneratedFiles::start(contents, store(), signer, config.max_file_bytes);
        Self { lasting: data.lasting, files, replays, objects, history, history_keeper, store: data.store }
    }
}

impl Webhooks {
    /// Starts to deliver the notifications that wait in the store.
    fn start(config: &Config, data: &Data) -> Self {
        let secret = config.webhook_secret.clone().unwrap_or_else(|| data.webhook_secret());
        let mut secrets = vec![secret.clone()];
        secrets.extend(config.webhook_previous_secrets.iter().cloned());
        let private = config.allow_private_webhooks;
        Self {
            secret,
            secret_is_new: config.webhook_secret.is_none() && data.is_new,
            outbox: Outbox::start(Arc::clone(&data.store), secrets, config.webhook_backoff, private),
            fetcher: Fetcher::new(private),
        }
    }
}

impl Resources {
    fn new(config: &Config) -> Self {
        Self {
            memory: MemoryBudget::new(config.max_held_bytes),
            blocking_pool: BlockingPool::default(),
            image_pool: BlockingPool::default(),
            #[cfg(feature = "console")]
            renderings: tokio::sync::Semaphore::new(2),
        }
    }
}
