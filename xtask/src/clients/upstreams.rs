//! The gateways that the clients call: the simulator alone; a gateway with upstreams of every kind: ours, ours as strict as
//! strict providers and as messy as careless ones, a third-party server, and that server behind a third-party gateway; and a
//! gateway in front of that one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};

use super::litellm::LitellmProxy;
use crate::artefacts::target;
use crate::local_gateway::LocalGateway;
use crate::other_server::OtherServer;

/// The protocols, each with a simulator model that it serves.
const PROTOCOLS: [(&str, &str); 4] = [
    ("chat", "model-sol"),
    ("responses", "model-terra"),
    ("messages", "model-breeze"),
    ("native", "model-cedar"),
];
/// Kinds of upstreams, with the paths of their base URLs. Those of the protocols come first.
const KINDS: [(&str, &str); 5] =
    [("chat", "/v1"), ("responses", "/v1"), ("messages", "/v1"), ("native", "/v1beta"), ("gatewright", "")];
/// Kinds of failing models: the fault requested from the simulator with the model.
const FAILING: [(&str, &str); 2] = [("limited", "rate_limit=7"), (BROKEN, STREAM_ERROR)];
/// Streams break off.
pub(super) const BROKEN: &str = "broken";
/// The first response is a 429.
pub(super) const HICCUP: &str = "hiccup";
const STREAM_ERROR: &str = "stream_error=9";
/// The same for agents, which retry by themselves.
const FAILING_FOR_AGENTS: [(&str, &str); 2] = [(HICCUP, "fail_once"), (BROKEN, STREAM_ERROR)];
/// A simulator model that generates images, and the kinds of upstreams that clients may use for images.
const DRAWING: &str = "image_model_2";
const DRAW: [&str; 3] = ["chat", "responses", "gatewright"];
/// Prefix of the kind in the names of upstreams that validate requests as strict providers do.
const STRICT: &str = "strict";
/// Suffix of the ids of models that are strict but not messy: the gateway passes through responses of the client's own
/// protocol, and the client would see the mess.
const TIDY: &str = "-tidy";
/// Part of the model ids that the front gateway requests.
const HOP: &str = "hop";
/// Why clients can't use an upstream of another kind for images.
const DRAWS_NOT: &str = "its protocol has no images to ask for";
/// Maximum number of clients of a player.
const MAX_CLIENTS: usize = 10;

/// The gateways and what is behind them; dropping it stops them.
pub(super) struct Upstreams {
    pub(super) simulator: LocalGateway,
    /// It has upstreams of every kind.
    pub(super) middle: LocalGateway,
    /// Its upstream is the one in the middle.
    front: LocalGateway,
    _other: OtherServer,
    _litellm: LitellmProxy,
    targets: PathBuf,
}

impl Upstreams {
    /// players: the names of those that run the scenarios.
    pub(super) fn start(players: &[&str]) -> Result<Self> {
        let folder = target().join("clients");
        std::fs::create_dir_all(&folder)?;
        let simulator = LocalGateway::start_with(&["--open-metrics"])?;
        let other = OtherServer::start("upstream.mjs", &[])?;
        let mut litellm = LitellmProxy::start(&folder, &other.address)?;

        let mut middle = Configuration::new(&folder, "middle");
        for (kind, path) in KINDS {
            middle.upstream(kind, kind, &format!("{}{path}", simulator.address()), simulator.key())?;
            simulated(&mut middle, kind, kind, players, 0)?;
            middle.drawing(kind, kind, DRAWING)?;
        }
        // For the front gateway: only it sends requests here.
        let clients = MAX_CLIENTS * players.len() + failing_for_agents().count();
        simulated(&mut middle, HOP, "messages", players, clients)?;
        for (number, (kind, path)) in (2..).zip(&KINDS[..PROTOCOLS.len()]) {
            let name = strict(kind);
            middle.upstream(&name, kind, &format!("{}{path}", simulator.address()), simulator.key())?;
            simulated(&mut middle, &name, &name, players, number * clients)?;
            middle.model(&format!("via-{name}{TIDY}"), &name, "model-sol~strict")?;
            middle.drawing(&name, kind, DRAWING)?;
        }
        litellm.wait()?;
        let others = [("other", &other.address, "any-key"), ("litellm", &litellm.address, LitellmProxy::KEY)];
        for ((maker, address, key), (kind, path)) in others
            .into_iter()
            .flat_map(|other| KINDS[..PROTOCOLS.len()].iter().map(move |kind| (other, kind)))
        {
            let name = format!("{maker}-{kind}");
            middle.upstream(&name, kind, &format!("{address}{path}"), key)?;
            middle.models(&name, &name, players, |fault, client| match fault {
                Some((failing, _)) => format!("{failing}-{client}"),
                None => "model-a".to_owned(),
            })?;
            middle.drawing(&name, kind, "image-a")?;
            for (failing, _, protocol) in failing_for_agents() {
                let model = format!("{failing}-{name}-{protocol}");
                middle.model(&model_of_agent(&name, failing, protocol), &name, &model)?;
            }
        }
        let middle = middle.serve()?;

        let mut front = Configuration::new(&folder, "front");
        front.upstream("middle", "gatewright", middle.address(), middle.key())?;
        front.models("middle", "middle", players, |fault, client| match fault {
            Some((failing, _)) => model_id(HOP, failing, players[client / MAX_CLIENTS], client % MAX_CLIENTS),
            None => format!("via-{HOP}"),
        })?;
        front.drawing("middle", "gatewright", &drawing_id("chat"))?;
        for (failing, _, protocol) in failing_for_agents() {
            let model = |upstream| model_of_agent(upstream, failing, protocol);
            front.model(&model("middle"), "middle", &model(HOP))?;
        }
        let front = front.serve()?;

        let mut list = vec![of_simulator(&simulator)];
        list.extend(names_of_middle().map(|name| of_upstream(&name, &name, &middle)));
        list.push(of_upstream("two hops", "middle", &front));
        let targets = folder.join("targets.json");
        std::fs::write(&targets, serde_json::to_vec_pretty(&list)?)?;
        Ok(Self { simulator, middle, front, _other: other, _litellm: litellm, targets })
    }

    /// Where agents run: each gateway with each of its upstreams.
    pub(super) fn places(&self) -> Vec<TestedUpstream<'_>> {
        let of = |name: &str, upstream: &str| TestedUpstream {
            name: name.to_owned(),
            gateway: match name {
                "simulator" => &self.simulator,
                "two hops" => &self.front,
                _ => &self.middle,
            },
            upstream: upstream.to_owned(),
        };
        let mut places = vec![of("simulator", "")];
        places.extend(names_of_middle().map(|name| of(&name, &name)));
        places.push(of("two hops", "middle"));
        places
    }

    /// The file that tells the players where to run.
    pub(super) fn targets(&self) -> &Path {
        &self.targets
    }
}

/// A gateway with one of its upstreams.
pub(super) struct TestedUpstream<'a> {
    pub(super) name: String,
    pub(super) gateway: &'a LocalGateway,
    upstream: String,
}

impl TestedUpstream<'_> {
    /// The model for clients of a protocol.
    pub(super) fn model(&self, protocol: &str) -> String {
        let of_simulator = PROTOCOLS.iter().find(|(name, _)| *name == protocol && self.upstream.is_empty());
        of_simulator.map_or_else(|| model_of(&self.upstream, protocol), |(_, model)| (*model).to_owned())
    }

    /// A failing model, for the agent of a protocol.
    pub(super) fn failing(&self, failing: &str, protocol: &str) -> String {
        let fault = FAILING_FOR_AGENTS.iter().find(|(name, _)| *name == failing && self.upstream.is_empty());
        fault.map_or_else(
            || model_of_agent(&self.upstream, failing, protocol),
            |(_, fault)| format!("{}~{fault}", self.model(protocol)),
        )
    }

    /// The upstream of its models. None: the gateway answers itself.
    pub(super) fn upstream(&self) -> Option<&str> {
        (!self.upstream.is_empty()).then_some(&*self.upstream)
    }

    /// Whether nothing there tells how long to wait after a 429.
    pub(super) fn hides_wait(&self) -> bool {
        self.name.starts_with("litellm-")
    }

    /// Whether the answers come from the third-party server.
    pub(super) fn is_other_makers(&self) -> bool {
        self.name.starts_with("other-") || self.name.starts_with("litellm-")
    }
}

/// The models of an upstream of ours with the simulator behind it. name: its part of their ids. first: offset for the
/// numbers of failing models.
fn simulated(
    middle: &mut Configuration,
    name: &str,
    upstream: &str,
    players: &[&str],
    first: usize,
) -> Result<()> {
    let is_strict = name.starts_with(STRICT);
    // A separate model for each client, so that its breaker affects no other client.
    let failing = |fault: &str, number: usize| format!("model-sol~{fault},delay={number}");
    middle.models(name, upstream, players, |fault, client| match fault {
        Some((_, fault)) => failing(fault, first + client),
        None if is_strict => "model-sol~strict,messy".to_owned(),
        None => "model-sol".to_owned(),
    })?;
    let agents = first + MAX_CLIENTS * players.len();
    for (number, (kind, fault, protocol)) in (agents..).zip(failing_for_agents()) {
        middle.model(&model_of_agent(name, kind, protocol), upstream, &failing(fault, number))?;
    }
    Ok(())
}

/// Names of the upstreams of the gateway in the middle.
fn names_of_middle() -> impl Iterator<Item = String> {
    let ours = KINDS.iter().map(|(kind, _)| (*kind).to_owned());
    let protocols = &KINDS[..PROTOCOLS.len()];
    let others = ["other", "litellm"]
        .into_iter()
        .flat_map(|maker| protocols.iter().map(move |(kind, _)| format!("{maker}-{kind}")));
    ours.chain(protocols.iter().map(|(kind, _)| strict(kind))).chain(others)
}

/// The name of the strict upstream of a kind.
fn strict(kind: &str) -> String {
    format!("{STRICT}-{kind}")
}

/// The model of an upstream for clients of a protocol.
fn model_of(upstream: &str, protocol: &str) -> String {
    // An upstream of responses also gets chat requests unchanged.
    let is_passed_on = upstream == strict(protocol) || upstream == strict("responses") && protocol == "chat";
    let tidy = if is_passed_on { TIDY } else { "" };
    format!("via-{upstream}{tidy}")
}

/// The failures for the agent of each protocol: their kind, the fault requested from the simulator, and the
/// protocol.
fn failing_for_agents() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let of = |(failing, fault)| PROTOCOLS.map(|(protocol, _)| (failing, fault, protocol));
    FAILING_FOR_AGENTS.into_iter().flat_map(of)
}

/// The id of a failing model, for the agent of a protocol.
fn model_of_agent(upstream: &str, failing: &str, protocol: &str) -> String {
    format!("via-{upstream}-{failing}-agent-{protocol}")
}

/// The id of a failing model, for one client of a player.
fn model_id(upstream: &str, failing: &str, player: &str, client: usize) -> String {
    format!("via-{upstream}-{failing}-{player}-{client}")
}

/// The id of an upstream's image model.
fn drawing_id(upstream: &str) -> String {
    format!("via-{upstream}-drawing")
}

/// A target: the models of the catalog, each for the protocol that serves it.
fn of_simulator(gateway: &LocalGateway) -> Value {
    let models = |suffix: &str| -> Value {
        PROTOCOLS.iter().map(|(protocol, model)| (*protocol, format!("{model}{suffix}"))).collect()
    };
    let mut target = json!({
        "name": "simulator",
        "url": gateway.address(),
        "key": gateway.key(),
        "models": models(""),
        "drawing": { "chat": DRAWING },
    });
    for (failing, fault) in FAILING {
        target[failing] = models(&format!("~{fault}"));
    }
    target
}

/// A target: one configured model for all protocols. The players replace `{}` with their name.
fn of_upstream(name: &str, upstream: &str, gateway: &LocalGateway) -> Value {
    let models = |suffix: &str| -> Value {
        PROTOCOLS.iter().map(|(protocol, _)| (*protocol, format!("via-{upstream}{suffix}"))).collect()
    };
    let mut target = json!({
        "name": name,
        "url": gateway.address(),
        "key": gateway.key(),
        "models": PROTOCOLS
            .iter()
            .map(|(protocol, _)| (*protocol, model_of(upstream, protocol)))
            .collect::<BTreeMap<_, _>>(),
    });
    for (failing, _) in FAILING {
        target[failing] = models(&format!("-{failing}-{{}}"));
    }
    if upstream == "middle"
        || DRAW.iter().any(|kind| *kind == upstream || upstream.ends_with(&format!("-{kind}")))
    {
        target["drawing"] = json!({ "chat": drawing_id(upstream) });
    } else {
        target["lacks"]["*"]["draw"] = json!(DRAWS_NOT);
    }
    // What is missing there is also missing without our gateway.
    match name {
        "other-native" => {
            let reason = "the server ends a call with FUNCTION_CALL, where litellm drops it";
            target["lacks"]["litellm, native"] = json!({ "tools": reason, "streamed_tools": reason });
        }
        "litellm-native" => {
            // The proxy reports no usage for native streams, and accepts images in native requests only as
            // `inline_data`.
            target["hides_usage"] = json!(true);
            target["drops_pictures"] = json!(true);
            let calls = "litellm drops calls of its own proxy";
            target["lacks"]["litellm, native"] = json!({ "tools": calls, "streamed_tools": calls });
        }
        _ => {}
    }
    if name.starts_with("litellm-") {
        // The proxy retries what breaks off, or passes the failure on, depending on the protocol and the timing. It reports
        // how long to wait in `llm_provider-retry-after`.
        target["mends_streams"] = json!(true);
        target["hides_wait"] = json!(true);
    }
    target
}

/// A configuration file under construction.
struct Configuration {
    path: PathBuf,
    text: String,
}

impl Configuration {
    fn new(folder: &Path, name: &str) -> Self {
        let text = "[observe]\nopen_metrics = true\n".to_owned();
        Self { path: folder.join(name).with_extension("toml"), text }
    }

    fn upstream(&mut self, name: &str, kind: &str, base_url: &str, key: &str) -> Result<()> {
        let file = self.path.with_extension(format!("{name}.key")).display().to_string();
        std::fs::write(&file, key)?;
        writeln!(
            self.text,
            "[upstreams.{name}]\nkind = {kind:?}\nbase_url = {base_url:?}\nkey = {{ file = {file:?} }}"
        )?;
        Ok(())
    }

    /// One model for an upstream, and the failing ones for each client. name: its part of their ids. at_upstream: their
    /// name at the upstream, by the kind of failure and the number of the client among all.
    fn models(
        &mut self,
        name: &str,
        upstream: &str,
        players: &[&str],
        at_upstream: impl Fn(Option<(&str, &str)>, usize) -> String,
    ) -> Result<()> {
        let mut models = vec![(format!("via-{name}"), at_upstream(None, 0))];
        for fault in FAILING {
            for (index, player) in players.iter().enumerate() {
                for client in 0..MAX_CLIENTS {
                    let id = model_id(name, fault.0, player, client);
                    models.push((id, at_upstream(Some(fault), index * MAX_CLIENTS + client)));
                }
            }
        }
        models.into_iter().try_for_each(|(id, model)| self.model(&id, upstream, &model))
    }

    /// A model of an upstream. at_upstream: its name there.
    fn model(&mut self, id: &str, upstream: &str, at_upstream: &str) -> Result<()> {
        Ok(writeln!(
            self.text,
            "[models.{id}]\ntranslate_responses = true\ntargets = [{{ upstream = {upstream:?}, model = {at_upstream:?} }}]"
        )?)
    }

    /// The image model of an upstream, if upstreams of this kind generate images.
    fn drawing(&mut self, upstream: &str, kind: &str, at_upstream: &str) -> Result<()> {
        if !DRAW.contains(&kind) {
            return Ok(());
        }
        let id = drawing_id(upstream);
        Ok(writeln!(
            self.text,
            "[models.{id}]\nkind = \"image\"\ntargets = [{{ upstream = {upstream:?}, model = {at_upstream:?} }}]"
        )?)
    }

    fn serve(self) -> Result<LocalGateway> {
        std::fs::write(&self.path, self.text)?;
        LocalGateway::start_with(&["--config", &self.path.display().to_string()])
    }
}
