//! `cargo xtask release VERSION`: one version for all packages. Writes it to the files that registries and cargo read,
//! dates the changelog, generates, commits and tags; the workflow `release` does the rest when the tag is pushed.

mod changelog;
mod places;

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use semver::Version;
use time::OffsetDateTime;

use crate::codegen;
use crate::process::{command, output, run, step};

const CHANGELOG: &str = "CHANGELOG.md";

/// Releases the checkout in `root`, or only prints how.
pub(crate) fn release(root: &Path, version: &Version, dry_run: bool) -> Result<()> {
    let present = places::version(root)?;
    check(root, &present, version)?;
    let mut files = places::with_version(root, version)?;
    let text = std::fs::read_to_string(root.join(CHANGELOG)).context(CHANGELOG)?;
    files.push((CHANGELOG, changelog::released(&text, version, OffsetDateTime::now_utc().date())?));

    let tag = tag_of(version);
    if dry_run {
        eprintln!("would go from {present} to {version}, and change nothing yet:");
        for (path, _) in &files {
            eprintln!("    write {path}");
        }
        eprintln!(
            "    generate what is made from spec/\n    commit \"release: {version}\", and tag it {tag}"
        );
        return Ok(());
    }
    for (path, text) in &files {
        std::fs::write(root.join(path), text).with_context(|| format!("cannot write {path}"))?;
    }
    step("generate", || codegen::generate(root, false))?;
    step("commit and tag", || {
        let message = format!("release: {version}");
        run(git(root).args(["commit", "--quiet", "--all", "--message", &message]))?;
        run(git(root).args(["tag", "--annotate", &tag, "--message", &format!("Gatewright {version}")]))
    })
    .context("the files are written, but not released; `git checkout .` undoes that")?;
    eprintln!("released {version} here; `git push --atomic origin HEAD {tag}` publishes it");
    Ok(())
}

/// Fails unless the tree is committed, and the version is new.
fn check(root: &Path, present: &Version, version: &Version) -> Result<()> {
    let changed = output(git(root).args(["status", "--porcelain"]))?;
    if !changed.is_empty() {
        bail!(
            "the tree has changes that are not committed; commit or stash them first:\n{}",
            changed.trim_end()
        );
    }
    if !version.build.is_empty() {
        bail!("{version} has build metadata, which no registry takes; leave out what follows the +");
    }
    let tags = output(git(root).args(["tag", "--list", "v*"]))?;
    let is_tagged = |version: &Version| tags.lines().any(|tag| tag == tag_of(version));
    // The tree's own version counts as new as long as it was never released.
    if version < present || is_tagged(version) || (version == present && is_tagged(present)) {
        bail!("{version} is not above {present}, the version of this tree");
    }
    Ok(())
}

fn tag_of(version: &Version) -> String {
    format!("v{version}")
}

fn git(root: &Path) -> Command {
    let mut git = command("git");
    git.current_dir(root);
    git
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::process;

    /// A clone of this repository, as committed.
    struct Clone(tempfile::TempDir);

    impl Clone {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            run(command("git").args(["clone", "--quiet"]).arg(process::root()).arg(folder.path()))
                .expect("a clone");
            let clone = Self(folder);
            for (name, value) in [("user.name", "A Tester"), ("user.email", "tester@gatewright.example")] {
                clone.git(&["config", name, value]);
            }
            clone.write(CHANGELOG, "# Changelog\n\n## Unreleased\n\n### Added\n- A thing.\n");
            clone.git(&["commit", "--quiet", "--all", "--message", "changelog"]);
            clone
        }

        fn root(&self) -> &Path {
            self.0.path()
        }

        fn git(&self, arguments: &[&str]) -> String {
            output(git(self.root()).args(arguments)).expect("git works")
        }

        fn write(&self, path: &str, text: &str) {
            fs::write(self.root().join(path), text).expect("a file");
        }

        fn next(&self) -> Version {
            let present = places::version(self.root()).expect("the places agree");
            Version::new(present.major, present.minor + 1, 0)
        }

        fn refusal(&self, version: &Version) -> String {
            let before = self.git(&["rev-parse", "HEAD"]);
            let error = release(self.root(), version, false).expect_err("a refusal");
            assert_eq!(self.git(&["rev-parse", "HEAD"]), before);
            format!("{error:#}")
        }
    }

    #[test]
    fn release_sets_versions_dates_the_changelog_commits_and_tags() {
        let clone = Clone::new();
        let version = clone.next();
        release(clone.root(), &version, false).expect("a release");

        assert_eq!(places::version(clone.root()).expect("the places agree"), version);
        let today = OffsetDateTime::now_utc().date();
        let changelog = fs::read_to_string(clone.root().join(CHANGELOG)).expect("a changelog");
        assert!(
            changelog
                .contains(&format!("## Unreleased\n\n## {version} - {today}\n\n### Added\n- A thing.\n"))
        );
        assert_eq!(clone.git(&["status", "--porcelain"]), "");
        assert_eq!(clone.git(&["describe", "--exact-match"]).trim(), tag_of(&version));
        assert_eq!(clone.git(&["log", "-1", "--format=%s"]).trim(), format!("release: {version}"));
    }

    #[test]
    fn dry_run_changes_nothing() {
        let clone = Clone::new();
        let before = clone.git(&["rev-parse", "HEAD"]);
        release(clone.root(), &clone.next(), true).expect("a plan");
        assert_eq!(clone.git(&["rev-parse", "HEAD"]), before);
        assert_eq!(clone.git(&["status", "--porcelain"]), "");
        assert_eq!(clone.git(&["tag", "--points-at", "HEAD"]), "");
    }

    #[test]
    fn dirty_tree_is_not_released() {
        let clone = Clone::new();
        clone.write("new.txt", "");
        assert!(clone.refusal(&clone.next()).contains("new.txt"));
    }

    #[test]
    fn version_must_exceed_the_last_release_unless_it_is_the_first() {
        let clone = Clone::new();
        let present = places::version(clone.root()).expect("the places agree");
        let older = Version::parse(&format!("{present}-rc.1")).expect("a version");
        assert!(clone.refusal(&older).contains("is not above"));
        // Pretends that nothing is released yet: the tree's version is available.
        clone.git(&["tag", "--list"]).lines().for_each(|tag| drop(clone.git(&["tag", "--delete", tag])));
        release(clone.root(), &present, true).expect("a plan");
        clone.git(&["tag", &tag_of(&present)]);
        assert!(clone.refusal(&present).contains("is not above"));
    }

    #[test]
    fn empty_changelog_is_not_released() {
        let clone = Clone::new();
        clone
            .write(CHANGELOG, "# Changelog\n\n## Unreleased\n\n### Added\n\n## 0.0.1 - 2020-01-01\n- Old.\n");
        clone.git(&["commit", "--quiet", "--all", "--message", "nothing to say"]);
        assert!(clone.refusal(&clone.next()).contains("Unreleased"));
    }
}
