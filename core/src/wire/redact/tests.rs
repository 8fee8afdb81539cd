use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE};
use proptest::prelude::*;

use super::*;

const KEY: &str = "gw_Canary/4+7f=x9";

fn redactor() -> Redactor {
    Redactor::new([KEY])
}

fn spelled(text: &str, form: impl Fn(char) -> String) -> String {
    let letters: Vec<String> = text.chars().map(form).collect();
    letters.concat()
}

fn json_escaped(text: &str) -> String {
    spelled(text, |letter| format!("\\u{:04X}", u32::from(letter)))
}

fn percent(text: &str) -> String {
    spelled(text, |letter| format!("%{:02x}", u32::from(letter)))
}

fn forms() -> Vec<(&'static str, String)> {
    let spread = |between: &str| spelled(KEY, |letter| format!("{letter}{between}"));
    vec![
        ("plain", KEY.to_owned()),
        ("upper case", KEY.to_uppercase()),
        ("lower case", KEY.to_lowercase()),
        ("slashes escaped", KEY.replace('/', "\\/")),
        ("as JSON code points", json_escaped(KEY)),
        ("JSON in JSON", json_escaped(KEY).replace('\\', "\\\\")),
        ("in a URL", percent(KEY)),
        ("special characters in a URL", KEY.replace('/', "%2F").replace('+', "%2B").replace('=', "%3D")),
        ("twice in a URL", percent(KEY).replace('%', "%25")),
        ("HTML", spelled(KEY, |letter| format!("&#{};", u32::from(letter)))),
        ("HTML in hex", spelled(KEY, |letter| format!("&#x{:X};", u32::from(letter)))),
        ("base64", BASE64_STANDARD.encode(KEY)),
        ("base64 for URLs", BASE64_URL_SAFE.encode(KEY)),
        ("Basic", BASE64_STANDARD.encode(format!("user:{KEY}"))),
        ("base64, shifted", BASE64_STANDARD.encode(format!("u:{KEY}!"))),
        ("hex", spelled(KEY, |letter| format!("{:02x}", u32::from(letter)))),
        ("HEX", spelled(KEY, |letter| format!("{:02X}", u32::from(letter)))),
        ("with zeros between", spread("\0")),
        ("with zero width between", spread("\u{200b}")),
        ("with line breaks between", spread("\n")),
    ]
}

#[test]
fn key_is_redacted_in_every_encoding() {
    for (name, form) in forms() {
        for (before, after) in [("", ""), ("{\"message\":\"bad key ", "\"}"), ("ü", "é end")] {
            let redacted = redactor().redact(&format!("{before}{form}{after}"));
            assert!(redacted.contains(REDACTED), "{name}: {redacted}");
            assert!(redacted.starts_with(before), "{name}: {redacted}");
            assert!(redacted.ends_with(after), "{name}: {redacted}");
            // In a longer base64 text, the part before the secret remains.
            assert!(redacted.len() <= before.len() + after.len() + REDACTED.len() + 8, "{name}: {redacted}");
            assert!(redactor().finds(&form), "{name}");
        }
    }
}

#[test]
fn partial_key_at_the_end_of_truncated_text_is_redacted() {
    assert_eq!(redactor().redact("{\"echo\":\"gw_Canary/"), "{\"echo\":\"[redacted]");
    assert_eq!(redactor().redact("end of gw_C"), "end of gw_C");
}

#[test]
fn text_is_redacted_before_truncation_at_any_length() {
    for (name, form) in forms() {
        let text = format!("{}{form}{}", "x".repeat(40), " y".repeat(40));
        let whole = redactor().redact(&text);
        for max_bytes in 0..text.len() {
            let (cut, _) = redactor().redact_beginning(&text, max_bytes);
            assert!(whole.starts_with(&cut), "{name} at {max_bytes}: {cut}");
            let body = redactor().show_body(&Bytes::from(text.clone()), max_bytes);
            assert!(whole.as_bytes().starts_with(&body), "{name} at {max_bytes}: {body:?}");
            assert!(body.len() <= max_bytes);
        }
    }
}

#[test]
fn repeated_secrets_reveal_no_partial_secret_when_truncated() {
    let text = KEY.repeat(1000);
    for max_bytes in (1..text.len()).step_by(61) {
        let shown = redactor().show_body(&Bytes::from(text.clone()), max_bytes);
        assert!(REDACTED.as_bytes().starts_with(&shown), "{shown:?}");
    }
}

#[test]
fn secret_across_a_step_boundary_is_redacted() {
    for before in STEP_BYTES - 2 * KEY.len()..STEP_BYTES + 2 {
        let redacted = redactor().redact(&format!("{}{}", " ".repeat(before), json_escaped(KEY)));
        assert_eq!(redacted.trim_start(), REDACTED, "{before}");
    }
    let short = Redactor::new(["key"]);
    let words = "monkey ".repeat(STEP_BYTES / 3);
    assert_eq!(short.redact(&words), words);
}

#[test]
fn overlapping_secrets_do_not_multiply_memory() {
    let alike = Redactor::new(["canary-1", " canary-1", "canary-2", "canary-1", "", " "]);
    assert_eq!(alike.secrets.len(), 2);
    let secrets: Vec<String> = (SHORTEST_DISTINCT..SHORTEST_DISTINCT + 32).map(|n| "a".repeat(n)).collect();
    let text = "a".repeat(1 << 18);
    let redactor = Redactor::new(secrets.iter().map(String::as_str));
    let used = allocation_counter::measure(|| assert_eq!(redactor.redact(&text), REDACTED));
    assert!(used.bytes_max < 4 << 20, "{used:?}");
}

#[test]
fn non_utf8_bytes_are_redacted_and_otherwise_unchanged() {
    let body = [b"\xff", KEY.as_bytes(), b"\xfe"].concat();
    assert_eq!(redactor().show_body(&body.into(), 100)[..], b"\xff[redacted]\xfe"[..]);
    let content = format!("{{\"content\":\"sk-example-of-a-tutorial {KEY}\"}}");
    let document = redactor().show_document(content.into()).expect("JSON");
    assert_eq!(document[..], b"{\"content\":\"sk-example-of-a-tutorial [redacted]\"}"[..]);
    let digits = Redactor::new(["1700000000"]);
    assert!(digits.show_document(Bytes::from_static(b"{\"created\":1700000000}")).is_none());
}

#[test]
fn headers_are_redacted_by_name_and_by_value() {
    let headers = [
        ("set-cookie", "id=canary-cookie"),
        ("x-echo", "gw_Canary/4+7f=x9"),
        ("location", "https://h/login?next=1&key=canary-key"),
        ("www-authenticate", "Bearer realm=\"gateway\""),
        ("x-ratelimit-remaining-tokens", "17"),
    ];
    let headers =
        headers.map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)));
    let shown = redactor().show_headers(HeaderMap::from_iter(headers));
    let values: Vec<_> = shown.values().map(|value| value.to_str().expect("text")).collect();
    assert_eq!(
        values,
        [REDACTED, REDACTED, "https://h/login?next=1&key=[redacted]", "Bearer realm=\"gateway\"", "17"]
    );
}

#[test]
fn shown_text_is_truncated_after_redaction_and_escaped() {
    let shown = redactor().show(&format!("{}{KEY} \x1b[2J", "x".repeat(10)), 100);
    assert_eq!(&*shown, "xxxxxxxxxx[redacted] \\u{1b}[2J");
    for before in 0..110 {
        let shown = redactor().show(&format!("{}{KEY}{}", "x".repeat(before), "y".repeat(200)), 100);
        assert!(!shown.contains("gw_"), "{before}: {}", &*shown);
    }
}

#[test]
fn third_party_credentials_are_redacted() {
    for (text, expected) in [
        ("Authorization: Bearer abc123def", "Authorization: Bearer [redacted]"),
        ("authorization: basic dXNlcjpwYXNz", "authorization: basic [redacted]"),
        ("Incorrect key sk-proj-abcd1234.", "Incorrect key [redacted]."),
        ("jwt eyJhbGciOi.eyJzdWIi.sig_-x ok", "jwt [redacted] ok"),
        ("GET /v1?key=abc&x=1", "GET /v1?key=[redacted]&x=1"),
        ("see https://u:p@host/x?api_key=1#f", "see https://[redacted]@host/x?api_key=[redacted]#f"),
        ("http://h/?a=1&access_token=q\"", "http://h/?a=1&access_token=[redacted]\""),
    ] {
        assert_eq!(redactor().redact(text), expected);
    }
}

#[test]
fn ordinary_words_are_not_redacted() {
    for text in [
        "Bearer token is missing",
        "Bearer authentication required",
        "Basic realm",
        "desk-top",
        "task-abcdefgh",
        "COMPAT-0123456789abcdef",
        "resp_0123456789abcdef",
        "monkey=1",
    ] {
        assert_eq!(redactor().redact(text), text);
    }
}

#[test]
fn short_secrets_are_redacted_only_as_whole_words() {
    let redactor = Redactor::new(["key", " "]);
    assert_eq!(redactor.redact("wrong key: key, monkey, keys"), "wrong [redacted]: [redacted], monkey, keys");
}

proptest! {
    #[test]
    fn key_is_redacted_from_arbitrary_text(
        before in ".{0,30}",
        form in 0..20usize,
        after in ".{0,30}",
    ) {
        let forms = forms();
        let (name, form) = &forms[form];
        let redacted = redactor().redact(&format!("{before}{form}{after}"));
        prop_assert!(!redacted.contains(form.as_str()), "{}: {}", name, redacted);
        prop_assert!(!redactor().finds(&redacted), "{}: {}", name, redacted);
    }
}
