//! `gatewright prices`: prices and limits of models, from published lists.

mod collected;
mod litellm;
mod models_dev;
mod number;
mod source;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use gatewright::visible::visible;

use self::collected::{Collected, ModelFilter};
use self::source::PriceSource;
use crate::exit::{Exit, Failure, print_message};
use crate::places;

#[derive(Debug, Args)]
pub(crate) struct PricesArguments {
    #[command(subcommand)]
    command: PricesCommand,
}

#[derive(Debug, Subcommand)]
enum PricesCommand {
    /// Create a price file from a published list
    ///
    /// Reads LiteLLM's model_prices_and_context_window.json or the api.json of models.dev, and detects which one it is. The
    /// result has the prices and limits of the models of each provider that `gatewright providers` lists; set prices.file in the
    /// configuration to it. Implausible prices are omitted and listed on standard error.
    Import(ImportPrices),
}

#[derive(Debug, Args)]
struct ImportPrices {
    /// The list: a file, an https URL, or - for standard input
    #[arg(value_name = "FILE|URL")]
    source: String,
    /// Only models of this provider, named as in `gatewright providers` or in the list; repeatable
    #[arg(long, value_name = "NAME")]
    provider: Vec<String>,
    /// Import the provider's models for this upstream only, which names no provider itself
    #[arg(long, value_name = "NAME", requires = "provider")]
    upstream: Option<String>,
    /// Output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) async fn run(arguments: PricesArguments) -> Exit {
    let PricesCommand::Import(arguments) = arguments.command;
    import(arguments).await
}

async fn import(arguments: ImportPrices) -> Exit {
    if arguments.upstream.is_some() && arguments.provider.len() > 1 {
        let message = "--upstream imports the models of one provider: set --provider exactly once";
        return Err(Failure::Usage(message.to_owned()));
    }
    let source = PriceSource::new(arguments.source);
    places::keep(&[("the list", source.file())], arguments.out.as_deref())?;
    let text = source.read().await?;
    let wanted = ModelFilter { providers: arguments.provider, upstream: arguments.upstream };
    let collected = collect(&text, wanted)
        .map_err(|why| Failure::Usage(format!("{}: {why}", visible(&source.to_string()))))?;
    if collected.list.is_empty() {
        let mut message = format!("{source} has no price for any requested model");
        for note in collected.notes() {
            message.push_str("\n  ");
            message.push_str(&note);
        }
        return Err(Failure::Failed(message));
    }
    places::write(&(header(&source) + &collected.list.to_toml()), arguments.out.as_deref())?;
    for note in collected.notes() {
        print_message(&note);
    }
    Ok(0)
}

/// Parses a list in either format. Errors: it has neither, exceeds a limit, or contains no requested
/// provider.
fn collect(text: &str, wanted: ModelFilter) -> Result<Collected, String> {
    let entries = source::entries(text)?;
    let mut collected = Collected::new(wanted);
    if litellm::has_form(&entries) {
        litellm::read(&entries, &mut collected)?;
    } else if models_dev::has_form(&entries) {
        models_dev::read(&entries, &mut collected)?;
    } else {
        return Err("it is neither LiteLLM's model_prices_and_context_window.json, whose models have a litellm_provider, nor \
                    the api.json of models.dev, whose providers have models"
            .to_owned());
    }
    collected.check_wanted()?;
    Ok(collected)
}

fn header(source: &PriceSource) -> String {
    let source = visible(&source.to_string()).into_owned();
    format!(
        "# Prices and limits of models, imported from {source} by gatewright prices import.\n\
         # Prices are in US dollars: per million tokens (input, output, cached_input, cache_write, reasoning) or characters\n\
         # (speech_characters), per image, or per second of video or sound. A tier applies to prompts with more tokens than its `above`.\n\
         # Limits (context, max_output) are in tokens.\n\
         # The next import replaces this file: set your own prices on targets, where they take precedence over this file.\n"
    )
}

#[cfg(test)]
mod mixed;
#[cfg(test)]
mod tests;
