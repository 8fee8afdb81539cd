//! The configuration of `deploy/compose.yaml` in use: three gateways behind its load balancer. `cargo xtask test nodes` runs
//! this.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use gatewright_test_stores::{Bucket, Postgres, Redis};
use serde_json::Value;

use crate::gatewright;
use crate::http::download;

const NGINX: &str = "/usr/sbin/nginx";
const COMPOSE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/compose");
const PATIENCE: Duration = Duration::from_mins(1);
const CHAT: &str = r#"{"model": "model-sol", "messages": [{"role": "user", "content": "Say hi"}]}"#;

/// A process that is killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn start(config: &Path, name: &str) -> (Running, String) {
    let mut serve = gatewright();
    serve.args(["serve", "--json", "--listen", "127.0.0.1:0", "--name", name, "--config"]).arg(config);
    let mut child = Running(serve.stdout(Stdio::piped()).spawn().expect("the program starts"));
    let (mut line, stdout) = (String::new(), child.0.stdout.as_mut().expect("a pipe"));
    BufReader::new(stdout).read_line(&mut line).expect("its output");
    let ready: Value = serde_json::from_str(&line).expect("one JSON object on a line");
    // The configuration's contents are not printed.
    assert!(ready["key"].is_null() && ready["webhook_secret"].is_null(), "{line}");
    let url = ready["listening"].as_str().expect("an address");
    (child, url.trim_start_matches("http://").to_owned())
}

/// Status and body of a response. `None`: there is none.
fn call(address: &str, key: &str, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
    let mut socket = TcpStream::connect(address).ok()?;
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    Some((status, answer.split_once("\r\n\r\n")?.1.to_owned()))
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn three_gateways_behind_the_load_balancer_act_as_one() {
    let (store, counters) = (Postgres::start(), Redis::start());
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name);
    let read =
        |name: &str| fs::read_to_string(Path::new(COMPOSE).join(name)).expect("a file of deploy/compose");
    let write = |name: &str, text: &str| fs::write(place(name), text).expect("written");
    write("secrets.sh", &read("secrets.sh"));
    assert!(Command::new("sh").arg(place("secrets.sh")).status().expect("a shell").success());
    write("secrets/store_url", &store.url());
    write("secrets/counters_url", &counters.url());
    let secret = |name: &str| fs::read_to_string(place("secrets").join(name)).expect("a secret");

    let bucket = Bucket::start(&place("bucket"));
    write("secrets/bucket_access_key", Bucket::ACCESS_KEY);
    write("secrets/bucket_secret_key", Bucket::SECRET_KEY);
    let config = read("gatewright.toml").replace("/run/secrets/", "secrets/");
    let config = config.replace("s3://gatewright", &format!("s3://{}", Bucket::NAME));
    write("gatewright.toml", &config.replace("http://s3:8333", &bucket.endpoint()));
    let mut gateways: Vec<(Running, String)> =
        (1..=3).map(|number| start(&place("gatewright.toml"), &format!("gateway-{number}"))).collect();

    let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port");
    let address = free.to_string();
    let mut balancer = read("nginx.conf").replace("/tmp/", &format!("{}/", folder.path().display()));
    for (number, (_, gateway)) in (1..=3).zip(&gateways) {
        balancer = balancer.replace(&format!("gateway-{number}:8080"), gateway);
    }
    write("nginx.conf", &balancer.replace("listen 8080", &format!("listen {address}")));
    let nginx = Command::new(NGINX)
        .args(["-e", "stderr", "-g", "daemon off; master_process off; user root;", "-c"])
        .arg(place("nginx.conf"))
        .spawn();
    let _balancer = Running(nginx.expect("nginx is not installed: install Debian's package nginx-light"));
    until("the load balancer answers", || {
        call(&address, "", "GET", "/health/live", "").is_some_and(|(status, _)| status == 200)
    });

    let of_store = |arguments: &[&str]| {
        let mut command = gatewright();
        command.args(arguments).arg("--store").env("GATEWRIGHT_SERVE_STORE_URL", store.url());
        command.env("GATEWRIGHT_SERVE_PEPPER", secret("pepper").trim());
        let output = command.output().expect("the program starts");
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let issued = of_store(&["keys", "create", "ci", "--requests-per-minute", "6", "--json"]);
    let key = issued["secret"].as_str().expect("a secret").to_owned();
    for (_, gateway) in &gateways {
        until("a gateway knows the key", || {
            call(gateway, &key, "GET", "/v1/models", "").is_some_and(|(status, _)| status == 200)
        });
        until("a gateway counts with the others", || {
            call(gateway, "", "GET", "/health/ready", "").is_some_and(|(_, body)| body.contains("\"shared\""))
        });
    }
    let started = Instant::now();
    let statuses: Vec<u16> = (0..30)
        .map(|_| call(&address, &key, "POST", "/v1/chat/completions", CHAT).expect("an answer").0)
        .collect();
    let granted = statuses.iter().filter(|status| **status == 200).count();
    // One comes back every ten seconds.
    let most = 6 + usize::try_from(started.elapsed().as_secs() / 10).expect("few") + 1;
    assert!((6..=most).contains(&granted), "{statuses:?}");
    assert!(statuses.iter().all(|status| matches!(status, 200 | 429)), "{statuses:?}");

    let names = || {
        let listed = of_store(&["nodes", "--json"]);
        let listed = listed.as_array().expect("a list").clone();
        listed.iter().map(|node| node["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    until("all gateways are listed", || names() == ["gateway-1", "gateway-2", "gateway-3"]);

    // An image made by one of them is stored in the bucket, and all of them serve it.
    let picture = r#"{"model": "image_model_2", "prompt": "a kite", "size": "256x256"}"#;
    let unlimited = secret("key");
    let drawn = call(&address, unlimited.trim(), "POST", "/v1/images/generations", picture);
    let drawn: Value = serde_json::from_str(&drawn.expect("an answer").1).expect("JSON");
    let url = drawn["data"][0]["url"].as_str().expect("an address");
    let path = &url[url.find("/files/").expect("an address of a file")..];
    let objects = bucket.objects();
    assert_eq!(objects.len(), 1, "{objects:?}");
    let object = fs::read(&objects[0]).expect("an object");
    for (_, gateway) in &gateways {
        assert!(download(gateway, path) == Some((200, object.clone())), "{gateway}");
    }

    // One is killed, and no client notices.
    gateways.remove(1);
    for _ in 0..20 {
        let answer = call(&address, &key, "GET", "/v1/models", "").expect("an answer");
        assert_eq!(answer.0, 200, "{}", answer.1);
    }
}
