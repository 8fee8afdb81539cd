//! The configuration that gateways share in their store: pushes a document, shows it, and rolls back to an earlier one.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use gatewright::visible::visible;
use gatewright_gateway::{ConfigPush, ConfigPushed, ConfigRevision, SharedConfig};

use crate::exit::{Exit, FAILED, Failure, print_message};
use crate::json::{self, JsonOption};
use crate::operator::OperatorTarget;
use crate::{places, table};

/// Maximum size of a document, in bytes.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

#[derive(Debug, Args)]
pub(super) struct Push {
    /// TOML file with upstreams, families and models, or - for standard input
    file: PathBuf,
    #[command(flatten)]
    change: Change,
    #[command(flatten)]
    format: JsonOption,
    #[command(flatten)]
    place: OperatorTarget,
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// Revision number [default: the newest]
    revision: Option<u64>,
    /// Print JSON: the revision, with its document
    #[arg(long)]
    json: bool,
    /// Output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    place: OperatorTarget,
}

#[derive(Debug, Args)]
pub(super) struct History {
    #[command(flatten)]
    format: JsonOption,
    #[command(flatten)]
    place: OperatorTarget,
}

#[derive(Debug, Args)]
pub(super) struct Rollback {
    /// Revision number, as listed by gatewright config history
    revision: u64,
    #[command(flatten)]
    change: Change,
    #[command(flatten)]
    format: JsonOption,
    #[command(flatten)]
    place: OperatorTarget,
}

/// The note that is stored with a change.
#[derive(Debug, Args)]
struct Change {
    /// Author of the change, for the history [default: your user name]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// Fail unless this is the newest revision; 0 means that there is none yet
    #[arg(long, value_name = "REVISION")]
    after: Option<u64>,
}

impl Change {
    fn of(self, document: Option<String>, repeats: Option<u64>) -> ConfigPush {
        let mut push = ConfigPush::default();
        (push.document, push.repeats, push.after) = (document, repeats, self.after);
        push.by = self.by.or_else(user).unwrap_or_default();
        push
    }
}

/// The name of this user according to the system.
fn user() -> Option<String> {
    ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| std::env::var(name).ok())
}

pub(super) async fn push(arguments: Push) -> Exit {
    let Push { file, change, format, place } = arguments;
    let document = read(&file)?;
    // Checked here first, so that messages name the file.
    if let Err(problems) = SharedConfig::check(&document, &file.display().to_string()) {
        for line in problems.to_string().lines() {
            _ = writeln!(io::stderr().lock(), "{}", visible(line));
        }
        return Ok(FAILED);
    }
    let pushed = place.open_or_create().await?.push_config(change.of(Some(document), None)).await?;
    print_result(&pushed, format)
}

pub(super) async fn rollback(arguments: Rollback) -> Exit {
    let Rollback { revision, change, format, place } = arguments;
    let pushed = place.open().await?.push_config(change.of(None, Some(revision))).await?;
    print_result(&pushed, format)
}

pub(super) async fn show(arguments: Show) -> Exit {
    let Show { revision, json, out, place } = arguments;
    let found = place.open().await?.config_document(revision).await?;
    let text = if json { json::text(&found) + "\n" } else { found.document };
    places::write(&text, out.as_deref())?;
    Ok(0)
}

pub(super) async fn history(arguments: History) -> Exit {
    let listed = arguments.place.open().await?.config_history().await?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if arguments.format.json {
        json::write(&mut out, &listed)?;
    } else {
        let heads = ["REVISION", "MADE", "BY", "REPEATS"].map(str::to_owned);
        let row = |revision: &ConfigRevision| {
            let repeats = revision.repeats.map_or_else(|| "-".to_owned(), |number| number.to_string());
            [revision.revision.to_string(), table::instant(Some(revision.made)), revision.by.clone(), repeats]
        };
        let rows: Vec<_> = std::iter::once(heads).chain(listed.iter().map(row)).collect();
        table::write(&mut out, &rows, 0..1)?;
    }
    out.flush()?;
    Ok(0)
}

fn read(file: &Path) -> Result<String, Failure> {
    let unreadable = |error: io::Error| Failure::Usage(format!("cannot read {}: {error}", file.display()));
    let mut document = String::new();
    // One byte more than allowed, so that a document that is too long is rejected for its length.
    if places::is_stdin(file) {
        io::stdin().lock().take(MAX_FILE_BYTES + 1).read_to_string(&mut document).map_err(unreadable)?;
    } else {
        let file = File::open(file).map_err(unreadable)?;
        file.take(MAX_FILE_BYTES + 1).read_to_string(&mut document).map_err(unreadable)?;
    }
    Ok(document)
}

fn print_result(pushed: &ConfigPushed, format: JsonOption) -> Exit {
    if format.json {
        json::write(&mut io::stdout().lock(), pushed)?;
        return Ok(0);
    }
    for warning in &pushed.warnings {
        print_message(&format!("warning: {}", visible(warning)));
    }
    let revision = pushed.revision;
    if pushed.new {
        print_message(&format!(
            "published revision {revision}; gateways with store.shared_config apply it within two seconds"
        ));
    } else {
        print_message(&format!("nothing to publish: the document is the same as revision {revision}"));
    }
    Ok(0)
}
