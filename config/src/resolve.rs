//! Turns the content of a configuration file into the configuration: defaults, secrets, and the rules that no schema
//! can express.

mod envelope;
mod families;
mod key_source;
mod models;
mod upstreams;

pub use self::models::check_model_id;

use std::collections::HashMap;
use std::path::{Path as Folder, PathBuf};
use std::time::Duration;

use gatewright::{ApiKey, webhook};
use gatewright_store::{Pepper, StoreUrl};

use super::addresses::{base_url, is_listen_address, is_origin, is_public_host};
use super::bucket::{Bucket, place_of};
use super::counters::{CounterServer, CountersUrl};
use super::data_folder::default_data_folder;
use super::faults::InvalidFault;
use super::file::{Counters, DataFolder, File, Files, Limits, OneOrMany, Server, Store, Text};
use super::log::Log;
use super::prices::PriceList;
use super::problem::Problems;
use super::secret::{Absent, NoSecret, Secret, Variables};
use super::sharing::Sharing;
use super::source_map::Path;
use super::tls::TlsConfig;
use super::units::{Size, Time};
use crate::Config;

/// Shorter client and admin keys cause a warning: they can be guessed.
const MIN_KEY_CHARACTERS: usize = 16;
/// Longest accepted time.
const MAX_DURATION: Duration = Duration::from_hours(24);
/// Largest accepted size of data in memory.
const MAX_SIZE: usize = 4 * 1024 * 1024 * 1024 - 1;
/// Maximum space for files, a million GiB.
const MAX_ROOM: usize = 1 << 50;

/// Collects problems along the way.
pub(super) struct ConfigResolver<'f> {
    folder: &'f Folder,
    variables: Variables,
    absent: Absent,
    /// For a shared document: which secrets it may refer to.
    pub(super) sharing: Option<&'f Sharing>,
    pub(super) wrong: Vec<(Path, String)>,
    pub(super) warnings: Vec<(Path, String)>,
    /// Files that the configuration refers to.
    pub(super) files: Vec<PathBuf>,
    /// Problems in the price file.
    pub(super) wrong_prices: Option<Problems>,
    /// The message about models without a price.
    pub(super) unpriced: Option<String>,
    price_list: Option<PriceList>,
    /// The providers of upstreams that name one, by upstream name.
    providers: HashMap<String, String>,
}

/// Why a key is too easy to guess. Does not quote the key.
pub fn weak_key(key: &ApiKey) -> Option<String> {
    (key.expose().len() < MIN_KEY_CHARACTERS).then(|| {
        format!(
            "is shorter than {MIN_KEY_CHARACTERS} characters and can be guessed: use a random one, such as the output of \
             openssl rand -hex 32"
        )
    })
}

impl<'f> ConfigResolver<'f> {
    pub(super) fn new(folder: &'f Folder, variables: Variables, absent: Absent) -> Self {
        let (wrong, warnings, files) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            folder,
            variables,
            absent,
            sharing: None,
            wrong,
            warnings,
            files,
            wrong_prices: None,
            unpriced: None,
            price_list: None,
            providers: HashMap::new(),
        }
    }

    /// The configuration and its log settings. They are complete if there are no problems.
    pub(super) fn settle(&mut self, mut file: File) -> (Config, Log) {
        let root = Path::default();
        let mut config = Config::default();
        self.server(&mut config, file.server, &root.to("server"));
        self.limits(&mut config, &file.limits, &root.to("limits"));

        let at = root.to("access");
        config.key = file.access.key.and_then(|key| self.key(&key, &at.to("key")));
        config.admin_key = file.access.admin_key.and_then(|key| self.key(&key, &at.to("admin_key")));
        if config.key.is_some() && config.key == config.admin_key {
            let message = "must differ from access.key: every client would be an administrator";
            self.wrong(at.to("admin_key"), message);
        }
        for (name, key) in [("key", &config.key), ("admin_key", &config.admin_key)] {
            if let Some(message) = key.as_ref().and_then(weak_key) {
                self.warn(at.to(name), message);
            }
        }
        let shares = file.store.shared_config.unwrap_or_default();
        let shared_secrets = file.store.shared_secrets.take();
        let (on_server, in_bucket) = (file.store.url.is_some(), file.files.is_some());
        self.store(&mut config, file.store, &root.to("store"));
        if on_server && !in_bucket && config.data.is_none() {
            let message = "generated files are only in the memory of the gateway that generated them: other gateways return \
                503 for them, and they are lost when it stops; set [files], or set store.data to a shared folder";
            self.warn(root.to("store").to("url"), message);
        }

        config.counters = file.counters.and_then(|counters| self.counters(&counters, &root.to("counters")));

        config.files = file.files.and_then(|files| self.bucket(files, &root.to("files")));

        let (webhooks, at) = (file.webhooks, root.to("webhooks"));
        config.webhook_secret =
            webhooks.secret.and_then(|secret| self.webhook_secret(&secret, &at.to("secret")));
        let previous = at.to("previous_secrets");
        let secrets = webhooks.previous_secrets.iter().enumerate();
        config.webhook_previous_secrets =
            secrets.filter_map(|(index, secret)| self.webhook_secret(secret, &previous.to(index))).collect();
        config.allow_private_webhooks = webhooks.allow_private.unwrap_or(config.allow_private_webhooks);
        self.wait(&mut config.webhook_backoff, webhooks.backoff, &at.to("backoff"));

        config.fetch_images = file.images.fetch.unwrap_or(config.fetch_images);
        let (videos, at) = (file.videos, root.to("videos"));
        self.wait(&mut config.video_poll, videos.poll, &at.to("poll"));
        self.wait(&mut config.video_timeout, videos.timeout, &at.to("timeout"));
        self.wait(&mut config.video_lease, videos.lease, &at.to("lease"));

        let (simulator, at) = (file.simulator, root.to("simulator"));
        self.pause(&mut config.event_delay, simulator.event_delay, &at.to("event_delay"));
        self.pause(&mut config.video_time, simulator.video_time, &at.to("video_time"));
        for (index, text) in simulator.faults.iter().enumerate() {
            match text.parse() {
                Ok(faults) => config.faults.extend(faults),
                // The lines after the first one list all faults.
                Err(why) => self.wrong(at.to("faults").to(index), first_line(&why)),
            }
        }
        if let Some(currency) = &file.prices.currency
            && !currency.bytes().all(|byte| byte.is_ascii_alphabetic())
        {
            self.wrong(root.to("prices").to("currency"), "must be letters, such as EUR");
        }
        config.currency = file.prices.currency;
        // Gateways that share their models apply their own price file to them.
        let stated = file.prices.file.map(|path| self.folder.join(path));
        let prices = stated.or_else(|| self.sharing.and_then(|sharing| sharing.prices.clone()));
        if let Some(path) = prices.clone() {
            self.prices(path, &root.to("prices").to("file"));
        }
        if shares {
            self.shared(
                &mut config,
                &[
                    ("upstreams", file.upstreams.is_empty()),
                    ("families", file.families.is_empty()),
                    ("models", file.models.is_empty()),
                ],
                shared_secrets,
                prices,
            );
        } else {
            self.upstreams_and_models(&mut config, file.upstreams, &file.families, file.models);
        }
        config.open_metrics = file.observe.open_metrics.unwrap_or(config.open_metrics);
        let observe = file.observe;
        if let Some(Err(why)) = observe.otlp_endpoint.as_deref().map(base_url) {
            self.wrong(root.to("observe").to("otlp_endpoint"), why);
        }
        if let Some(requests) = observe.content_requests {
            config.content_requests = requests.into();
        }
        self.wait(&mut config.content_time, observe.content_time, &root.to("observe").to("content_time"));
        let log = Log {
            level: observe.log_level.unwrap_or_default(),
            format: observe.log_format.unwrap_or_default(),
            otlp_endpoint: observe.otlp_endpoint,
        };
        (config, log)
    }

    fn server(&mut self, config: &mut Config, server: Server, at: &Path) {
        if let Some(tls) = server.tls {
            let at = at.to("tls");
            let listen = self.addresses(tls.listen, &at.to("listen"));
            let tls = TlsConfig::new(listen, self.named(tls.certificate), self.named(tls.key));
            if let Err(error) = tls.read() {
                let at = at.to(if error.is_of_key(&tls) { "key" } else { "certificate" });
                self.missing(at, error.is_absent(), error.to_string());
            }
            config.tls = Some(tls);
            config.listen.clear();
        }
        if let Some(listen) = server.listen {
            config.listen = self.addresses(listen, &at.to("listen"));
        }
        if let Some(listen) = server.health_listen {
            config.health_listen = self.addresses(listen, &at.to("health_listen"));
        }
        config.name = server.name;
        if let Some(url) = server.public_url {
            if !is_origin(&url) {
                self.wrong(at.to("public_url"), "must have the form http://host or https://host:port");
            }
            config.public_url = Some(url);
        }
        for (index, origin) in server.allowed_origins.unwrap_or_default().into_iter().enumerate() {
            if origin != "*" && !is_origin(&origin) {
                let message = "must be \"*\" or have the form https://host or https://host:port";
                self.wrong(at.to("allowed_origins").to(index), message);
            }
            config.allowed_origins.push(origin);
        }
        self.pause(&mut config.shutdown_grace, server.shutdown_grace, &at.to("shutdown_grace"));
        self.pause(&mut config.drain_delay, server.drain_delay, &at.to("drain_delay"));
    }

    fn limits(&mut self, config: &mut Config, limits: &Limits, at: &Path) {
        let count = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
        self.size(&mut config.max_body_bytes, limits.max_body, &at.to("max_body"));
        let (files, at_files) = (&mut config.max_file_bytes, at.to("max_files"));
        self.size_up_to(MAX_ROOM, "no more than 1048576GiB", files, limits.max_files, &at_files);
        self.size(&mut config.max_held_bytes, limits.max_held, &at.to("max_held"));
        config.max_percent_per_key = limits.max_percent_per_key.unwrap_or(config.max_percent_per_key);
        config.max_idempotent_answers =
            limits.max_idempotent_answers.map_or(config.max_idempotent_answers, count);
        config.max_connections = limits.max_connections.map_or(config.max_connections, count);
        config.max_connections_per_peer =
            limits.max_connections_per_peer.map_or(config.max_connections_per_peer, count);
        self.wait(&mut config.header_timeout, limits.header_timeout, &at.to("header_timeout"));
        self.wait(&mut config.body_timeout, limits.body_timeout, &at.to("body_timeout"));
        self.wait(&mut config.write_timeout, limits.write_timeout, &at.to("write_timeout"));
    }

    fn store(&mut self, config: &mut Config, store: Store, at: &Path) {
        config.data = match store.data {
            None | Some(DataFolder::Usual(false)) => None,
            Some(DataFolder::At(folder)) => Some(self.folder.join(folder)),
            Some(DataFolder::Usual(true)) => {
                let usual = default_data_folder();
                usual.map_err(|why| self.wrong(at.to("data"), why.to_string())).ok()
            }
        };
        if let Some(secret) = &store.url {
            let at = at.to("url");
            match self.secret(secret, &at).map(|text| StoreUrl::new(&text)) {
                Some(Ok(url)) => config.store = Some(url),
                Some(Err(why)) => self.wrong(at, format!("{secret} is not the address of a database: {why}")),
                None => {}
            }
        }
        if let Some(secret) = &store.pepper {
            let at = at.to("pepper");
            match self.secret(secret, &at).map(|text| Pepper::new(&text)) {
                Some(Ok(pepper)) => config.pepper = Some(pepper),
                Some(Err(why)) => self.wrong(at, format!("{secret} is not a valid pepper: {why}")),
                None => {}
            }
        }
    }

    /// The store has upstreams and models. `tables`: those that must be empty here, and whether they are.
    fn shared(
        &mut self,
        config: &mut Config,
        tables: &[(&str, bool)],
        secrets: Option<Vec<String>>,
        prices: Option<PathBuf>,
    ) {
        for (table, _) in tables.iter().filter(|(_, is_absent)| !is_absent) {
            let message = "must not be set in this file, because store.shared_config is true: publish it to the store with \
                gatewright config push, or remove store.shared_config";
            self.wrong(Path::default().to(*table), message);
        }
        config.upstreams.clear();
        config.models.clear();
        let mut sharing = Sharing::new(self.folder);
        sharing.secrets = secrets.unwrap_or(sharing.secrets);
        sharing.prices = prices;
        config.shared_config = Some(sharing);
    }

    fn prices(&mut self, path: PathBuf, at: &Path) {
        let path = self.named(path);
        if !path.exists() {
            let message = format!(
                "the file {} does not exist: create it with gatewright prices import, or remove prices.file",
                path.display()
            );
            return self.missing(at.clone(), true, message);
        }
        match PriceList::read(&path) {
            Ok(list) => self.price_list = Some(list),
            Err(problems) => self.wrong_prices = Some(problems),
        }
    }

    fn counters(&mut self, counters: &Counters, at: &Path) -> Option<CounterServer> {
        let (secret, place) = (&counters.url, at.to("url"));
        let url = match CountersUrl::new(&self.secret(secret, &place)?) {
            Ok(url) => url,
            Err(why) => {
                self.wrong(place, format!("{secret} is not the address of a Redis or Valkey server: {why}"));
                return None;
            }
        };
        if !url.is_encrypted() && is_public_host(url.as_url()) {
            self.warn(place, "the connection and its password are not encrypted: use rediss://");
        }
        let mut server = CounterServer::new(url);
        self.wait(&mut server.timeout, counters.timeout, &at.to("timeout"));
        self.wait(&mut server.lease, counters.lease, &at.to("lease"));
        Some(server)
    }

    fn addresses(&mut self, addresses: OneOrMany<Text>, at: &Path) -> Vec<String> {
        let each = addresses.into_values().into_iter().map(|(index, Text(address))| {
            if !is_listen_address(&address) {
                let at = index.map_or_else(|| at.clone(), |index| at.to(index));
                self.wrong(at, "must be an address and a port, such as \"127.0.0.1:8080\" or \"[::]:8080\"");
            }
            address
        });
        each.collect()
    }

    /// An API key. `None` if it is unavailable, which is recorded as a problem.
    fn bucket(&mut self, files: Files, at: &Path) -> Option<Bucket> {
        let access_key = self.key(&files.access_key, &at.to("access_key"));
        let secret_key = self.key(&files.secret_key, &at.to("secret_key"));
        if files.endpoint.as_deref().is_some_and(|endpoint| !is_origin(endpoint)) {
            self.wrong(at.to("endpoint"), "must have the form https://host or https://host:port");
        }
        if place_of(&files.url).is_none() {
            self.wrong(at.to("url"), "must have the form \"s3://bucket\" or \"s3://bucket/prefix\"");
        }
        let mut bucket = Bucket::new(files.url, access_key?, secret_key?);
        bucket.endpoint = files.endpoint;
        bucket.region = files.region.unwrap_or(bucket.region);
        Some(bucket)
    }

    fn key(&mut self, secret: &Secret, at: &Path) -> Option<ApiKey> {
        let text = self.secret(secret, at)?;
        let key = ApiKey::new(text).ok();
        if key.is_none() {
            let message =
                format!("{secret} is not an API key: it must be one or more visible ASCII characters");
            self.wrong(at.clone(), message);
        }
        key
    }

    fn webhook_secret(&mut self, secret: &Secret, at: &Path) -> Option<webhook::Secret> {
        let text = self.secret(secret, at)?;
        let read = webhook::Secret::new(&text).ok();
        if read.is_none() {
            let message =
                format!("{secret} is not a webhook secret: it must be whsec_ and the secret in base64");
            self.wrong(at.clone(), message);
        }
        read
    }

    /// A secret, as far as the document may refer to it.
    fn permitted(&mut self, secret: &Secret, at: &Path) -> Option<Secret> {
        let permitted = match self.sharing {
            None => Some(secret.clone()),
            Some(sharing) => sharing.permitted(secret),
        };
        if permitted.is_none() {
            let message = format!(
                "a shared document may not name {secret}: only secrets listed in store.shared_secrets of the gateways' own \
                 files are allowed"
            );
            self.missing(at.clone(), true, message);
        }
        permitted
    }

    fn secret(&mut self, secret: &Secret, at: &Path) -> Option<String> {
        let secret = &self.permitted(secret, at)?;
        if let Secret::File(path) = secret {
            self.named(path.clone());
        }
        match secret.read(self.folder, self.variables) {
            Ok(text) => Some(text),
            Err(NoSecret::Absent(why)) => {
                self.missing(at.clone(), true, why);
                None
            }
            Err(NoSecret::Unusable(why)) => {
                self.wrong(at.clone(), why);
                None
            }
        }
    }

    /// The path of a file that the configuration refers to.
    fn named(&mut self, path: PathBuf) -> PathBuf {
        let path = self.folder.join(path);
        self.files.push(path.clone());
        path
    }

    /// Sets a time that may be zero.
    fn pause(&mut self, target: &mut Duration, time: Option<Time>, at: &Path) {
        let Some(Time(time)) = time else { return };
        if time > MAX_DURATION {
            self.wrong(at.clone(), "must be 24h or less");
        }
        *target = time;
    }

    /// Sets a time that must not be zero.
    fn wait(&mut self, target: &mut Duration, time: Option<Time>, at: &Path) {
        if time.is_some_and(|time| time.0.is_zero()) {
            self.wrong(at.clone(), "must be longer than 0");
        }
        self.pause(target, time, at);
    }

    fn size(&mut self, target: &mut usize, size: Option<Size>, at: &Path) {
        self.size_up_to(MAX_SIZE, "less than 4GiB", target, size, at);
    }

    fn size_up_to(&mut self, most: usize, bound: &str, target: &mut usize, size: Option<Size>, at: &Path) {
        let Some(Size(size)) = size else { return };
        if size == 0 || size > most {
            self.wrong(at.clone(), format!("must be 1B or more, and {bound}"));
        }
        *target = size;
    }

    fn wrong(&mut self, at: Path, message: impl Into<String>) {
        self.wrong.push((at, message.into()));
    }

    fn warn(&mut self, at: Path, message: impl Into<String>) {
        self.warnings.push((at, message.into()));
    }

    /// Number of problems and warnings so far.
    fn problems(&self) -> (usize, usize) {
        (self.wrong.len(), self.warnings.len())
    }

    /// Appends a hint to everything recorded since then.
    fn explain_since(&mut self, known: (usize, usize), hint: &str) {
        let noted = self.wrong[known.0..].iter_mut().chain(&mut self.warnings[known.1..]);
        noted.for_each(|(_, message)| message.push_str(hint));
    }

    /// Something that the configuration refers to is missing or unusable. If the file is only being checked, a
    /// missing thing may appear later.
    fn missing(&mut self, at: Path, is_absent: bool, message: String) {
        if is_absent && self.absent == Absent::IsWarned {
            self.warn(at, message);
        } else {
            self.wrong(at, message);
        }
    }
}

/// The first line of an error, without the details.
fn first_line(why: &InvalidFault) -> String {
    why.to_string().lines().next().unwrap_or_default().to_owned()
}
