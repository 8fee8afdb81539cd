//! `gatewright config models`: compares the models of a configuration file with those that its upstreams offer.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use gatewright::visible::visible;
use gatewright_gateway::{Config, ConfigFile, Offer, offers};
use serde_json::{Value, json};

use super::FILE;
use crate::exit::{Exit, FAILED, Failure, print_message};
use crate::json;
use crate::table;

#[derive(Debug, Args)]
pub(super) struct Models {
    /// Configuration file
    #[arg(default_value = FILE)]
    file: PathBuf,
    /// Query only this upstream; repeatable
    #[arg(long, value_name = "NAME")]
    upstream: Vec<String>,
    /// Print JSON: an array with an object for each upstream
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(arguments: Models) -> Exit {
    let read = ConfigFile::read(&arguments.file);
    let mut config = read.map_err(|problems| Failure::Usage(problems.to_string()))?.config;
    for name in &arguments.upstream {
        if !config.upstreams.iter().any(|upstream| upstream.name == *name) {
            let names: Vec<&str> = config.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
            let message = format!("the file has no upstream {name:?}, only {}", names.join(", "));
            return Err(Failure::Usage(message));
        }
    }
    if !arguments.upstream.is_empty() {
        config.upstreams.retain(|upstream| arguments.upstream.contains(&upstream.name));
    }
    let offers = offers(&config).await;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if arguments.json {
        let all: Vec<Value> = offers.iter().map(|offer| object(&config, offer)).collect();
        json::write(&mut out, &all)?;
    } else {
        table::write(&mut out, &rows(&config, &offers), 0..0)?;
    }
    out.flush()?;
    let mut code = 0;
    for offer in &offers {
        match &offer.models {
            Err(why) => {
                print_message(&format!("upstream {:?} returned no model list: {why}", offer.upstream));
                code = FAILED;
            }
            Ok(models) => {
                for (model, target) in targets(&config, &offer.upstream) {
                    if !models.iter().any(|offered| offered == target) {
                        print_message(&format!(
                            "upstream {:?} does not list {target:?}, a target of model {model:?}",
                            offer.upstream
                        ));
                    }
                }
            }
        }
    }
    Ok(code)
}

/// The models of the configuration that are sent to an upstream, with their names there.
fn targets<'c>(config: &'c Config, upstream: &str) -> impl Iterator<Item = (&'c str, &'c str)> {
    config.models.iter().flat_map(move |model| {
        let targets = model.targets.iter().filter(move |target| target.upstream == upstream);
        targets.map(|target| (model.id.as_str(), target.model.as_str()))
    })
}

/// The clients' name for an upstream's model.
fn configured<'c>(config: &'c Config, upstream: &str, offered: &str) -> Vec<&'c str> {
    targets(config, upstream).filter(|(_, target)| *target == offered).map(|(model, _)| model).collect()
}

fn rows(config: &Config, offers: &[Offer]) -> Vec<[String; 3]> {
    let mut rows = vec![["UPSTREAM", "MODEL", "CONFIGURED AS"].map(str::to_owned)];
    for offer in offers {
        for model in offer.models.iter().flatten() {
            let names = configured(config, &offer.upstream, model).join(", ");
            rows.push([offer.upstream.clone(), model.clone(), names]);
        }
    }
    rows
}

fn object(config: &Config, offer: &Offer) -> Value {
    let upstream = &offer.upstream;
    match &offer.models {
        Ok(models) => {
            let models = models
                .iter()
                .map(|model| json!({ "id": model, "configured_as": configured(config, upstream, model) }));
            json!({ "upstream": upstream, "models": models.collect::<Vec<_>>() })
        }
        Err(why) => json!({ "upstream": upstream, "error": visible(why) }),
    }
}
