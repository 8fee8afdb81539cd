//! What workflows, scripts and container files install or run is pinned: programs by version and lock file or hash, images by
//! digest.

/// The image that `deploy/Containerfile` builds.
const OWN_IMAGE: &str = "gatewright";

/// Commands of a shell script that install a program, or run an image, whose content can change.
pub(crate) fn unpinned_commands(script: &str) -> Vec<String> {
    let script = script.replace("\\\n", " ");
    let lines = script.lines().filter(|line| !line.trim_start().starts_with('#'));
    let commands = lines.flat_map(|line| line.split(['&', '|', ';', '(', ')']));
    commands.filter_map(|command| Some(format!("`{}` {}", command.trim(), advice(command)?))).collect()
}

/// What a command needs to be pinned, if it is not.
fn advice(command: &str) -> Option<&'static str> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let has = |word: &str| words.contains(&word);
    let runs = |pair: [&str; 2]| words.windows(2).any(|window| window == pair);
    let latest = ["npx", "uvx", "pipx", "bunx"].into_iter().any(has);
    if runs(["cargo", "install"]) && !(has("--locked") && has("--version")) {
        Some("is not pinned: cargo install --locked NAME --version VERSION")
    } else if (runs(["pip", "install"]) || runs(["pip3", "install"]))
        && !(has("--require-hashes") || has("--no-index"))
    {
        Some("is not pinned: pip install --require-hashes --requirement FILE, or --no-index for files")
    } else if (runs(["npm", "install"]) || runs(["npm", "i"])) && !has("--offline") {
        Some("is not pinned: npm ci, or npm install --offline for files")
    } else if latest || runs(["npm", "exec"]) || runs(["uv", "tool"]) || runs(["cargo", "binstall"]) {
        Some("runs the newest version: install from a lock file, and run the program")
    } else if ["docker", "podman"].iter().any(|program| runs([program, "run"]) || runs([program, "pull"]))
        && !words.iter().any(|word| has_digest(word))
    {
        Some("is not pinned: NAME:TAG@sha256:DIGEST")
    } else {
        None
    }
}

/// Images of a container file, a compose file or a manifest that are not named by digest.
pub(crate) fn unpinned_images(text: &str) -> Vec<String> {
    let (mut problems, mut stages) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace().skip_while(|word| *word == "-");
        if let (Some("FROM" | "image:"), Some(image)) =
            (words.next(), words.find(|word| !word.starts_with("--")))
        {
            let image = image.trim_matches(['"', '\'']);
            if image != OWN_IMAGE && !stages.contains(&image) && !has_digest(image) {
                problems.push(format!("line {}: {image} is not pinned: NAME:TAG@sha256:DIGEST", number + 1));
            }
            // An earlier stage of the same file.
            stages.extend(
                words.next().filter(|word| word.eq_ignore_ascii_case("as")).and_then(|_| words.next()),
            );
        }
    }
    problems
}

fn has_digest(image: &str) -> bool {
    image.split_once("@sha256:").is_some_and(|(name, digest)| {
        // The tag tells readers, and whatever updates the digest, which release it is.
        name.contains(':') && digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn tool_without_a_pinned_version_is_reported() {
        for command in [
            "cargo install --locked cargo-nextest",
            "cargo install cargo-nextest --version 1.2.3",
            "python -m pip install --quiet twine==1.2.3",
            "python -m pip install -r requirements.txt",
            "npm install publint",
            "npm install --global npm@1.2.3",
            "npx publint",
            "uv tool install ruff",
            "docker run --rm alpine:3.22 true",
            "docker pull alpine:3.22",
            "docker run --rm alpine:3.22@sha256:0123 true",
        ] {
            let script = format!("set -e\nneed tool || {command}\n");
            let problems = unpinned_commands(&script);
            assert!(problems.len() == 1 && problems[0].starts_with(&format!("`{command}` ")), "{problems:?}");
        }
    }

    #[test]
    fn pinned_tools_and_local_files_pass() {
        let script = format!(
            "# npx publint\ncargo install --locked a \\\n  --version 1.2.3 && npm ci\npip install --require-hashes -r a.txt\n\
             python -m pip install --no-index a.whl\n(cd a; npm install --offline ./a.tgz)\n\
             docker run alpine:3.22@sha256:{DIGEST} true\n"
        );
        assert_eq!(unpinned_commands(&script), [""; 0]);
    }

    #[test]
    fn option_on_a_continuation_line_belongs_to_the_command() {
        assert_eq!(unpinned_commands("cargo install --locked a \\\n  --path b\n").len(), 1);
    }

    #[test]
    fn image_without_a_tag_and_a_digest_is_reported() {
        let pinned = format!("debian:13@sha256:{DIGEST}");
        let text =
            |image: &str| format!("FROM --platform=a {image} AS build\nservices:\n  - image: {image}\n");
        assert_eq!(unpinned_images(&text(&pinned)), [""; 0]);
        assert_eq!(unpinned_images(&text("gatewright")), [""; 0]);
        assert_eq!(unpinned_images(&text(&format!("\"{pinned}\""))), [""; 0]);
        assert_eq!(unpinned_images(&format!("FROM {pinned} AS build\nFROM build\n")), [""; 0]);
        let short = pinned.trim_end_matches('f');
        let untagged = pinned.replace(":13", "");
        for image in ["debian", "debian:13", short, &untagged, "gatewright:latest"] {
            let problems = unpinned_images(&text(image));
            assert_eq!(problems.len(), 2, "{image}: {problems:?}");
            assert!(
                problems[0].starts_with("line 1: ") && problems[1].starts_with("line 3: "),
                "{problems:?}"
            );
        }
    }
}
