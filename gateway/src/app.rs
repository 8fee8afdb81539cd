//! The state that all requests of a gateway share: configuration, access control and stores.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arc_swap::{ArcSwap, ArcSwapOption};
use gatewright::webhook::Secret;
use http::header;

use crate::access::{ApiKey, Authenticator, Changed, Data, Registry, Writer, start};
use crate::bounds::room::{Room, Share};
use crate::config::{Config, Model, Upstream};
use crate::counters::Counters;
use crate::fault::FailedOnce;
use crate::keys::random_key;
use crate::observe::{Metrics, Recent};
use crate::outgoing::{Fetcher, Outbox};
use crate::routing::{InvalidRoutes, Routes};
use crate::shared::Shared;
use crate::store::{self, AnswerRoom, Files, History, HistoryKeeper, Replays, Sealer, Store};
use crate::tasks::TaskRunner;
use crate::usage::{Caller, Ledger};
use crate::wire::{ApiError, Call};
use crate::work::BlockingPool;

/// The state of a gateway, without its socket.
pub(crate) struct App {
    /// As the gateway was started. What may change while it runs is beside it.
    pub(crate) config: Config,
    pub(crate) routes: ArcSwap<Routes>,
    /// Set while the configuration file says something else than what runs, because it was refused.
    pub(crate) stale: ArcSwapOption<Stale>,
    /// What is known of the configuration that gateways share, if this one has it.
    pub(crate) shared: Option<Shared>,
    /// Pages of reports that are made for the console at once.
    #[cfg(feature = "console")]
    pub(crate) renderings: tokio::sync::Semaphore,
    pub(crate) key: ApiKey,
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) registry: Registry,
    /// What metrics say about usage is in its counters.
    pub(crate) ledger: Arc<Ledger>,
    /// What gateways count together, if they do.
    pub(crate) counters: Option<Arc<Counters>>,
    /// Writes usage into the store.
    pub(crate) writer: Arc<Writer>,
    pub(crate) webhook_secret: Secret,
    /// Whether it was made just now, so that nobody can know it.
    pub(crate) webhook_secret_is_new: bool,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) fetcher: Fetcher,
    pub(crate) replays: Arc<Replays>,
    pub(crate) files: Arc<Files>,
    pub(crate) store: Arc<dyn Store>,
    /// Whether what the store keeps outlives the process.
    pub(crate) lasting: bool,
    pub(crate) task_runner: Arc<TaskRunner>,
    pub(crate) history: Arc<History>,
    /// Writes responses into the store, and which upstreams store them.
    pub(crate) history_keeper: Arc<HistoryKeeper>,
    /// The memory of answers under way.
    pub(crate) room: Arc<Room>,
    pub(crate) blocking_pool: BlockingPool,
    /// The workers that draw images: an image takes a processor for longer than other work.
    pub(crate) image_pool: BlockingPool,
    pub(crate) metrics: Arc<Metrics>,
    /// The requests that operators see.
    pub(crate) recent: Arc<Recent>,
    /// The requests that a fault has let fail once.
    pub(crate) failed_once: FailedOnce,
    /// Whether the gateway is about to stop.
    pub(crate) draining: AtomicBool,
    address: SocketAddr,
}

/// A configuration file that was refused while the gateway runs.
pub(crate) struct Stale {
    /// Line and column of the first problem, from 1, where there is one.
    pub(crate) place: Option<(usize, usize)>,
}

impl App {
    /// `address`: the address that the gateway is bound to. Needs a Tokio runtime.
    ///
    /// `counters`: those that gateways share. Errors: upstreams and models contradict each other.
    pub(crate) fn new(
        config: Config,
        data: Data,
        counters: Option<Arc<Counters>>,
        address: SocketAddr,
    ) -> Result<Self, InvalidRoutes> {
        let shared = Shared::of(&config);
        // Those that gateways share are not read yet.
        let routes = match &shared {
            Some(_) => Routes::new(&[], &[])?,
            None => Routes::new(&config.upstreams, &config.models)?,
        };
        let webhook_secret = config.webhook_secret.clone().unwrap_or_else(|| data.webhook_secret());
        let webhook_secret_is_new = config.webhook_secret.is_none() && data.is_new;
        let mut secrets = vec![webhook_secret.clone()];
        secrets.extend(config.webhook_previous_secrets.iter().cloned());
        let (pause, private) = (config.webhook_backoff, config.allow_private_webhooks);
        let outbox = Outbox::start(Arc::clone(&data.store), secrets, pause, private);
        let (kept, lasting) = (Arc::clone(&data.store), data.lasting);
        let crew = TaskRunner::new(Arc::clone(&data.store), Arc::clone(&outbox), lasting, config.video_lease);
        let key = config.key.clone().unwrap_or_else(random_key);
        let metrics = Arc::<Metrics>::default();
        let (store, measured) = (Arc::clone(&data.store), Arc::clone(&metrics));
        let writer = Arc::new(Writer::new(store, measured, data.journals.as_deref()));
        let ledger = Arc::clone(writer.ledger());
        let (admin, counting) = (config.admin_key.as_ref(), counters.clone());
        let authenticator = Arc::new(Authenticator::new(data.clone(), &key, admin, &ledger, counting));
        let history = Arc::new(History::new(data.lasting));
        let (of_keys, most) = (Arc::downgrade(&authenticator), config.max_percent_per_key);
        let part = move || match of_keys.upgrade() {
            Some(authenticator) if authenticator.has_other_keys() => most,
            _ => 100,
        };
        let (sealer, spool) = (Sealer::new(data.derived("seal of copies")), data.open_spool());
        let (responses, kept_in) = (Arc::clone(&history), Arc::clone(&data.store));
        let history_keeper = HistoryKeeper::start(responses, kept_in, sealer, part, spool.clone());
        let sealer = data.lasting.then(|| Arc::new(Sealer::new(data.derived("seal of answers"))));
        let digests = data.derived("key of digests of requests");
        let replays = Replays::start(Arc::clone(&data.store), sealer, digests, spool);
        let key_of_addresses = data.key_of_addresses();
        let (contents, records) = (data.contents.clone(), Arc::clone(&data.store));
        let files = Files::start(contents, records, key_of_addresses, config.max_file_bytes);
        let registry = Registry::new(data);
        start(&authenticator, &writer);
        Ok(Self {
            routes: ArcSwap::from_pointee(routes),
            stale: ArcSwapOption::empty(),
            shared,
            #[cfg(feature = "console")]
            renderings: tokio::sync::Semaphore::new(2),
            authenticator,
            registry,
            ledger,
            counters,
            writer,
            key,
            webhook_secret,
            webhook_secret_is_new,
            outbox,
            fetcher: Fetcher::new(config.allow_private_webhooks),
            replays,
            files,
            store: kept,
            lasting,
            task_runner: Arc::new(crew),
            history,
            history_keeper,
            room: Room::new(config.max_held_bytes),
            blocking_pool: BlockingPool::default(),
            image_pool: BlockingPool::default(),
            metrics,
            recent: Arc::default(),
            failed_once: FailedOnce::default(),
            draining: AtomicBool::new(false),
            config,
            address,
        })
    }

    /// Takes over upstreams, models and keys of a changed configuration, and tells which of its keys are others than
    /// before. Errors: upstreams and models contradict each other; all stays as before.
    pub(crate) fn reload(&self, config: &Config) -> Result<Changed, InvalidRoutes> {
        match &self.shared {
            // Providers and models are not in this configuration. Their secrets may have changed.
            Some(shared) => shared.again.notify_one(),
            None if config.shared_config.is_some() => {}
            None => self.route(&config.upstreams, &config.models)?,
        }
        Ok(self.authenticator.configure(self.key_of(config), config.admin_key.as_ref()))
    }

    /// Takes over upstreams and models. Errors: they contradict each other; all stays as before.
    pub(crate) fn route(&self, upstreams: &[Upstream], models: &[Model]) -> Result<(), InvalidRoutes> {
        let routes = self.routes.load().renewed(upstreams, models)?;
        self.routes.store(Arc::new(routes));
        Ok(())
    }

    /// The key that clients must send, with a changed configuration. One that states none has the random key that was
    /// told at the start; `None`: there was no such key, and a new one could be told to nobody.
    pub(crate) fn key_of<'k>(&'k self, config: &'k Config) -> Option<&'k ApiKey> {
        config.key.as_ref().or_else(|| self.config.key.is_none().then_some(&self.key))
    }

    /// A share of the memory of answers, of nothing yet.
    pub(crate) fn share_of(&self, caller: &Caller) -> Share {
        self.room.share_of(caller.held(), self.hundredths_of_key())
    }

    /// Room for files of an API key, before the work of making them. `bytes`: an estimate.
    ///
    /// Errors: there is no room until files expire, with the seconds until then; the store does not answer.
    pub(crate) async fn room_for_files(
        &self,
        owner: &Arc<str>,
        bytes: usize,
    ) -> Result<store::Room, ApiError> {
        let limit = self.authenticator.file_bytes(owner).await.map_err(|error| store::untold(&error))?;
        let most = store::MostOfKey { hundredths: self.hundredths_of_key(), bytes: limit };
        self.files.reserve(owner, most, u64::try_from(bytes).unwrap_or(u64::MAX)).await
    }

    /// The room for answers by idempotency keys.
    pub(crate) fn room_for_answers(&self) -> AnswerRoom {
        AnswerRoom { answers: self.config.max_idempotent_answers, hundredths: self.hundredths_of_key() }
    }

    /// How much one key may take of what all share, in hundredths: all of it while there is no other key.
    pub(crate) fn hundredths_of_key(&self) -> u8 {
        if self.authenticator.has_other_keys() { self.config.max_percent_per_key } else { 100 }
    }

    /// Scheme, host and port for file URLs: as configured, else as the client called the gateway.
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
