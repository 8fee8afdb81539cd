//! `--profile FILE`: the kit name and model ids of a deployment.

use std::path::{Path, PathBuf};

use clap::Args;
use gatewright::report::{Profile, Validator, ValidatorBuilder};

use super::input;
use crate::exit::Failure;

/// Maximum size of a profile, in bytes.
const MAX_BYTES: u64 = 1 << 20;

const HELP: &str = r#"JSON file with your own kit name and model ids: {"kit_name": "…", "models": ["…"]}"#;

#[derive(Debug, Args)]
pub(crate) struct ProfileOption {
    #[arg(long, value_name = "FILE", help = HELP)]
    profile: Option<PathBuf>,
}

impl ProfileOption {
    /// The file, if one was given.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.profile.as_deref()
    }

    /// Errors: the file cannot be read or is not a profile.
    pub(crate) fn read(&self) -> Result<Profile, Failure> {
        let Some(file) = &self.profile else { return Ok(Profile::default()) };
        let json = input::read_file(file, MAX_BYTES)?;
        Profile::read(&json).map_err(|problem| Failure::Usage(format!("{}: {problem}", file.display())))
    }

    /// A report validator for the profile; without one, reports may have names of their own.
    pub(super) fn validator(&self, strict: bool) -> Result<Validator, Failure> {
        Ok(self.builder()?.own_names(true).strict(strict).build())
    }

    /// Like [`Self::validator`], but returns the builder.
    pub(super) fn builder(&self) -> Result<ValidatorBuilder, Failure> {
        Ok(Validator::builder().profile(&self.read()?))
    }
}
