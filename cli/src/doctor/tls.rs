//! TLS: the certificate chain, whether it is trusted, and how long it is valid.

use std::fmt::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gatewright::CA_BUNDLE_VARIABLE;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::Url;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::connection::Connection;
use super::finding::{Finding, FindingLevel};
use crate::amount;

/// A certificate that expires within this many days is reported.
const SOON_DAYS: i64 = 14;
/// Maximum number of certificates in a chain, and of names in one, that are shown.
const MAX_CERTIFICATES: usize = 5;

/// Handshake settings: the same as a client's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tls<'a> {
    /// Additional authorities.
    pub(super) bundle: Option<&'a Path>,
    pub(super) limit: Duration,
}

impl Tls<'_> {
    /// Performs a handshake, and examines the connection in it. name: of the finding. is_behind_proxy: whether the server
    /// is behind a proxy.
    pub(super) async fn examine(
        self,
        name: &'static str,
        server: &Url,
        is_behind_proxy: bool,
        stream: Box<dyn Connection>,
    ) -> Result<(Finding, Box<dyn Connection>), Finding> {
        let fail = |why: String| Finding::new(name, FindingLevel::Fail, why);
        let host = server.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let Ok(host_name) = ServerName::try_from(host.clone()) else {
            return Err(fail(format!("{host} is not a name that a certificate can have")));
        };
        let (watching, connector) = connector(self.bundle).map_err(fail)?;
        let handshake = timeout(self.limit, connector.connect(host_name, stream)).await;
        let chain = watching.chain.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs().cast_signed());
        match handshake {
            Err(_) => Err(fail(format!("the handshake timed out after {}", amount::time(self.limit)))
                .advise("the port may not speak TLS: check the address")),
            Ok(Err(error)) => {
                let refused = error.get_ref().and_then(|error| error.downcast_ref::<Error>());
                let message = format!("the handshake failed: {error}{}", shown(&chain, now));
                Err(fail(message).advise(advice(refused, is_behind_proxy)))
            }
            Ok(Ok(stream)) => {
                let version = match stream.get_ref().1.protocol_version() {
                    Some(rustls::ProtocolVersion::TLSv1_3) => "TLS 1.3",
                    Some(rustls::ProtocolVersion::TLSv1_2) => "TLS 1.2",
                    _ => "TLS",
                };
                let message = format!("{version}, and the certificate is trusted{}", shown(&chain, now));
                let finding = match days_left(&chain, now) {
                    Some(days) if days < SOON_DAYS => Finding::new(name, FindingLevel::Warn, message)
                        .advise(format!("renew the certificate: calls fail in {days} days")),
                    _ => Finding::new(name, FindingLevel::Ok, message),
                };
                Ok((finding, Box::new(stream)))
            }
        }
    }
}

fn connector(bundle: Option<&Path>) -> Result<(Arc<ChainRecorder>, TlsConnector), String> {
    let roots = gatewright_trust::roots(bundle).map_err(|error| error.to_string())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let verifier = verifier.map_err(|error| format!("TLS cannot be set up: {error}"))?;
    let watching = Arc::new(ChainRecorder { verifier, chain: Mutex::default() });
    // It rejects what every client's verifier rejects, and otherwise only observes.
    let verifier: Arc<dyn ServerCertVerifier> = Arc::<ChainRecorder>::clone(&watching);
    let config = gatewright_trust::client()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok((watching, TlsConnector::from(Arc::new(config))))
}

/// The advice for a failed handshake.
fn advice(refused: Option<&Error>, is_behind_proxy: bool) -> String {
    let Some(Error::InvalidCertificate(why)) = refused else {
        return "the port may not speak TLS: check the address, and whether it begins with http or https"
            .to_owned();
    };
    match why {
        CertificateError::UnknownIssuer if is_behind_proxy => format!(
            "the proxy may present its own certificate: if you trust its authority, set {CA_BUNDLE_VARIABLE} to a \
             PEM file with the authority's certificate"
        ),
        CertificateError::UnknownIssuer => {
            format!(
                "if you trust its authority, set {CA_BUNDLE_VARIABLE} to a PEM file with the authority's certificate"
            )
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "renew the gateway's certificate, or correct this machine's clock".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "correct this machine's clock, or wait until the certificate is valid".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "use a name from the certificate in the address, or give the gateway a certificate for this name"
                .to_owned()
        }
        _ => "replace the gateway's certificate".to_owned(),
    }
}

/// Days until the first certificate of the chain expires.
fn days_left(chain: &[CertificateDer<'static>], now: i64) -> Option<i64> {
    let ends = chain.iter().filter_map(|der| Some(parse(der)?.validity().not_after.timestamp()));
    // The chain was accepted, so expired certificates in it are not needed.
    ends.filter(|end| *end > now).min().map(|end| (end - now).div_euclid(24 * 60 * 60))
}

/// A line for each certificate: its owner, its names, its issuer, and its expiry.
fn shown(chain: &[CertificateDer<'static>], now: i64) -> String {
    let mut text = String::new();
    for (at, der) in chain.iter().take(MAX_CERTIFICATES).enumerate() {
        let Some(certificate) = parse(der) else {
            text.push_str("\nan unreadable certificate");
            continue;
        };
        let end = certificate.validity().not_after.timestamp();
        let days = (end - now).div_euclid(24 * 60 * 60);
        let until = match days {
            ..0 => "expired".to_owned(),
            0 => "expires today".to_owned(),
            days => format!("expires in {days} days"),
        };
        let names = if at == 0 { names(&certificate) } else { String::new() };
        let subject = certificate.subject().to_string();
        let subject = if subject.is_empty() { "a certificate" } else { &subject };
        _ = write!(text, "\n{subject}{names}, issued by {}; {until}", certificate.issuer());
    }
    text
}

fn names(certificate: &X509Certificate<'_>) -> String {
    let Ok(Some(alternative)) = certificate.subject_alternative_name() else { return String::new() };
    let names: Vec<String> = alternative
        .value
        .general_names
        .iter()
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            GeneralName::IPAddress(bytes) => match *bytes {
                &[a, b, c, d] => Some(std::net::Ipv4Addr::new(a, b, c, d).to_string()),
                bytes => {
                    <[u8; 16]>::try_from(bytes).ok().map(|bytes| std::net::Ipv6Addr::from(bytes).to_string())
                }
            },
            _ => None,
        })
        .take(MAX_CERTIFICATES)
        .collect();
    if names.is_empty() { String::new() } else { format!(" for {}", names.join(", ")) }
}

fn parse<'a>(der: &'a CertificateDer<'static>) -> Option<X509Certificate<'a>> {
    X509Certificate::from_der(der).ok().map(|(_, certificate)| certificate)
}

/// Verifies as clients do, and records the chain.
struct ChainRecorder {
    verifier: Arc<WebPkiServerVerifier>,
    chain: Mutex<Vec<CertificateDer<'static>>>,
}

impl fmt::Debug for ChainRecorder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ChainRecorder").finish_non_exhaustive()
    }
}

impl ServerCertVerifier for ChainRecorder {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let sent = std::iter::once(end_entity).chain(intermediates).take(MAX_CERTIFICATES);
        let chain = sent.map(|certificate| certificate.clone().into_owned()).collect();
        *self.chain.lock().unwrap_or_else(PoisonError::into_inner) = chain;
        self.verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
