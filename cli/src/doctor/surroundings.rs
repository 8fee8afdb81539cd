//! This machine: variables, the configuration file, folders. The values of variables are never shown: they may be
//! secrets.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::CommandFactory as _;
use gatewright::did_you_mean::closest;
use gatewright::webhook::WEBHOOK_SECRET_VARIABLE;
use gatewright::whole_file::check_place;
use gatewright::{API_KEY_VARIABLE, BASE_URL_VARIABLE, CA_BUNDLE_VARIABLE, LOG_VARIABLE};
use gatewright_checkkit::AGENT_PROGRAM_VARIABLE;
#[cfg(feature = "server")]
use gatewright_gateway::ConfigFile;

use super::finding::{Finding, FindingLevel};
use crate::state;

/// Prefix of our variables.
const OURS: &str = "GATEWRIGHT_";
/// Maximum number of configuration problems shown.
#[cfg(feature = "server")]
const MAX_PROBLEMS: usize = 5;
/// The configuration file to look for if no variable names one.
const CONFIG_FILE: &str = "gatewright.toml";
/// Prefix of a gateway's own variables. The program without the server doesn't know all of them.
const SERVES: &str = "GATEWRIGHT_SERVE_";
/// Variables of the gateway without a flag, because they are secrets.
const SECRETS: [&str; 5] = [
    "GATEWRIGHT_SERVE_KEY",
    "GATEWRIGHT_SERVE_ADMIN_KEY",
    "GATEWRIGHT_SERVE_STORE_URL",
    "GATEWRIGHT_SERVE_COUNTERS_URL",
    "GATEWRIGHT_SERVE_PEPPER",
];

pub(super) fn examine() -> Vec<Finding> {
    let names = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok()?;
        (name.starts_with(OURS) && !value.is_empty()).then_some(name)
    });
    let (config, data) = configuration();
    let mut findings = vec![variables(names.collect()), config];
    findings.extend(data.map(|folder| writable("data folder", &folder)));
    findings.push(match state::place() {
        Some(folder) => writable("state folder", &folder),
        None => Finding::new("state folder", FindingLevel::Warn, "its location is unknown")
            .advise("set HOME; without it, chat saves no history"),
    });
    findings
}

/// Every variable that the program reads.
fn known() -> BTreeSet<String> {
    fn of(command: &clap::Command, known: &mut BTreeSet<String>) {
        let named = command.get_arguments().filter_map(|argument| argument.get_env());
        known.extend(named.filter_map(|name| name.to_str()).map(str::to_owned));
        for below in command.get_subcommands() {
            of(below, known);
        }
    }
    let others = [
        API_KEY_VARIABLE,
        BASE_URL_VARIABLE,
        CA_BUNDLE_VARIABLE,
        LOG_VARIABLE,
        WEBHOOK_SECRET_VARIABLE,
        AGENT_PROGRAM_VARIABLE,
    ];
    let mut known: BTreeSet<String> = others.into_iter().chain(SECRETS).map(str::to_owned).collect();
    of(&crate::Program::command(), &mut known);
    known
}

/// The variable that an unknown one most likely means. The common prefix doesn't count as similarity.
fn similar_name(name: &str, known: &BTreeSet<String>) -> Option<String> {
    let prefix = match name.strip_prefix(SERVES) {
        Some(_) if cfg!(feature = "server") => SERVES,
        Some(_) => return None,
        None => OURS,
    };
    let others = known.iter().filter(|known| known.starts_with(SERVES) == (prefix == SERVES));
    let rest = closest(name.strip_prefix(prefix)?, others.filter_map(|known| known.strip_prefix(prefix)))?;
    Some(format!("{prefix}{rest}"))
}

fn variables(set: BTreeSet<String>) -> Finding {
    let known = known();
    let (known_ones, unknown): (Vec<String>, Vec<String>) =
        set.into_iter().partition(|name| known.contains(name));
    let message = match known_ones.as_slice() {
        [] => format!("no {OURS}… variable is set"),
        names => format!("set: {}", names.join(", ")),
    };
    // A configuration file may use its own variables; one that is almost ours is a typo.
    let slip = unknown.iter().find_map(|name| Some((name, similar_name(name, &known)?)));
    match slip {
        None => Finding::new("variables", FindingLevel::Ok, message),
        Some((name, suggestion)) => Finding::new(
            "variables",
            FindingLevel::Warn,
            format!("{message}; {name} is set, but nothing reads it"),
        )
        .advise(format!("did you mean {suggestion}?")),
    }
}

/// The gateway's configuration file, if there is one here, and the data folder that it or its variable names.
fn configuration() -> (Finding, Option<PathBuf>) {
    let of_variable =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = of_variable("GATEWRIGHT_SERVE_DATA");
    let named = of_variable("GATEWRIGHT_SERVE_CONFIG");
    let file = named.or_else(|| Some(PathBuf::from(CONFIG_FILE)).filter(|file| file.is_file()));
    let Some(file) = file else {
        let found = format!("no {CONFIG_FILE} here: `serve` would use a simulated provider");
        return (Finding::new("configuration", FindingLevel::Ok, found), data);
    };
    let (finding, of_file) = read(&file);
    (finding, data.or(of_file))
}

/// This program contains no gateway, so it can't check the file.
#[cfg(not(feature = "server"))]
fn read(file: &Path) -> (Finding, Option<PathBuf>) {
    let message = format!("{} is here; `gatewright config check` validates it", file.display());
    (Finding::new("configuration", FindingLevel::Ok, message), None)
}

#[cfg(feature = "server")]
fn read(file: &Path) -> (Finding, Option<PathBuf>) {
    let shown = file.display();
    match ConfigFile::check(file) {
        Err(problems) => {
            let problems: Vec<String> = problems.to_string().lines().map(str::to_owned).collect();
            let mut message = problems[..problems.len().min(MAX_PROBLEMS)].join("\n");
            if problems.len() > MAX_PROBLEMS {
                message.push_str("\n…");
            }
            let advice = format!("fix {shown}; `gatewright config check` lists every problem");
            (Finding::new("configuration", FindingLevel::Fail, message).advise(advice), None)
        }
        Ok(read) => {
            let message = format!("{shown} is valid: {}", read.config.offer());
            let finding = match read.warnings.first() {
                None => Finding::new("configuration", FindingLevel::Ok, message),
                Some(first) => {
                    Finding::new("configuration", FindingLevel::Warn, format!("{message}\n{first}"))
                        .advise("`gatewright config check` lists every warning")
                }
            };
            (finding, read.config.data)
        }
    }
}

/// Whether files can be created in a folder, or in the one that would contain it.
fn writable(name: &'static str, folder: &Path) -> Finding {
    let shown = folder.display();
    let there = folder.ancestors().find(|folder| folder.exists());
    match there.map(|there| (there, check_place(&there.join("doctor")))) {
        Some((there, Ok(()))) if there == folder => {
            Finding::new(name, FindingLevel::Ok, format!("{shown} is writable"))
        }
        Some((_, Ok(()))) => {
            Finding::new(name, FindingLevel::Ok, format!("{shown} will be created when needed"))
        }
        Some((there, Err(error))) => {
            Finding::new(name, FindingLevel::Fail, format!("{} is not writable: {error}", there.display()))
                .advise("give this user write access, or choose another folder")
        }
        None => Finding::new(name, FindingLevel::Ok, format!("{shown} will be created when needed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> Finding {
        variables(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn misspelled_environment_variable_is_reported() {
        let finding = set(&["GATEWRIGHT_API_KEY", "GATEWRIGHT_BASEURL"]);
        assert_eq!(finding.verdict, FindingLevel::Warn);
        assert!(finding.advice.contains("GATEWRIGHT_BASE_URL"), "{finding:?}");
        let finding =
            set(&["GATEWRIGHT_API_KEY", "GATEWRIGHT_SERVE_MAX_BODY_BYTES", "GATEWRIGHT_SERVE_PEPPER"]);
        assert_eq!(finding.verdict, FindingLevel::Ok, "{finding:?}");
        assert!(finding.found.contains("GATEWRIGHT_SERVE_PEPPER"), "{finding:?}");
    }

    #[test]
    fn missing_folder_is_writable_if_its_parent_is() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(writable("x", folder.path()).verdict, FindingLevel::Ok);
        let missing = folder.path().join("a/b");
        assert!(writable("x", &missing).found.ends_with("will be created when needed"));
        assert_eq!(std::fs::read_dir(&folder).expect("listed").count(), 0, "nothing is left over");
        let file = folder.path().join("file");
        std::fs::write(&file, "").expect("written");
        assert_eq!(writable("x", &file.join("below")).verdict, FindingLevel::Fail);
    }
}
