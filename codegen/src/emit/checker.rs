//! Emits the checker of reports: Rust that decides while it reads the bytes of a document.

use std::fmt::Write as _;

use anyhow::Result;

use super::{Input, WIDTH, digits, file};
use crate::model::File;
use crate::model::checker::{
    Checker, Condition, EnumNode, Format, Is, ListNode, Node, ObjectNode, Suite, SuiteCase, Test, ValueNode,
};
use crate::names;

/// `report/src/generated/checker.rs` and `suite.rs`.
pub(super) fn emit(input: &Input<'_>) -> Result<Vec<File>> {
    Ok(vec![of_report(&input.lowered.report_checker), of_suite(&input.lowered.suite)])
}

/// The checker of reports.
pub(crate) fn of_report(checker: &Checker) -> File {
    let code = format!("{HEAD}{IMPORTS}{}", decider(checker));
    file("report/src/generated/checker.rs", "spec/report.schema.json", &code)
}

/// The same of the schemas of the public test suite, for tests.
fn of_suite(suite: &Suite) -> File {
    let mut code = format!("{SUITE_HEAD}{IMPORTS}{}{CASES}", decider(&suite.checker));
    for SuiteCase { name, file, group, kind } in &suite.cases {
        _ = writeln!(code, "    ({file:?}, {group}, {kind:?}, Object::{}),", names::pascal(name));
    }
    code.push_str("];\n");
    file("report/src/generated/suite.rs", "tests/json-schema-suite", &code)
}

/// What decides: types and methods.
fn decider(checker: &Checker) -> String {
    let places = WordMembers::of(checker);
    let objects: Vec<String> = checker.objects.keys().map(|name| names::pascal(name)).collect();
    let root = checker.objects.keys().last().map_or("", String::as_str);
    let mut code = format!(
        "{}{}{}",
        enumeration("An object that was read.", "Object", &objects),
        enumeration("A member, or an item of a list, with a word or an integer.", "Place", &places.0),
        configured(checker),
    );
    let branches: Vec<String> = (checker.objects.keys().zip(&objects))
        .map(|(name, variant)| format!("        Object::{variant} => checker.{name}()?,\n"))
        .collect();
    let decide = DECIDE.replace("ROOT", root).replace("        BRANCHES\n", &branches.concat());
    _ = write!(code, "{WATCH}{decide}");
    let functions: Vec<String> = (checker.objects.iter())
        .map(|(name, node)| object(name, node))
        .chain(checker.lists.iter().map(|(name, node)| list(name, node)))
        .chain(checker.enums.iter().map(|(name, node)| enumeration_reader(name, node)))
        .collect();
    _ = write!(code, "\nimpl<W: Watch> Checker<'_, '_, W> {{\n{}}}\n", functions.join("\n"));
    code
}

const HEAD: &str = "\
//! Decides while it reads whether a document follows the schema of reports. `None` means \"not sure\": the document is
//! invalid, or the scanner leaves it to the reader.

#![allow(clippy::too_many_lines, reason = \"an object has a branch for each member\")]
";

const SUITE_HEAD: &str = "\
//! Decides of values in an object whether they follow the schemas of the public test suite of JSON Schema; see
//! codegen/src/lower/suite.rs.

#![allow(unused, clippy::all, clippy::pedantic, reason = \"the schemas ask for what those of reports do not\")]
";

/// After the checkers of the suite.
const CASES: &str = "
/// The schemas: file, place of the group, the type that it was given, and the object whose member it is.
pub(crate) const CASES: &[(&str, usize, &str, Object)] = &[
";

const IMPORTS: &str = "
use serde_json::Value as Json;

use crate::scan::{Members, Scan, UniqueTexts, UniqueWords, WordSet, begins, date_time, has_length, uri};
";

const WATCH: &str = "
/// What else is to be decided of a document: gets what was read, in the order of the document. A `None` ends the check.
pub(crate) trait Watch {
    /// The word with this index.
    fn word(&mut self, place: Place, index: usize) -> Option<()>;
    fn integer(&mut self, place: Place, integer: i64) -> Option<()>;
    /// Null, where there could be a word or an integer.
    fn null(&mut self, place: Place) -> Option<()>;
    /// The end of an object that follows the schema, and the number of bytes behind it.
    fn end(&mut self, object: Object, left: usize) -> Option<()>;
}
";

const DECIDE: &str = "
/// Reads a document, which follows the schema if this is something.
#[inline]
pub(crate) fn decide(document: &[u8], names: &Names, watch: &mut impl Watch) -> Option<()> {
    let mut checker = Checker { scan: Scan::new(document), names, watch };
    checker.ROOT()?;
    checker.scan.end()
}

/// Reads an object at the beginning of a text. Returns its length, if it follows the schema.
pub(crate) fn decide_object(
    text: &[u8],
    object: Object,
    names: &Names,
    watch: &mut impl Watch,
) -> Option<usize> {
    let mut checker = Checker { scan: Scan::new(text), names, watch };
    match object {
        BRANCHES
    };
    Some(text.len() - checker.scan.remaining())
}

struct Checker<'a, 'n, W> {
    scan: Scan<'a>,
    names: &'n Names,
    watch: &'n mut W,
}
";

/// Members and items that have a word or an integer.
struct WordMembers(Vec<String>);

impl WordMembers {
    fn of(checker: &Checker) -> Self {
        let members = checker.objects.iter().flat_map(|(name, node)| {
            let members = node.members.iter();
            members.map(move |(member, value)| (names::snake(&format!("{name}_{member}")), value))
        });
        let items = checker.lists.iter().map(|(name, node)| (format!("{name}_item"), &node.item));
        let all = members.chain(items).filter(|(_, value)| is_watched(value));
        Self(all.map(|(name, _)| names::pascal(&name)).collect())
    }
}

fn is_watched(value: &ValueNode) -> bool {
    matches!(value.node, Node::Integer { .. } | Node::Enum(_) | Node::Configured(_))
}

fn enumeration(about: &str, name: &str, variants: &[String]) -> String {
    format!(
        "\n/// {about}\n#[derive(Debug, Clone, Copy, PartialEq, Eq)]\npub(crate) enum {name} {{\n{}}}\n",
        super::filled("    ", variants)
    )
}

/// The words that a deployment chooses.
fn configured(checker: &Checker) -> String {
    let mut fields = String::new();
    let mut values = String::new();
    for (name, pointer) in &checker.configured {
        _ = writeln!(fields, "    /// `{pointer}`\n    pub(crate) {name}: WordSet,");
        _ = writeln!(values, "            {name}: WordSet::at(schema, {pointer:?})?,");
    }
    format!(
        "\n/// The words that a deployment chooses.\n#[derive(Debug)]\npub(crate) struct Names {{\n{fields}}}\n\n\
         impl Names {{\n    /// Those of the schema. `None` if they are too many.\n    \
         pub(crate) fn of(schema: &Json) -> Option<Self> {{\n        Some(Self {{\n{values}        }})\n    }}\n}}\n"
    )
}

/// The method that reads an object.
fn object(name: &str, node: &ObjectNode) -> String {
    let mut code = format!(
        "    /// `{}`\n    fn {name}(&mut self) -> Option<Members> {{\n        \
         let mut members = Members::default();\n        let mut more = self.scan.open(b'{{', b'}}')?;\n        \
         while more {{\n            match self.scan.head()? {{\n",
        if node.pointer.is_empty() { "#" } else { &node.pointer }
    );
    for (index, (member, value)) in node.members.iter().enumerate() {
        let tests = node.tests.iter().enumerate().filter(|(_, test)| test.member == *member);
        let place = names::pascal(&names::snake(&format!("{name}_{member}")));
        let mut lines = vec![format!("members.once({index})?;"), "self.scan.colon()?;".to_owned()];
        lines.extend(statements(value, &place, &tests.collect::<Vec<_>>()));
        code.push_str(&branch(
            &format!("{} if self.scan.ends(b{:?})", head(member), format!("{member}\"")),
            &lines,
        ));
    }
    code.push_str(
        "                _ => return None,\n            }\n            more = self.scan.more(b'}')?;\n        }\n",
    );
    let mask = node.required.iter().map(|member| bit(node, member)).sum::<u64>();
    let mut conditions = Vec::new();
    if mask != 0 {
        conditions.push(format!("members.has({})", grouped(mask)));
    }
    conditions.extend(node.conditions.iter().map(|one| condition(node, one)));
    if !conditions.is_empty() {
        _ = writeln!(code, "        let holds = {};", conditions.join("\n            && "));
        code.push_str("        if !holds {\n            return None;\n        }\n");
    }
    _ = write!(
        code,
        "        self.watch.end(Object::{}, self.scan.remaining())?;\n        Some(members)\n    }}\n",
        names::pascal(name)
    );
    code
}

/// The method that reads a list.
fn list(name: &str, node: &ListNode) -> String {
    let ListNode { pointer, item, min_items, unique } = node;
    let mut lines = match &item.node {
        Node::Text { least, most, format, pattern } if *unique => text(*least, *most, *format, pattern, true),
        _ => statements(item, &names::pascal(&format!("{name}_item")), &[]),
    };
    let mut start = String::new();
    if *unique {
        let (kind, value) = match &item.node {
            Node::Text { .. } => ("UniqueTexts", "text"),
            _ => ("UniqueWords", "word"),
        };
        _ = writeln!(start, "        let mut unique = {kind}::default();");
        lines.push(format!("unique.add({value})?;"));
    }
    if *min_items > 0 {
        start.push_str("        let mut items = 0_usize;\n");
        lines.push("items += 1;".to_owned());
    }
    let result = match min_items {
        0 => "Some(())".to_owned(),
        1 => "(items > 0).then_some(())".to_owned(),
        least => format!("(items >= {least}).then_some(())"),
    };
    lines.push("more = self.scan.more(b']')?;".to_owned());
    format!(
        "    /// `{pointer}`\n    fn {name}(&mut self) -> Option<()> {{\n{start}        \
         let mut more = self.scan.open(b'[', b']')?;\n        while more {{\n{}        }}\n        {result}\n    }}\n",
        indented(&lines, 12)
    )
}

/// The statements that read a value.
fn statements(value: &ValueNode, place: &str, tests: &[(usize, &Test)]) -> Vec<String> {
    let passes = |value: &str| {
        tests
            .iter()
            .map(|(index, test)| {
                let passes = match test.is {
                    Is::EnumValue(wanted) => format!("{value} == {wanted}"),
                    Is::Integer(wanted) => format!("{value} == {wanted}"),
                    Is::AtLeast(least) => format!("{value} >= {least}"),
                    Is::AtMost(most) => format!("{value} <= {most}"),
                    Is::Passing(inner) => format!("{value}.passes({inner})"),
                };
                format!("members.test({index}, {passes});")
            })
            .collect::<Vec<_>>()
    };
    let mut lines = Vec::new();
    match &value.node {
        Node::Boolean => lines.push("self.scan.boolean()?;".to_owned()),
        Node::Integer { least, most } => {
            let bound =
                |bound: &Option<i64>, name: &str| bound.map_or_else(|| format!("i64::{name}"), digits);
            lines.push(format!(
                "let integer = self.scan.integer({}, {})?;",
                bound(least, "MIN"),
                bound(most, "MAX")
            ));
            lines.extend(passes("integer"));
            lines.push(format!("self.watch.integer(Place::{place}, integer)?;"));
        }
        Node::Text { least, most, format, pattern } => {
            lines.extend(text(*least, *most, *format, pattern, false));
        }
        Node::Enum(name) => {
            lines.push(format!("let word = self.{name}()?;"));
            lines.extend(passes("word"));
            lines.push(format!("self.watch.word(Place::{place}, word)?;"));
        }
        Node::Configured(name) => {
            lines.push(format!("let word = self.names.{name}.index(self.scan.word()?)?;"));
            lines.push(format!("self.watch.word(Place::{place}, word)?;"));
        }
        Node::List(name) => lines.push(format!("self.{name}()?;")),
        Node::Object(name) if tests.is_empty() => lines.push(format!("self.{name}()?;")),
        Node::Object(name) => {
            lines.push(format!("let inner = self.{name}()?;"));
            lines.extend(passes("inner"));
        }
    }
    if !value.nullable {
        return lines;
    }
    let mut otherwise: Vec<String> = tests
        .iter()
        .filter(|(_, test)| matches!(test.is, Is::EnumValue(_) | Is::Integer(_)))
        .map(|(index, _)| format!("members.test({index}, false);"))
        .collect();
    if is_watched(value) {
        otherwise.push(format!("self.watch.null(Place::{place})?;"));
    }
    let (lines, otherwise) = (lines.join(" "), otherwise.join(" "));
    vec![if otherwise.is_empty() {
        format!("if !self.scan.null() {{ {lines} }}")
    } else {
        format!("if self.scan.null() {{ {otherwise} }} else {{ {lines} }}")
    }]
}

/// `is_kept`: the text is looked at again.
fn text(
    least: u64,
    most: Option<u64>,
    format: Option<Format>,
    pattern: &[(u8, u8, bool)],
    is_kept: bool,
) -> Vec<String> {
    let mut checks = Vec::new();
    if least > 0 || most.is_some() {
        let most = most.map_or_else(|| "usize::MAX".to_owned(), digits);
        checks.push(format!("has_length(text, {least}, {most})?;"));
    }
    match format {
        Some(Format::DateTime) => checks.push("date_time(text)?;".to_owned()),
        Some(Format::Uri) => checks.push("uri(text)?;".to_owned()),
        None => {}
    }
    if !pattern.is_empty() {
        let atom = |&(low, high, repeated): &(u8, u8, bool)| {
            format!("(b{:?}, b{:?}, {repeated})", char::from(low), char::from(high))
        };
        checks
            .push(format!("begins(text, &[{}])?;", pattern.iter().map(atom).collect::<Vec<_>>().join(", ")));
    }
    let is_used = is_kept || !checks.is_empty();
    let read = if is_used { "let text = self.scan.text()?;" } else { "self.scan.text()?;" };
    std::iter::once(read.to_owned()).chain(checks).collect()
}

fn condition(node: &ObjectNode, one: &Condition) -> String {
    let joined = |all: &[Condition], by: &str| {
        format!("({})", all.iter().map(|one| condition(node, one)).collect::<Vec<_>>().join(by))
    };
    match one {
        Condition::Has(member) => format!("members.has({})", grouped(bit(node, member))),
        Condition::Passes(test) => format!("members.passes({test})"),
        Condition::All(all) if all.is_empty() => "true".to_owned(),
        Condition::All(all) => joined(all, " && "),
        Condition::Any(any) => joined(any, " || "),
        Condition::If(parts) => {
            format!("(!{} || {})", condition(node, &parts.0), condition(node, &parts.1))
        }
    }
}

/// The method that reads a value of an enum.
fn enumeration_reader(name: &str, node: &EnumNode) -> String {
    let mut branches = String::new();
    for (index, word) in node.values.iter().enumerate() {
        let rest = format!("{word}\"");
        _ = writeln!(branches, "            {} if self.scan.ends(b{rest:?}) => Some({index}),", head(word));
    }
    format!(
        "    /// `{}`\n    #[inline]\n    fn {name}(&mut self) -> Option<usize> {{\n        \
         match self.scan.head()? {{\n{branches}            _ => None,\n        }}\n    }}\n",
        node.pointer
    )
}

/// The first eight bytes of a string and its closing quotation mark, as an integer; zeros follow those that are fewer.
fn head(word: &str) -> String {
    let mut bytes = [0; 8];
    for (byte, written) in bytes.iter_mut().zip(word.bytes().chain([b'"'])) {
        *byte = written;
    }
    grouped(u64::from_le_bytes(bytes))
}

/// A branch of a match, on one line if it fits.
fn branch(pattern: &str, lines: &[String]) -> String {
    let indent = " ".repeat(16);
    let whole = format!("{indent}{pattern} => {{ {} }}\n", lines.join(" "));
    if whole.len() <= WIDTH {
        return whole;
    }
    format!("{indent}{pattern} => {{\n{}{indent}}}\n", indented(lines, 20))
}

fn indented(lines: &[String], columns: usize) -> String {
    let indent = " ".repeat(columns);
    lines.iter().fold(String::new(), |code, line| code + &indent + line + "\n")
}

fn bit(node: &ObjectNode, member: &str) -> u64 {
    node.members.get_index_of(member).map_or(0, |index| 1 << index)
}

/// A mask, written so that long ones can be read.
fn grouped(mask: u64) -> String {
    let digits = format!("{mask:x}");
    let groups: Vec<&str> = (0..digits.len().div_ceil(4))
        .rev()
        .map(|group| &digits[digits.len().saturating_sub(4 * (group + 1))..digits.len() - 4 * group])
        .collect();
    format!("0x{}", groups.join("_"))
}
