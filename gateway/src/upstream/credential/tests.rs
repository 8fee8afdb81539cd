use std::fs;
use std::path::Path;

use gatewright_config::KeyCommand;
use http::{HeaderName, HeaderValue};

use super::*;

/// A program that prints the contents of a file, and logs each run to another one.
fn command(folder: &Path, ttl: Duration) -> KeySource {
    let script = "echo run >> runs; cat key";
    let command = KeyCommand::new(["sh", "-c", script], ttl);
    KeySource::Command(KeyCommand { folder: folder.to_owned(), ..command })
}

fn place() -> KeyPosition {
    KeyPosition::Header { name: HeaderName::from_static("x-key"), prefix: "Bearer ".to_owned() }
}

fn key_of(credential: &UpstreamCredential) -> Option<HeaderValue> {
    match credential.get()? {
        AttachedKey::Header(_, value) => Some(value),
        AttachedKey::Query(_) | AttachedKey::Signature(_) => None,
    }
}

fn runs(folder: &Path) -> usize {
    fs::read_to_string(folder.join("runs")).unwrap_or_default().lines().count()
}

/// Waits until a condition is true, for up to ten seconds.
pub(super) async fn until(condition: impl Fn() -> bool) {
    for _ in 0..1000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it did not become true");
}

#[tokio::test]
async fn concurrent_requests_share_one_command_run() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("key"), "canary-1\n").expect("a file");
    let credential = UpstreamCredential::new("one", command(folder.path(), Duration::from_hours(1)), place());
    assert!(!credential.holds() && credential.get().is_none());
    let waiting = (0..20).map(|_| credential.wait());
    for result in futures_util::future::join_all(waiting).await {
        assert_eq!(result, Ok(()));
    }
    let key = key_of(&credential).expect("a key");
    assert_eq!(key, "Bearer canary-1");
    assert!(key.is_sensitive());
    assert_eq!(runs(folder.path()), 1);
}

#[tokio::test]
async fn key_is_renewed_early_and_kept_while_the_command_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("key");
    fs::write(&file, "canary-1").expect("a file");
    let credential = UpstreamCredential::new("one", command(folder.path(), Duration::from_secs(2)), place());
    credential.wait().await.expect("a key");
    let started = Instant::now();
    fs::write(&file, "canary-2").expect("a file");
    until(|| key_of(&credential).is_some_and(|key| key == "Bearer canary-2")).await;
    assert!(
        credential.holds() && started.elapsed() < Duration::from_secs(2),
        "the first key was still valid"
    );

    fs::remove_file(&file).expect("a file");
    let so_far = runs(folder.path());
    until(|| runs(folder.path()) > so_far).await;
    assert!(credential.holds(), "the command fails, and its last key is still valid");
    until(|| !credential.holds()).await;
    assert_eq!(credential.wait().await, Err(NoKey::Failed));
    fs::write(&file, "canary-3").expect("a file");
    until(|| credential.holds()).await;
    assert_eq!(credential.wait().await, Ok(()));
}

#[tokio::test]
async fn rejected_key_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("key"), "canary-1").expect("a file");
    let credential = UpstreamCredential::new("one", command(folder.path(), Duration::from_secs(10)), place());
    credential.wait().await.expect("a key");
    credential.refused();
    until(|| runs(folder.path()) == 2).await;
}

#[tokio::test]
async fn invalid_command_output_is_reported_without_quoting_it() {
    let long = format!("head -c {} /dev/zero | tr '\\0' a", 1 << 20);
    for (script, why) in [
        ("echo canary; echo canary >&2; exit 3", NoKey::Failed),
        ("printf 'canary canary'", NoKey::NotAKey),
        ("printf 'canary\\ncanary\\n'", NoKey::NotAKey),
        ("true", NoKey::NotAKey),
        ("printf '\\377'", NoKey::NotAKey),
        (&*long, NoKey::NotAKey),
    ] {
        let command = KeyCommand::new(["sh", "-c", script], Duration::from_mins(1));
        let credential = UpstreamCredential::new("one", KeySource::Command(command), place());
        let message = credential.wait().await.expect_err(script);
        assert_eq!(message, why, "{script}");
        assert!(!format!("{message} {message:?} {:?}", credential.source).contains("canary"), "{script}");
    }
    let missing = KeyCommand::new(["there-is-no-such-program"], Duration::from_mins(1));
    assert_eq!(
        UpstreamCredential::new("one", KeySource::Command(missing), place()).wait().await,
        Err(NoKey::NotStarted)
    );
}

#[tokio::test]
async fn redactor_hides_current_and_previous_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("key");
    fs::write(&file, "first-canary").expect("a file");
    let credential = UpstreamCredential::new("one", command(folder.path(), Duration::from_secs(10)), place());
    let redactor = gatewright::redact::Redactor::default().also_knowing(Some(credential.secrets()));
    credential.wait().await.expect("a key");
    assert_eq!(redactor.redact("first-canary second-canary"), "[redacted] second-canary");
    fs::write(&file, "second-canary").expect("a file");
    credential.refused();
    until(|| runs(folder.path()) == 2).await;
    until(|| redactor.finds("second-canary")).await;
    assert_eq!(redactor.redact("first-canary second-canary"), "[redacted] [redacted]");
}

#[tokio::test]
async fn command_stops_running_when_its_key_is_unused() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("key"), "canary-1").expect("a file");
    let credential =
        UpstreamCredential::new("one", command(folder.path(), Duration::from_millis(200)), place());
    credential.wait().await.expect("a key");
    let left = Arc::downgrade(&credential);
    drop(credential);
    assert!(left.upgrade().is_none() || runs(folder.path()) > 0);
    until(|| left.upgrade().is_none()).await;
    let so_far = runs(folder.path());
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(runs(folder.path()) <= so_far + 1, "a run in progress may finish");
}
