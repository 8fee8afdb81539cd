//! The gateways and what they need: three that share a database, counters and a bucket, and one that works alone with a folder on
//! a small disk. The thread that starts them has to outlive them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use gatewright::webhook::Secret;
use gatewright_test_stores::{Bucket, BucketMode, Postgres, Redis};
use tokio::runtime::Runtime;

use crate::disk::Disk;
use crate::expected::{self, FILM, TEXT};
use crate::faults::Step;
use crate::history::{ALONE, Event, Fault, History};
use crate::networks::{Networks, Shared};
use crate::node::Node;
use crate::receiver::Receiver;
use crate::upstream;

/// The keys of all gateways, their pepper, and the secret of their notifications.
pub(crate) const KEY: &str = "gw-torture-key-91";
pub(crate) const ADMIN_KEY: &str = "gw-torture-admin-92";
const PEPPER: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
const WEBHOOK_SECRET: &str = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

/// The additional secret of a node's notifications, by which the receiver recognizes it.
fn signer(node: u8) -> Result<Secret> {
    Secret::from_bytes([node + 1; 32]).context("a secret of 32 bytes")
}

/// The folder of the small disk.
const DISK: &str = "disk";

/// See the module.
pub(crate) struct World {
    history: Arc<History>,
    nodes: Vec<Node>,
    /// The networks of the nodes that share something. None if nothing is ever cut.
    networks: Vec<Networks>,
    postgres: Postgres,
    redis: Redis,
    bucket: Bucket,
    pub(crate) receiver: Arc<Receiver>,
    /// The address of the receiver.
    pub(crate) hook: String,
    disk: Disk,
    /// The data folder on it.
    data: PathBuf,
}

impl World {
    /// Starts everything, for a run of this length. `with_networks`: those that can be cut.
    pub(crate) fn start(
        program: &Path,
        folder: &Path,
        time: Duration,
        history: &Arc<History>,
        runtime: &Runtime,
        with_networks: bool,
    ) -> Result<Self> {
        let (postgres, redis) = (Postgres::start(), Redis::start());
        let disk = Disk::mount(&folder.join(DISK), time)?;
        let bucket = Bucket::start(&folder.join("bucket"));
        let port = bucket.port();
        let provider = runtime.block_on(upstream::start(Arc::clone(history)))?;
        let secret = Secret::new(WEBHOOK_SECRET)?;
        let signers = (0..=u8::try_from(ALONE)?).map(signer).collect::<Result<Vec<_>>>()?;
        let (receiver, hook) =
            runtime.block_on(Receiver::start(Arc::clone(history), secret, signers.clone()))?;
        let data = folder.join(DISK).join("data");
        let (mut nodes, mut networks) = (Vec::new(), Vec::new());
        for (number, signer) in signers.iter().map(Secret::expose).enumerate() {
            let mut shared = Shared { store: postgres.url(), counters: redis.url(), bucket: port };
            if with_networks && number != ALONE {
                let network = Networks::new();
                shared = runtime.block_on(network.lead_to(&postgres, &redis, port));
                networks.push(network);
            }
            let variables = vec![
                ("TORTURE_KEY", KEY.to_owned()),
                ("TORTURE_ADMIN_KEY", ADMIN_KEY.to_owned()),
                ("TORTURE_STORE", shared.store),
                ("TORTURE_COUNTERS", shared.counters),
                ("TORTURE_PEPPER", PEPPER.to_owned()),
                ("TORTURE_WEBHOOKS", WEBHOOK_SECRET.to_owned()),
                ("TORTURE_SIGNER", signer),
                ("TORTURE_UPSTREAM", upstream::key_of(number)),
                ("TORTURE_BUCKET_ID", Bucket::ACCESS_KEY.to_owned()),
                ("TORTURE_BUCKET_SECRET", Bucket::SECRET_KEY.to_owned()),
            ];
            let store = if number == ALONE {
                format!("[store]\ndata = \"{}\"\n", data.display())
            } else {
                // On a busy machine the counters take more than the usual 50 ms, and gateways would apply limits on their own
                // although no fault occurred.
                format!(
                    "[store]\nurl = {{ env = \"TORTURE_STORE\" }}\npepper = {{ env = \"TORTURE_PEPPER\" }}\n\
                     data = \"data\"\n\
                     [counters]\nurl = {{ env = \"TORTURE_COUNTERS\" }}\ntimeout = \"2s\"\n\
                     [files]\nurl = \"s3://{}/files\"\nendpoint = \"http://127.0.0.1:{}\"\n\
                     access_key = {{ env = \"TORTURE_BUCKET_ID\" }}\n\
                     secret_key = {{ env = \"TORTURE_BUCKET_SECRET\" }}\n",
                    Bucket::NAME,
                    shared.bucket
                )
            };
            let config = |address: &str| configuration(address, &store, &provider);
            let before = if number == ALONE { disk.inside() } else { Vec::new() };
            nodes.push(Node::new(number, program, folder, variables, before, config)?);
        }
        let history = Arc::clone(history);
        let mut world =
            Self { history, nodes, networks, postgres, redis, bucket, receiver, hook, disk, data };
        for node in &mut world.nodes {
            node.start()?;
        }
        Ok(world)
    }

    /// The addresses of the nodes.
    pub(crate) fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.url.clone()).collect()
    }

    /// How many requests the bucket has answered.
    pub(crate) fn bucket_answered(&self) -> u64 {
        self.bucket.answered()
    }

    /// The most memory that a process of each node had, in MiB.
    pub(crate) fn peaks_of_memory(&self) -> Vec<u64> {
        self.nodes.iter().map(|node| node.peak_of_memory / 1024).collect()
    }

    /// The counters' statistics of the scripts that they ran: calls and microseconds of CPU time, in their format.
    pub(crate) fn scripts_run(&self) -> String {
        let statistics = self.redis.command("INFO commandstats");
        statistics.lines().filter(|line| line.starts_with("cmdstat_eval")).collect::<Vec<_>>().join("; ")
    }

    /// Begins or ends a fault, and records it: its beginning before it, its end after it.
    pub(crate) fn take(&mut self, Step { fault, begins, .. }: Step) -> Result<()> {
        if begins {
            self.history.add(Event::Fault { fault, begins });
        }
        match (fault, begins) {
            (Fault::Killed { node }, true) => self.nodes[node].kill()?,
            (Fault::Stopped { node }, true) => self.nodes[node].stop()?,
            (Fault::Killed { node } | Fault::Stopped { node }, false) => self.nodes[node].start()?,
            (Fault::Paused { node }, true) => self.nodes[node].pause()?,
            (Fault::Paused { node }, false) => self.nodes[node].go_on()?,
            (Fault::Clock { node, by_ms }, _) => {
                self.nodes[node].set_clock(if begins { by_ms } else { 0 })?;
            }
            (Fault::Cut { node, whole, silent }, true) => self.networks[node].cut(whole, silent),
            (Fault::Cut { node, .. }, false) => self.networks[node].mend(),
            (Fault::Store, true) => self.postgres.stop(),
            (Fault::Store, false) => self.postgres.resume(),
            (Fault::Counters { hang: false }, true) => self.redis.stop(),
            (Fault::Counters { hang: false }, false) => self.redis.resume(),
            (Fault::Counters { hang: true }, true) => self.redis.hang(),
            (Fault::Counters { hang: true }, false) => self.redis.go_on(),
            (Fault::Bucket, true) => self.bucket.set(BucketMode::Refuses),
            (Fault::BucketAway { hang: false }, true) => self.bucket.set(BucketMode::Breaks),
            (Fault::BucketAway { hang: true }, true) => self.bucket.set(BucketMode::Hangs),
            (Fault::Bucket | Fault::BucketAway { .. }, false) => self.bucket.set(BucketMode::Works),
            (Fault::Disk, true) => self.disk.fill()?,
            (Fault::Disk, false) => self.disk.clear()?,
            (Fault::Receiver, _) => self.receiver.refuse(begins),
        }
        if !begins {
            self.history.add(Event::Fault { fault, begins });
        }
        Ok(())
    }

    /// Errors: a gateway has ended by itself.
    pub(crate) fn is_well(&mut self) -> Result<()> {
        for (number, node) in self.nodes.iter_mut().enumerate() {
            if node.has_ended()? {
                bail!("node {number} has ended by itself: see its log");
            }
        }
        Ok(())
    }

    /// Shuts all gateways down, as an operator would.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.nodes.iter_mut().try_for_each(Node::stop)
    }

    /// Checks both stores for damage. Errors: there is some.
    pub(crate) fn check_stores(&self) -> Result<()> {
        let variables =
            [("GATEWRIGHT_SERVE_STORE_URL", &*self.postgres.url()), ("GATEWRIGHT_SERVE_PEPPER", PEPPER)];
        self.nodes[0].check_store(&["--store"], &variables)?;
        let data = self.data.to_str().context("a path")?;
        self.nodes[ALONE].check_store(&["--data", data], &[])
    }

    /// The CPU time of the first nodes, this many.
    pub(crate) fn processor_time(&self, nodes: usize) -> Result<Duration> {
        let times = self.nodes[..nodes].iter().map(Node::processor_time);
        Ok(times.collect::<Result<Vec<_>>>().context("the time of a node")?.into_iter().sum())
    }
}

fn configuration(address: &str, store: &str, provider: &str) -> String {
    let (input, output) = expected::PRICES;
    let target = format!("{{ upstream = \"provider\", price = {{ input = {input}, output = {output} }} }}");
    // Room for the files and the answers of an hour of the fastest upstream. Videos pile up while the bucket is absent: what is full
    // then is the gateway (503), not the share of a key (429).
    format!(
        "[limits]\nmax_files = \"16GiB\"\nmax_idempotent_answers = 1000000\nmax_percent_per_key = 100\n\
         [server]\nlisten = \"{address}\"\nshutdown_grace = \"3s\"\n\
         [access]\nkey = {{ env = \"TORTURE_KEY\" }}\nadmin_key = {{ env = \"TORTURE_ADMIN_KEY\" }}\n\
         {store}\
         [webhooks]\nsecret = {{ env = \"TORTURE_WEBHOOKS\" }}\n\
         previous_secrets = [{{ env = \"TORTURE_SIGNER\" }}]\nallow_private = true\nbackoff = \"200ms\"\n\
         [videos]\npoll = \"200ms\"\nlease = \"2s\"\n\
         [upstreams.provider]\nkind = \"responses\"\nbase_url = \"{provider}\"\n\
         key = {{ env = \"TORTURE_UPSTREAM\" }}\n\
         [models.{TEXT}]\ntargets = [{target}]\n\
         [models.{FILM}]\nkind = \"video\"\ntargets = [{target}]\n"
    )
}
