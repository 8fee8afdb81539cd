//! `--profile FILE`: a deployment's own kit name and model ids.

use std::path::{Path, PathBuf};

use clap::Args;
use gatewright::report::{Profile, Validator, ValidatorBuilder};

use crate::outcome::Failure;

/// Largest profile that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

const HELP: &str =
    r#"Kit name and model ids in place of the specification's: {"kit_name": "…", "models": ["…"]}"#;

#[derive(Debug, Args)]
pub(crate) struct ProfileOption {
    #[arg(long, value_name = "FILE", help = HELP)]
    profile: Option<PathBuf>,
}

impl ProfileOption {
    /// The file, if one is named.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.profile.as_deref()
    }

    /// Errors: the file cannot be read, or is no profile.
    pub(crate) fn read(&self) -> Result<Profile, Failure> {
        let Some(file) = &self.profile else { return Ok(Profile::default()) };
        let json = super::input::read_file(file, MAX_BYTES)?;
        Profile::read(&json).map_err(|problem| Failure::Usage(format!("{}: {problem}", file.display())))
    }

    /// The validator of reports by the profile.
    pub(super) fn validator(&self, strict: bool) -> Result<Validator, Failure> {
        Ok(self.builder()?.strict(strict).build())
    }

    /// As [`Self::validator`], with more to be set.
    pub(super) fn builder(&self) -> Result<ValidatorBuilder, Failure> {
        Ok(Validator::builder().profile(&self.read()?))
    }
}
