//! `gatewright store`: maintains a gateway's store.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use gatewright_gateway::Registry;
use serde_json::json;

use crate::data_folder;
use crate::exit::{Exit, FAILED, Failure, print_message};
use crate::json::{self, JsonOption};
use crate::serve::store;

#[derive(Debug, Args)]
pub(crate) struct StoreArguments {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Migrate the tables to the version of this program, as serve does at startup
    Migrate {
        #[command(flatten)]
        format: JsonOption,
        #[command(flatten)]
        place: StoreLocation,
    },
    /// Check the store for damage; exits with 1 if it finds any
    Check {
        /// Skip generated files, because they are in a bucket
        #[arg(long)]
        no_files: bool,
        #[command(flatten)]
        format: JsonOption,
        #[command(flatten)]
        place: StoreLocation,
    },
    /// Copy the data folder to a new one, even while gateways use it
    Backup {
        /// The new folder
        #[arg(value_name = "DIR")]
        to: PathBuf,
        /// Data folder [default: GATEWRIGHT_SERVE_DATA, then gatewright in the user's data folder]
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
    /// Export the database as lines of JSON, to move it to another one; without the pepper and files
    Export {
        /// The file, or - for standard output
        #[arg(value_name = "FILE")]
        to: PathBuf,
        #[command(flatten)]
        place: StoreLocation,
    },
    /// Import an export into an empty store
    Import {
        /// The file, or - for standard input
        #[arg(value_name = "FILE")]
        from: PathBuf,
        #[command(flatten)]
        format: JsonOption,
        #[command(flatten)]
        place: StoreLocation,
    },
}

#[derive(Debug, Args)]
#[group(id = "place", multiple = false)]
pub(crate) struct StoreLocation {
    /// Data folder [default: GATEWRIGHT_SERVE_DATA, then gatewright in the user's data folder]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Use the Postgres database at GATEWRIGHT_SERVE_STORE_URL, with the pepper in GATEWRIGHT_SERVE_PEPPER
    #[arg(long)]
    store: bool,
}

impl StoreLocation {
    /// A missing folder is an error.
    pub(crate) async fn open(&self) -> Result<Registry, Failure> {
        if !self.store {
            data_folder::existing(self.data.as_deref())?;
        }
        self.open_or_create().await
    }

    /// A missing folder is created.
    async fn open_or_create(&self) -> Result<Registry, Failure> {
        if self.store {
            return store::open().await;
        }
        Ok(Registry::open(&data_folder::requested(self.data.as_deref())?).await?)
    }
}

pub(crate) async fn run(arguments: StoreArguments) -> Exit {
    match arguments.command {
        StoreCommand::Migrate { format, place } => {
            let version = place.open().await?.migrate().await?;
            if format.json {
                json::write(&mut io::stdout().lock(), &json!({ "version": version }))?;
            } else {
                print_message(&format!("the store's tables are at version {version}"));
            }
            Ok(0)
        }
        StoreCommand::Check { no_files, format, place } => {
            let has_files = !place.store && !no_files;
            let damage = place.open().await?.damage(has_files).await?;
            let code = if damage.is_empty() { 0 } else { FAILED };
            if format.json {
                let document =
                    json!({ "sound": damage.is_empty(), "files_checked": has_files, "damage": damage });
                json::write(&mut io::stdout().lock(), &document)?;
                return Ok(code);
            }
            for found in &damage {
                print_message(found);
            }
            if damage.is_empty() {
                print_message(if has_files {
                    "the store is sound"
                } else {
                    "the store is sound; files were not checked"
                });
            }
            Ok(code)
        }
        StoreCommand::Backup { to, data } => {
            let data = data_folder::existing(data.as_deref())?;
            Registry::open(&data).await?.backup(&data, &to).await?;
            print_message(&format!("copied the data folder to {}", to.display()));
            Ok(0)
        }
        StoreCommand::Export { to, place } => export(&to, &place.open().await?).await,
        StoreCommand::Import { from, format, place } => {
            // A new store is created if there is none.
            let registry = place.open_or_create().await?;
            let count = if is_standard(&from) {
                registry.import(&mut BufReader::new(io::stdin())).await?
            } else {
                let file = File::open(&from).map_err(|error| unusable("read", &from, &error))?;
                registry.import(&mut BufReader::new(file)).await?
            };
            if format.json {
                json::write(&mut io::stdout().lock(), &json!({ "rows": count }))?;
            } else {
                print_message(&format!("imported {count} rows"));
            }
            Ok(0)
        }
    }
}

async fn export(to: &Path, registry: &Registry) -> Exit {
    if is_standard(to) {
        let mut out = BufWriter::new(io::stdout());
        registry.export(&mut out).await?;
        out.flush()?;
        return Ok(0);
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    // It contains the digests of keys and the URLs of receivers.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let unusable = |error: io::Error| unusable("write", to, &error);
    let mut out = BufWriter::new(options.open(to).map_err(unusable)?);
    let count = match registry.export(&mut out).await {
        Ok(count) => count,
        Err(error) => {
            // A partial file is useless.
            _ = std::fs::remove_file(to);
            return Err(error.into());
        }
    };
    out.flush().and_then(|()| out.get_ref().sync_all()).map_err(unusable)?;
    print_message(&format!("exported {count} rows to {}", to.display()));
    Ok(0)
}

fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

fn unusable(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::Usage(format!("cannot {what} {}: {error}", path.display()))
}
