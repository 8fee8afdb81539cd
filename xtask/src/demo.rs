//! `cargo xtask demo`: builds everything, starts a gateway in front of a provider, and tells the same story from Rust,
//! Python and Node. The provider is a second gateway, which answers from its simulator: a request takes the same path
//! as for users, and nothing leaves this machine.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::artefacts::{self, Examples, node_package, python, target};
use crate::local_gateway::LocalGateway;
use crate::process::{output, root, step};

/// Runs the demonstration, and prints where its files are.
pub(crate) fn run_demo() -> Result<()> {
    artefacts::build_one_example("story")?;
    let folder = target().join("demo");
    let scene = step("start a provider, and a gateway in front of it", || Scene::start(&folder))?;
    let gateway = &scene.gateway;
    eprintln!("    listening on {}, configured by {}", gateway.address(), scene.configuration.display());
    for language in LANGUAGES {
        let printed =
            step(&format!("the story, told from {language}"), || run_story(gateway, language, &folder))?;
        for line in printed.lines() {
            eprintln!("    | {line}");
        }
    }
    eprintln!("==> done: the images and videos are in {}", folder.display());
    Ok(())
}

/// Tells the story from each language. Fails unless all are the same.
pub(crate) fn compare_stories() -> Result<()> {
    artefacts::build_engines(Examples::All)?;
    let folder = target().join("demo");
    let scene = Scene::start(&folder)?;
    let mut first: Option<String> = None;
    for language in LANGUAGES {
        let story = run_story(&scene.gateway, language, &folder)?;
        match &first {
            None => first = Some(story),
            Some(rust) if *rust == story => {}
            Some(rust) => {
                bail!("{language} tells another story than Rust:\n--- Rust\n{rust}\n--- {language}\n{story}")
            }
        }
    }
    Ok(())
}

/// The gateway that the story uses, and the provider behind it.
struct Scene {
    gateway: LocalGateway,
    configuration: PathBuf,
    _provider: LocalGateway,
}

impl Scene {
    fn start(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let provider = LocalGateway::start()?;
        let key = folder.join("provider-key");
        fs::write(&key, provider.key())?;
        let mut text = format!(
            "[upstreams.provider]\nkind = \"gatewright\"\nbase_url = \"{}\"\nkey = {{ file = \"provider-key\" }}\n",
            provider.address()
        );
        let catalog: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(root().join("spec/catalog.json"))?)?;
        for kind in ["text_models", "embedding_models", "plain_models", "image_models", "video_models"] {
            let models = catalog[kind].as_array().with_context(|| format!("the catalog has no {kind}"))?;
            for model in models {
                write!(text, "\n[models.{}]\ntargets = [{{ upstream = \"provider\" }}]\n", model["id"])?;
            }
        }
        let configuration = folder.join("gatewright.toml");
        fs::write(&configuration, text)?;
        let gateway = LocalGateway::start_with(&["--config", &configuration.display().to_string()])?;
        Ok(Self { gateway, configuration, _provider: provider })
    }
}

const LANGUAGES: [&str; 3] = ["Rust", "Python", "Node"];

fn run_story(gateway: &LocalGateway, language: &str, folder: &Path) -> Result<String> {
    let folder: PathBuf = folder.join(language.to_lowercase());
    fs::create_dir_all(&folder)?;
    let mut command: Command = match language {
        "Rust" => artefacts::example("story"),
        "Python" => python(),
        _ => node_package("node"),
    };
    match language {
        "Python" => drop(command.arg(root().join("examples/python/story.py"))),
        "Node" => drop(command.arg(root().join("examples/node/story.mjs"))),
        _ => {}
    }
    output(gateway.reach_from(command.arg(&folder)))
}
