//! The way to the gateway: the proxy, the name, the connection, TLS.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gatewright::{BASE_URL_VARIABLE, CA_BUNDLE_VARIABLE, environment_proxy};
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::{Host, Url};

use super::finding::{Finding, Verdict};
use super::{Examined, tls};
use crate::amount;

/// Most addresses of a name that are tried.
const MOST_ADDRESSES: usize = 8;

/// Returns whether there is a connection over which the gateway may be asked.
pub(super) async fn examine(gateway: &Url, limit: Duration, examined: &mut Examined) -> io::Result<bool> {
    let bundle = std::env::var_os(CA_BUNDLE_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    if let Some(bundle) = &bundle {
        let finding = authorities(bundle);
        let is_usable = finding.verdict == Verdict::Ok;
        examined.add(finding)?;
        if !is_usable {
            return Ok(false);
        }
    }
    let proxy = environment_proxy(gateway);
    examined.add(match &proxy {
        Some(proxy) => Finding::new("proxy", Verdict::Ok, format!("calls go through {proxy}"))
            .advise("to reach the gateway without it, add its host to NO_PROXY"),
        None => Finding::new("proxy", Verdict::Ok, "none: calls go straight to the gateway"),
    })?;
    let server = proxy.as_ref().unwrap_or(gateway);
    let addresses = match resolve(server, limit).await {
        Ok((finding, addresses)) => {
            if let Some(finding) = finding {
                examined.add(finding)?;
            }
            addresses
        }
        Err(finding) => {
            examined.add(finding)?;
            return Ok(false);
        }
    };
    let stream = match connect(&addresses, limit).await {
        Ok((finding, stream)) => {
            examined.add(finding)?;
            stream
        }
        Err(finding) => {
            examined.add(finding)?;
            return Ok(false);
        }
    };
    if gateway.scheme() != "https" {
        examined.add(plain(gateway))?;
        return Ok(true);
    }
    if proxy.is_some() {
        let found = "not looked at: the proxy stands between";
        examined.add(Finding::new("TLS", Verdict::Skip, found))?;
        return Ok(true);
    }
    let finding = tls::examine(gateway, stream, bundle.as_deref(), limit).await;
    let is_usable = finding.verdict != Verdict::Fail;
    examined.add(finding)?;
    Ok(is_usable)
}

fn authorities(bundle: &Path) -> Finding {
    let shown = bundle.display();
    match gatewright_trust::roots(Some(bundle)) {
        Ok(_) => Finding::new("authorities", Verdict::Ok, format!("those of this machine and of {shown}")),
        Err(error) => Finding::new("authorities", Verdict::Fail, format!("{shown} cannot be used: {error}"))
            .advise(format!("{CA_BUNDLE_VARIABLE} must name a PEM file of certificates")),
    }
}

/// A key that goes over a network without TLS can be read there.
fn plain(gateway: &Url) -> Finding {
    let is_here = match gateway.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    if is_here {
        return Finding::new("TLS", Verdict::Ok, "none, and none is needed on this machine");
    }
    Finding::new("TLS", Verdict::Warn, "none: whoever is on the way can read the key")
        .advise("use an https address; the guide to operating a gateway says how to turn TLS on")
}

/// The addresses of a server, and what there is to say of its name. Errors: it has none.
async fn resolve(server: &Url, limit: Duration) -> Result<(Option<Finding>, Vec<SocketAddr>), Finding> {
    let port = server.port_or_known_default().unwrap_or(80);
    let name = match server.host() {
        Some(Host::Ipv4(address)) => return Ok((None, vec![(address, port).into()])),
        Some(Host::Ipv6(address)) => return Ok((None, vec![(address, port).into()])),
        Some(Host::Domain(name)) => name,
        None => "",
    };
    let began = Instant::now();
    let fail = |why: String| {
        Finding::new("name", Verdict::Fail, format!("{name} has no address: {why}")).advise(format!(
            "check the name in {BASE_URL_VARIABLE} or --base-url, and the name servers of this machine"
        ))
    };
    let found = match timeout(limit, tokio::net::lookup_host((name, port))).await {
        Err(_) => return Err(fail(format!("there was no answer within {}", amount::time(limit)))),
        Ok(Err(error)) => return Err(fail(error.to_string())),
        Ok(Ok(found)) => found.take(MOST_ADDRESSES).collect::<Vec<_>>(),
    };
    if found.is_empty() {
        return Err(fail("the name servers know none".to_owned()));
    }
    let shown: Vec<String> = found.iter().map(|address| address.ip().to_string()).collect();
    let told = format!("{name} is {} ({})", shown.join(", "), amount::time(began.elapsed()));
    Ok((Some(Finding::new("name", Verdict::Ok, told)), found))
}

/// A connection to the first address that takes one. Errors: none does.
async fn connect(addresses: &[SocketAddr], limit: Duration) -> Result<(Finding, TcpStream), Finding> {
    let began = Instant::now();
    let share = limit / u32::try_from(addresses.len()).unwrap_or(1).max(1);
    let mut refused = Vec::new();
    let mut is_silent = false;
    for address in addresses {
        let why = match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                let told = format!("{address} takes it ({})", amount::time(began.elapsed()));
                return Ok(match refused.as_slice() {
                    [] => (Finding::new("connection", Verdict::Ok, told), stream),
                    refused => (
                        Finding::new(
                            "connection",
                            Verdict::Warn,
                            format!("{told}, but {}", refused.join("; ")),
                        )
                        .advise("calls try each address in turn, which takes time: mend those that fail"),
                        stream,
                    ),
                });
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => {
                is_silent = true;
                format!("no answer within {}", amount::time(share))
            }
        };
        refused.push(format!("{address}: {why}"));
    }
    let advice = if is_silent {
        "a firewall may drop the packets: check the port and the way there"
    } else {
        "start the gateway with `gatewright serve`, or correct the address in --base-url or GATEWRIGHT_BASE_URL"
    };
    Err(Finding::new("connection", Verdict::Fail, refused.join("\n")).advise(advice))
}
