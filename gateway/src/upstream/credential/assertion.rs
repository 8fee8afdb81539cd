//! The assertion with which a service account requests an access token: a JSON Web Token signed with its private key (RFC 7523).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

/// Lifetime of an assertion, in seconds: the maximum that token servers allow.
const LIFETIME: u64 = 3600;

/// The claims of an assertion.
pub(super) struct Claims<'a> {
    /// The service account.
    pub(super) issuer: &'a str,
    pub(super) scope: &'a str,
    /// The token endpoint.
    pub(super) audience: &'a str,
    /// Unix time, in seconds.
    pub(super) issued_at: u64,
}

/// Signs an assertion. `key`: PKCS#8 in PEM; `key_id`: its id. Errors: the key is invalid; never quotes it.
pub(super) fn sign(claims: &Claims<'_>, key: &str, key_id: Option<&str>) -> Result<String, &'static str> {
    let der = PrivatePkcs8KeyDer::from_pem_slice(key.as_bytes())
        .map_err(|_| "private_key is not a private key in PEM (PKCS#8)")?;
    let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der())
        .map_err(|_| "private_key is not an RSA key of 2048 to 4096 bits")?;
    let mut head = json!({ "alg": "RS256", "typ": "JWT" });
    if let Some(id) = key_id {
        head["kid"] = id.into();
    }
    let Claims { issuer, scope, audience, issued_at } = claims;
    let claims = json!({
        "iss": issuer,
        "scope": scope,
        "aud": audience,
        "iat": issued_at,
        "exp": issued_at + LIFETIME,
    });
    let encoded = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
    let mut token = format!("{}.{}", encoded(&head), encoded(&claims));
    let mut signature = vec![0; pair.public().modulus_len()];
    pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), token.as_bytes(), &mut signature)
        .map_err(|_| "private_key cannot sign")?;
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(signature, &mut token);
    Ok(token)
}
