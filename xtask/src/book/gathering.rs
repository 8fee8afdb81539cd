//! Copies the pages of docs/SUMMARY.md to one folder, and rewrites their links.
//!
//! A line `<!-- other pages of guides -->` in the summary means all pages of that folder of docs/ that no other line
//! names, by their headings. A link between two pages leads to the copy. A link to a file of the repository that is not a
//! page is reduced to its text, since the site doesn't contain the file. A link to nothing is an error, and so is a page
//! of docs/ that is missing from the summary.
//!
//! docs/llms.txt, which tells language models in a sentence what each page is about, becomes llms.txt at the top of the site.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};

use walkdir::WalkDir;

use crate::process::files_of;

const SUMMARY: &str = "docs/SUMMARY.md";
/// Files of docs/ that are not pages of the site.
const NO_PAGES: [&str; 1] = [SUMMARY];
/// What each page is about.
const OVERVIEW: &str = "docs/llms.txt";
/// Folders whose first page stands for all others in the overview.
const IN_SHORT: [&str; 1] = ["docs/decisions"];
/// The folder of files that pages display.
const PICTURES: &str = "docs/pictures";

/// Writes everything that mdBook needs into `out`. Returns the number of pages.
pub(super) fn gather(root: &Path, out: &Path) -> Result<usize> {
    let summary = fs::read_to_string(root.join(SUMMARY)).context("cannot read docs/SUMMARY.md")?;
    let summary = with_other_pages(root, &summary)?;
    let pages = pages(&summary);
    check_all_are_listed(root, &pages)?;
    let book = Book { root, pages: pages.iter().map(|page| (page.clone(), place(page))).collect() };
    let mut problems = Vec::new();
    for (page, place) in &book.pages {
        match fs::read_to_string(root.join(page)) {
            Ok(text) => {
                let text = book.turned(&text, page, &mut problems);
                write(&out.join(place), &text)?;
            }
            Err(error) => problems.push(format!("{SUMMARY}: {}: {error}", page.display())),
        }
    }
    write(&out.join("SUMMARY.md"), &book.turned(&summary, Path::new(SUMMARY), &mut problems))?;
    let overview = fs::read_to_string(root.join(OVERVIEW)).context("cannot read docs/llms.txt")?;
    check_overview(&overview, &pages)?;
    let overview = book.turned(&overview, Path::new(OVERVIEW), &mut problems);
    // mdBook copies what isn't a page.
    write(&out.join("llms.txt"), &overview.replace(".md)", ".html)"))?;
    for entry in fs::read_dir(root.join(PICTURES))? {
        let entry = entry?;
        fs::create_dir_all(out.join("pictures"))?;
        fs::copy(entry.path(), out.join("pictures").join(entry.file_name()))?;
    }
    if !problems.is_empty() {
        bail!("{}\n{} links lead to nothing", problems.join("\n"), problems.len());
    }
    Ok(book.pages.len())
}

/// Errors: pages of docs/ missing from the summary, which no reader of the site would find.
fn check_all_are_listed(root: &Path, listed: &[PathBuf]) -> Result<()> {
    let mut lacking = Vec::new();
    for entry in WalkDir::new(root.join("docs")).sort_by_file_name() {
        let entry = entry?;
        let page = entry.path().strip_prefix(root)?;
        let is_page = page.extension().is_some_and(|extension| extension == "md")
            && !NO_PAGES.iter().any(|other| page == Path::new(other));
        if is_page && !listed.iter().any(|listed| listed == page) {
            lacking.push(page.display().to_string());
        }
    }
    if !lacking.is_empty() {
        bail!("{SUMMARY} lists no {}: add a line for it", lacking.join(", no "));
    }
    Ok(())
}

/// Errors: the overview lacks a page, or doesn't say in a sentence what it is about.
fn check_overview(overview: &str, listed: &[PathBuf]) -> Result<()> {
    let stands_for = |page: &PathBuf| {
        let is_first = page.file_name().is_some_and(|name| name == "README.md");
        is_first || !IN_SHORT.iter().any(|folder| page.starts_with(folder))
    };
    // A line is `- [TITLE](PAGE): SENTENCE.`
    let lines = overview.lines().filter(|line| line.starts_with("- [") && line.ends_with('.'));
    let described: BTreeSet<PathBuf> = lines.filter(|line| line.contains("): ")).flat_map(pages).collect();
    let lacking: Vec<String> = listed
        .iter()
        .filter(|page| stands_for(page) && !described.contains(*page))
        .map(|page| page.display().to_string())
        .collect();
    if !lacking.is_empty() {
        bail!("{OVERVIEW} has no sentence about {}", lacking.join(", nor about "));
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().context("a page is in a folder")?;
    fs::create_dir_all(folder)?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The summary with a line added for each page of a folder that it doesn't name.
fn with_other_pages(root: &Path, summary: &str) -> Result<String> {
    let named: BTreeSet<PathBuf> = pages(summary).into_iter().collect();
    let mut out = String::new();
    for line in summary.lines() {
        let (indent, text) = line.split_at(line.len() - line.trim_start().len());
        let folder = text.strip_prefix("<!-- other pages of ").and_then(|rest| rest.strip_suffix(" -->"));
        let Some(folder) = folder else {
            out.extend([line, "\n"]);
            continue;
        };
        for path in files_of(&root.join("docs").join(folder), "md")? {
            let page = path.strip_prefix(root)?;
            if named.contains(page) {
                continue;
            }
            let text = fs::read_to_string(&path)?;
            let title = text.lines().find_map(|line| line.strip_prefix("# "));
            let title = title.with_context(|| format!("{} has no heading", page.display()))?;
            let link = page.strip_prefix("docs")?.display();
            _ = writeln!(out, "{indent}- [{}]({link})", title.replace(['[', ']'], ""));
        }
    }
    Ok(out)
}

/// The pages of the summary, as paths in the repository.
fn pages(summary: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    links(summary, |target| {
        found.push(resolved(Path::new(SUMMARY), target));
        None
    });
    found
}

/// Where a page is in the site: pages of docs/ in their folders, others below `project/`, and the README first.
fn place(page: &Path) -> PathBuf {
    if page == Path::new("README.md") {
        return PathBuf::from("index.md");
    }
    let inside = page.strip_prefix("docs").map(Path::to_owned);
    let place =
        inside.unwrap_or_else(|_| Path::new("project").join(page.display().to_string().to_lowercase()));
    match place.file_name().map(OsStr::to_ascii_lowercase) {
        Some(name) if name == "readme.md" => place.with_file_name("index.md"),
        _ => place,
    }
}

/// A target of a link, as a path in the repository, without `..`.
fn resolved(page: &Path, target: &str) -> PathBuf {
    let mut path = page.parent().map(Path::to_owned).unwrap_or_default();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => _ = path.pop(),
            Component::Normal(part) => path.push(part),
            _ => {}
        }
    }
    path
}

/// The relative path from one page of the site to another.
fn relative(from: &Path, to: &Path) -> String {
    let depth = from.components().count() - 1;
    format!("{}{}", "../".repeat(depth), to.display())
}

struct Book<'r> {
    root: &'r Path,
    /// From the path in the repository to the one in the site.
    pages: BTreeMap<PathBuf, PathBuf>,
}

impl Book<'_> {
    /// A page with its links rewritten.
    fn turned(&self, text: &str, page: &Path, problems: &mut Vec<String>) -> String {
        // The summary is at the top of the site.
        let here = self.pages.get(page).cloned().unwrap_or_else(|| PathBuf::from("SUMMARY.md"));
        links(text, |target| {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            if path.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                return None;
            }
            let mut wanted = resolved(page, path);
            if self.root.join(&wanted).join("README.md").is_file() {
                wanted.push("README.md");
            }
            let anchor = if anchor.is_empty() { String::new() } else { format!("#{anchor}") };
            if let Some(to) = self.pages.get(&wanted) {
                return Some(RewrittenLink::To(relative(&here, to) + &anchor));
            }
            if let Ok(picture) = wanted.strip_prefix("docs")
                && wanted.starts_with(PICTURES)
                && self.root.join(&wanted).is_file()
            {
                return Some(RewrittenLink::To(relative(&here, picture)));
            }
            if !self.root.join(&wanted).exists() {
                problems.push(format!("{}: {target} leads to nothing", page.display()));
            }
            Some(RewrittenLink::Text)
        })
    }
}

/// The result of rewriting a link.
enum RewrittenLink {
    To(String),
    /// The link is removed, its text remains.
    Text,
}

/// A text with its links rewritten, except those in code. `turn` returns `None` to keep a link unchanged.
fn links(text: &str, mut turn: impl FnMut(&str) -> Option<RewrittenLink>) -> String {
    let mut out = String::new();
    let mut fenced = false;
    // The text between two fences: a link may continue on the next line.
    let mut prose = String::new();
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        if is_fence || fenced {
            out.push_str(&turned_prose(&std::mem::take(&mut prose), &mut turn));
            out.push_str(line);
            fenced ^= is_fence;
        } else {
            prose.push_str(line);
        }
    }
    out + &turned_prose(&prose, &mut turn)
}

fn turned_prose(text: &str, turn: &mut impl FnMut(&str) -> Option<RewrittenLink>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['[', '`', '"']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let read = if let Some(code) = from.strip_prefix('`') {
            // Quoted code contains no links.
            let end = code.find('`').filter(|end| !code[..*end].contains("\n\n"));
            let read = end.map_or(1, |end| end + 2);
            out.push_str(&from[..read]);
            read
        } else if let Some((whole, label, target)) = link(from) {
            match turn(target) {
                None => out.push_str(whole),
                Some(RewrittenLink::To(to)) => out.extend(["[", label, "](", &to, ")"]),
                Some(RewrittenLink::Text) => out.push_str(label),
            }
            whole.len()
        } else if let Some(source) = from.strip_prefix('"')
            && (before.ends_with("src=") || before.ends_with("srcset="))
            && let Some((source, _)) = source.split_once('"')
        {
            match turn(source) {
                Some(RewrittenLink::To(to)) => out.extend(["\"", &to, "\""]),
                _ => out.push_str(&from[..source.len() + 2]),
            }
            source.len() + 2
        } else {
            out.push_str(&from[..1]);
            1
        };
        rest = &from[read..];
    }
    out.push_str(rest);
    out
}

/// A link at the beginning of a text: all of it, its label, which may contain code and balanced brackets, and its
/// target.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let text = text.split("\n\n").next().filter(|paragraph| paragraph.starts_with('['))?;
    let mut depth = 0;
    let end = text.char_indices().find_map(|(at, mark)| {
        match mark {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })?;
    let target = text[end + 1..].strip_prefix('(')?.split_once(')')?.0;
    Some((&text[..end + 1 + target.len() + 2], &text[1..end], target))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turned(text: &str) -> String {
        links(text, |target| match target {
            "gone" => Some(RewrittenLink::Text),
            "kept" => None,
            other => Some(RewrittenLink::To(format!("to-{other}"))),
        })
    }

    #[test]
    fn links_are_rewritten_except_in_code() {
        assert_eq!(turned("a [b](c) [d `e[0]`](f)\n"), "a [b](to-c) [d `e[0]`](to-f)\n");
        assert_eq!(turned("`[b](c)` [b](kept) [b](gone)"), "`[b](c)` [b](kept) b");
        assert_eq!(turned("```\n[b](c)\n```\n[b](c)\n"), "```\n[b](c)\n```\n[b](to-c)\n");
        assert_eq!(turned("![b\nb](c)\n"), "![b\nb](to-c)\n");
        assert_eq!(turned("<img src=\"c\" alt=\"[x\">"), "<img src=\"to-c\" alt=\"[x\">");
        assert_eq!(turned("a[0] and (b) \"c\""), "a[0] and (b) \"c\"");
    }

    #[test]
    fn pages_of_other_folders_get_their_own_path() {
        assert_eq!(place(Path::new("README.md")), Path::new("index.md"));
        assert_eq!(place(Path::new("docs/guides/check.md")), Path::new("guides/check.md"));
        assert_eq!(place(Path::new("docs/decisions/README.md")), Path::new("decisions/index.md"));
        assert_eq!(place(Path::new("spec/gaps.md")), Path::new("project/spec/gaps.md"));
        assert_eq!(relative(Path::new("guides/check.md"), Path::new("index.md")), "../index.md");
    }

    #[test]
    fn summary_placeholder_lists_the_remaining_pages() {
        let root = tempfile::tempdir().expect("a folder");
        for (name, text) in [("a.md", "# First [one]\n"), ("b.md", "# Second\n")] {
            write(&root.path().join("docs/guides").join(name), text).expect("it is written");
        }
        let summary = "- [B](guides/b.md)\n  <!-- other pages of guides -->\n";
        let whole = with_other_pages(root.path(), summary).expect("the folder is there");
        assert_eq!(whole, "- [B](guides/b.md)\n  - [First one](guides/a.md)\n");
    }

    #[test]
    fn dead_link_is_reported_with_its_page() {
        let root = tempfile::tempdir().expect("a folder");
        write(&root.path().join(SUMMARY), "- [A](a.md)\n").expect("it is written");
        write(&root.path().join(OVERVIEW), "- [A](a.md): the first.\n").expect("it is written");
        write(&root.path().join("docs/a.md"), "# A\n\n[b](b.md)\n").expect("it is written");
        fs::create_dir_all(root.path().join(PICTURES)).expect("it is made");
        let error = gather(root.path(), &root.path().join("out")).expect_err("b.md is missing");
        assert_eq!(error.to_string(), "docs/a.md: b.md leads to nothing\n1 links lead to nothing");
    }

    #[test]
    fn page_missing_from_the_summary_is_reported() {
        let root = tempfile::tempdir().expect("a folder");
        write(&root.path().join(SUMMARY), "- [A](a.md)\n").expect("it is written");
        for page in ["docs/a.md", "docs/b.md", "docs/folder/c.md"] {
            write(&root.path().join(page), "# Page\n").expect("it is written");
        }
        fs::create_dir_all(root.path().join(PICTURES)).expect("it is made");
        let error = gather(root.path(), &root.path().join("out")).expect_err("two pages are not listed");
        assert_eq!(
            error.to_string(),
            "docs/SUMMARY.md lists no docs/b.md, no docs/folder/c.md: add a line for it"
        );
    }

    #[test]
    fn summary_lists_every_page_of_the_repository() {
        let root = crate::process::root();
        let summary = fs::read_to_string(root.join(SUMMARY)).expect("the summary");
        let summary = with_other_pages(&root, &summary).expect("its folders");
        check_all_are_listed(&root, &pages(&summary)).expect("no page is missing");
    }

    #[test]
    fn repository_pages_are_gathered_with_a_site_overview() {
        let out = tempfile::tempdir().expect("a folder");
        gather(&crate::process::root(), out.path())
            .expect("each link leads to a page, and each page has a sentence");
        let overview = fs::read_to_string(out.path().join("llms.txt")).expect("it is written");
        assert!(overview.contains("\n- [Streams](guides/streams.html): "), "{overview}");
        assert!(!overview.contains(".md)"), "{overview}");
    }

    #[test]
    fn page_missing_from_the_overview_is_reported() {
        let listed = ["docs/a.md", "docs/b.md", "docs/decisions/README.md", "docs/decisions/c.md"];
        let listed = listed.map(PathBuf::from);
        let overview = "- [A](a.md): the first.\n- [B](b.md)\n- [All](decisions/README.md): short.\n";
        let error = check_overview(overview, &listed).expect_err("it says nothing of one");
        assert_eq!(error.to_string(), "docs/llms.txt has no sentence about docs/b.md");
    }
}
