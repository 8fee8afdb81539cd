//! The path to the gateway: proxy, DNS, connection, TLS.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gatewright::{BASE_URL_VARIABLE, CA_BUNDLE_VARIABLE};
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::{Host, Url};

use super::connection::Connection;
use super::finding::{Finding, FindingLevel};
use super::tls::Tls;
use super::{DoctorReport, proxy};
use crate::amount;

/// Maximum number of addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;

/// The peer of a step: the gateway, or the proxy in front of it.
struct NetworkPeer<'a> {
    server: &'a Url,
    /// The gateway, if the peer is a proxy.
    before: Option<&'a Url>,
}

impl NetworkPeer<'_> {
    /// "the proxy " before its address, if it is one.
    fn shown(&self) -> &'static str {
        if self.before.is_some() { "the proxy " } else { "" }
    }

    /// The advice if its name has no address.
    fn advise_name(&self) -> String {
        match self.before {
            Some(gateway) => format!("check the name in {}", proxy::variables(gateway)),
            None => {
                format!("check the name in {BASE_URL_VARIABLE} or --base-url, and this machine's DNS servers")
            }
        }
    }

    /// The advice if it accepts no connection.
    fn advise_connection(&self, is_silent: bool) -> String {
        match (self.before, is_silent) {
            (Some(gateway), _) => format!("no proxy answers there: fix {}", proxy::variables(gateway)),
            (None, true) => "a firewall may be dropping packets: check the port and the route".to_owned(),
            (None, false) => format!(
                "start the gateway with `gatewright serve`, or fix the address in --base-url or {BASE_URL_VARIABLE}"
            ),
        }
    }
}

/// proxy: the one that calls use. Returns whether there is a connection over which the gateway can be called.
pub(super) async fn examine(
    gateway: &Url,
    proxy: Option<&Url>,
    limit: Duration,
    examined: &mut DoctorReport,
) -> io::Result<bool> {
    match reach(gateway, proxy, limit, examined).await? {
        Ok(()) => Ok(true),
        Err(finding) => {
            examined.add(finding)?;
            Ok(false)
        }
    }
}

/// Follows the path. The inner error is the finding that ends it.
async fn reach(
    gateway: &Url,
    proxy: Option<&Url>,
    limit: Duration,
    examined: &mut DoctorReport,
) -> io::Result<Result<(), Finding>> {
    let bundle = std::env::var_os(CA_BUNDLE_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    if let Some(bundle) = &bundle {
        match authorities(bundle) {
            Ok(finding) => examined.add(finding)?,
            Err(finding) => return Ok(Err(finding)),
        }
    }
    examined.add(match proxy {
        Some(proxy) => Finding::new("proxy", FindingLevel::Ok, format!("calls go through {proxy}"))
            .advise(format!("to reach the gateway without it, add {} to NO_PROXY", proxy::host(gateway))),
        None => Finding::new("proxy", FindingLevel::Ok, "none: calls go directly to the gateway"),
    })?;
    let peer = NetworkPeer { server: proxy.unwrap_or(gateway), before: proxy.map(|_| gateway) };
    let addresses = match resolve(&peer, limit).await {
        Ok((finding, addresses)) => {
            finding.map_or(Ok(()), |finding| examined.add(finding))?;
            addresses
        }
        Err(finding) => return Ok(Err(finding)),
    };
    let stream = match connect(&peer, &addresses, limit).await {
        Ok((finding, stream)) => {
            examined.add(finding)?;
            stream
        }
        Err(finding) => return Ok(Err(finding)),
    };
    let tls = Tls { bundle: bundle.as_deref(), limit };
    let stream = match proxy {
        Some(proxy) => match behind(proxy, gateway, stream, tls, examined).await? {
            Ok(stream) => stream,
            Err(finding) => return Ok(Err(finding)),
        },
        None => Some(stream),
    };
    if gateway.scheme() != "https" {
        examined.add(plain(gateway))?;
        return Ok(Ok(()));
    }
    let Some(stream) = stream else { return Ok(Ok(())) };
    match tls.examine("TLS", gateway, proxy.is_some(), stream).await {
        Ok((finding, _)) => examined.add(finding).map(Ok),
        Err(finding) => Ok(Err(finding)),
    }
}

/// The connection to the gateway behind a proxy; none if calls are sent to the proxy.
async fn behind(
    proxy: &Url,
    gateway: &Url,
    stream: Box<dyn Connection>,
    tls: Tls<'_>,
    examined: &mut DoctorReport,
) -> io::Result<Result<Option<Box<dyn Connection>>, Finding>> {
    let stream = if proxy.scheme() == "https" {
        match tls.examine("proxy's TLS", proxy, false, stream).await {
            Ok((finding, stream)) => {
                examined.add(finding)?;
                stream
            }
            Err(finding) => return Ok(Err(finding)),
        }
    } else {
        stream
    };
    let is_asked_each_time = gateway.scheme() == "http" && proxy.scheme().starts_with("http");
    if is_asked_each_time {
        return Ok(Ok(None));
    }
    match proxy::tunnel(proxy, gateway, stream, tls.limit).await {
        Ok((finding, stream)) => {
            examined.add(finding)?;
            Ok(Ok(Some(stream)))
        }
        Err(finding) => Ok(Err(finding)),
    }
}

fn authorities(bundle: &Path) -> Result<Finding, Finding> {
    let shown = bundle.display();
    match gatewright_trust::roots(Some(bundle)) {
        Ok(_) => {
            Ok(Finding::new("authorities", FindingLevel::Ok, format!("those of this machine and in {shown}")))
        }
        Err(error) => {
            Err(Finding::new("authorities", FindingLevel::Fail, format!("{shown} cannot be used: {error}"))
                .advise(format!("{CA_BUNDLE_VARIABLE} must name a PEM file of certificates")))
        }
    }
}

/// A key sent over a network without TLS can be read there.
fn plain(gateway: &Url) -> Finding {
    let is_here = match gateway.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    if is_here {
        return Finding::new("TLS", FindingLevel::Ok, "none, and none needed on this machine");
    }
    Finding::new("TLS", FindingLevel::Warn, "none: anyone on the network path can read the key")
        .advise("use an https address; the guide to operating a gateway explains how to turn on TLS")
}

/// The addresses of a server, and a finding about its name. Errors: it has none.
async fn resolve(
    peer: &NetworkPeer<'_>,
    limit: Duration,
) -> Result<(Option<Finding>, Vec<SocketAddr>), Finding> {
    let server = peer.server;
    let port = server.port_or_known_default().unwrap_or(80);
    let name = match server.host() {
        Some(Host::Ipv4(address)) => return Ok((None, vec![(address, port).into()])),
        Some(Host::Ipv6(address)) => return Ok((None, vec![(address, port).into()])),
        Some(Host::Domain(name)) => name,
        None => "",
    };
    let began = Instant::now();
    let fail = |why: String| {
        let message = format!("{}{name} has no address: {why}", peer.shown());
        Finding::new("name", FindingLevel::Fail, message).advise(peer.advise_name())
    };
    let found = match timeout(limit, tokio::net::lookup_host((name, port))).await {
        Err(_) => return Err(fail(format!("no answer within {}", amount::time(limit)))),
        Ok(Err(error)) => return Err(fail(error.to_string())),
        Ok(Ok(found)) => found.take(MAX_ADDRESSES).collect::<Vec<_>>(),
    };
    if found.is_empty() {
        return Err(fail("DNS has none".to_owned()));
    }
    let shown: Vec<String> = found.iter().map(|address| address.ip().to_string()).collect();
    let message = format!(
        "{}{name} resolves to {} ({})",
        peer.shown(),
        shown.join(", "),
        amount::time(began.elapsed())
    );
    Ok((Some(Finding::new("name", FindingLevel::Ok, message)), found))
}

/// A connection to the first address that accepts one. Errors: none does.
async fn connect(
    peer: &NetworkPeer<'_>,
    addresses: &[SocketAddr],
    limit: Duration,
) -> Result<(Finding, Box<dyn Connection>), Finding> {
    let began = Instant::now();
    let share = limit / u32::try_from(addresses.len()).unwrap_or(1).max(1);
    let mut refused = Vec::new();
    let mut is_silent = false;
    for address in addresses {
        let why = match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                let message = format!(
                    "{}{address} accepts connections ({})",
                    peer.shown(),
                    amount::time(began.elapsed())
                );
                let finding = if refused.is_empty() {
                    Finding::new("connection", FindingLevel::Ok, message)
                } else {
                    let message = format!("{message}, but {}", refused.join("; "));
                    Finding::new("connection", FindingLevel::Warn, message)
                        .advise("calls try each address in turn, which takes time: fix the failing ones")
                };
                return Ok((finding, Box::new(stream)));
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => {
                is_silent = true;
                format!("no answer within {}", amount::time(share))
            }
        };
        refused.push(format!("{address}: {why}"));
    }
    let message = format!("{}{}", peer.shown(), refused.join("\n"));
    Err(Finding::new("connection", FindingLevel::Fail, message).advise(peer.advise_connection(is_silent)))
}
