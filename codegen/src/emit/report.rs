//! Emits the report as typed values in Rust. Missing and null stay apart: a member that may be missing is an
//! `Option`, one that may be missing or null an `Option` of an `Option`, so that a report written out again is the
//! report that was read.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Result, bail};
use indexmap::IndexMap;
use serde_json::Value;

use super::samples::{Samples, written};
use super::{Input, WIDTH, described, field_facts, file, filled, shown_code, type_origin};
use crate::model::{Field, File, Kind, Object, Schema, StringEnum, Type};
use crate::names;

/// Keywords that no field can be called by.
const KEYWORDS: &[&str] = &["as", "enum", "fn", "in", "loop", "match", "mod", "ref", "type", "use"];

/// `report/src/generated/mod.rs`.
pub(super) fn emit(input: &Input<'_>) -> Result<Vec<File>> {
    let api = input.api;
    let types = ReportTypes { schemas: &api.report, samples: Samples::of(&api.report) };
    let mut code =
        "//! The report as typed values. They can represent every valid report; the schema decides whether a document\n\
         //! is valid. A member that may be missing is an `Option`; one that may be missing or null is an\n\
         //! `Option<Option<_>>`, so that a report written out again is the report that was read. An integer outside its\n\
         //! type reads as the nearest that fits.\n\n\
         pub(crate) mod checker;\n#[cfg(test)]\npub(crate) mod suite;\n\n\
         use std::collections::BTreeMap;\nuse std::fmt;\n\n\
         use serde::{Deserialize, Deserializer, Serialize};\n"
        .to_owned();
    for schema in api.report.values() {
        match &schema.kind {
            Kind::Object(object) if !is_map(object) => code.push_str(&types.structure(schema, object)?),
            Kind::Enum(string_enum) if !string_enum.open => code.push_str(&enumeration(schema, string_enum)),
            _ => {}
        }
    }
    code.push_str(
        "\n/// Reads a member that is present, null or not; an absent one takes its default, `None`.\n\
         #[expect(clippy::option_option, reason = \"absent, null and a value are three things\")]\n\
         fn present<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>\nwhere\n    \
         D: Deserializer<'de>,\n    T: Deserialize<'de>,\n{\n    \
         Option::deserialize(deserializer).map(Some)\n}\n",
    );
    Ok(vec![file("report/src/generated/mod.rs", "spec/report.schema.json", &code)])
}

struct ReportTypes<'a> {
    schemas: &'a IndexMap<String, Schema>,
    samples: Samples<'a>,
}

impl ReportTypes<'_> {
    fn structure(&self, schema: &Schema, object: &Object) -> Result<String> {
        let fields: Vec<(&Field, String)> =
            object.fields.iter().map(|field| Ok((field, self.field(field)?))).collect::<Result<_>>()?;
        let mut derives = vec!["Debug", "Clone"];
        let is_plain = object.fields.iter().all(|field| self.is_plain(&field.ty));
        let has_default = object.fields.iter().all(|field| {
            field.ty.is_nullable() || !field.required || matches!(field.ty, Type::Integer | Type::Const(_))
        });
        if is_plain {
            derives.push("Copy");
        }
        derives.extend(["PartialEq", "Eq"]);
        if is_plain && has_default {
            derives.push("Default");
        }
        derives.extend(["Serialize", "Deserialize"]);
        let mut code = format!(
            "\n{}{}#[derive({})]\npub struct {} {{\n",
            doc(&described(&schema.description, &type_origin(schema)), ""),
            self.read_example(schema, object),
            derives.join(", "),
            schema.name
        );
        for (field, ty) in fields {
            code.push_str(&doc(&described(&field.description, &field_facts(field, &schema.source)), "    "));
            let name = name(&schema.name, &field.name);
            let mut serde = Vec::new();
            if name != field.name {
                serde.push(format!("rename = {:?}", field.name));
            }
            if !field.required {
                if field.ty.is_nullable() {
                    serde.push("default, deserialize_with = \"present\"".to_owned());
                }
                serde.push("skip_serializing_if = \"Option::is_none\"".to_owned());
            }
            if !serde.is_empty() {
                _ = writeln!(code, "    #[serde({})]", serde.join(", "));
            }
            _ = writeln!(code, "    pub {name}: {ty},");
        }
        code.push_str("}\n");
        Ok(code)
    }

    /// Reads a value and looks at its first member that is a text, a number or a word.
    fn read_example(&self, schema: &Schema, object: &Object) -> String {
        let whole = &schema.name;
        let snake = names::snake(whole);
        let variable = snake.rsplit('_').next().unwrap_or_default();
        let members = self.samples.object(whole);
        let check = object.fields.iter().filter(|field| field.required).find_map(|field| {
            let place = format!("{variable}.{}", name(whole, &field.name));
            let text = matches!(&field.ty, Type::Nullable(inner) if **inner == Type::String);
            let place = if text { format!("{place}.as_deref()") } else { place };
            self.rust_value(&field.ty, &members[&field.name])
                .map(|expression| format!("assert_eq!({place}, {expression});"))
        });
        let json = written(&Value::Object(members), 0, 100);
        let imports = match check.as_ref().and_then(|check| check.split_once(", ")?.1.split_once("::")) {
            Some((of, _)) => format!("{{{whole}, {of}}}"),
            None => whole.clone(),
        };
        let check = check.map_or_else(String::new, |check| check + "\n");
        let code = format!(
            "use gatewright_report::{imports};\n\nlet json = r#\"{json}\"#;\n\
             let {variable}: {whole} = serde_json::from_str(json)?;\n{check}# Ok::<(), serde_json::Error>(())\n"
        );
        shown_code(&code, "/// ")
    }

    /// A value in Rust.
    fn rust_value(&self, ty: &Type, value: &Value) -> Option<String> {
        match (ty, value) {
            (Type::String | Type::Integer | Type::Const(_), Value::String(_) | Value::Number(_)) => {
                Some(value.to_string())
            }
            (Type::Nullable(inner), value) => {
                self.rust_value(inner, value).map(|expression| format!("Some({expression})"))
            }
            (Type::Ref(of), Value::String(word)) => match &self.schemas[of].kind {
                Kind::Enum(string_enum) if !string_enum.open => {
                    Some(format!("{of}::{}", names::variant(word)))
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn field(&self, field: &Field) -> Result<String> {
        let ty = self.expression(&field.ty, field.constraints.minimum.is_some())?;
        Ok(if field.required { ty } else { format!("Option<{ty}>") })
    }

    fn expression(&self, ty: &Type, is_count: bool) -> Result<String> {
        Ok(match ty {
            Type::String => "String".to_owned(),
            Type::Boolean => "bool".to_owned(),
            Type::Integer if is_count => "u64".to_owned(),
            Type::Integer => "i64".to_owned(),
            Type::Const(value) if value.is_u64() => "u64".to_owned(),
            Type::Const(value) if value.is_string() => "String".to_owned(),
            Type::Array(inner) => format!("Vec<{}>", self.expression(inner, is_count)?),
            Type::Nullable(inner) => format!("Option<{}>", self.expression(inner, is_count)?),
            Type::Ref(name) => match &self.schemas[name].kind {
                Kind::Object(object) if is_map(object) => "BTreeMap<String, String>".to_owned(),
                Kind::Enum(string_enum) if string_enum.open => "String".to_owned(),
                Kind::Object(_) | Kind::Enum(_) => name.clone(),
                Kind::Alias(inner) => self.expression(inner, is_count)?,
                Kind::Union(_) => bail!("{name} is a union; the types of the report have none"),
            },
            Type::Enum(string_enum) if string_enum.open => "String".to_owned(),
            other => bail!("{other:?} has no type in the report; give an enum a title, which names it"),
        })
    }

    /// Whether values of the type are copied.
    fn is_plain(&self, ty: &Type) -> bool {
        match ty {
            Type::Integer | Type::Boolean => true,
            Type::Const(value) => !value.is_string(),
            Type::Nullable(inner) => self.is_plain(inner),
            Type::Ref(name) => {
                matches!(&self.schemas[name].kind, Kind::Enum(string_enum) if !string_enum.open)
            }
            _ => false,
        }
    }
}

/// Texts that may all be missing are a map: their names are the wire's business.
fn is_map(object: &Object) -> bool {
    object.fields.iter().all(|field| !field.required && field.ty == Type::String)
}

fn enumeration(schema: &Schema, string_enum: &StringEnum) -> String {
    let name = &schema.name;
    let variants: BTreeMap<&String, String> =
        string_enum.values.iter().map(|word| (word, names::variant(word))).collect();
    let mut code = format!(
        "\n{}{}#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]\npub enum {name} {{\n",
        doc(&described(&schema.description, &type_origin(schema)), ""),
        word_example(name, string_enum)
    );
    for (index, word) in string_enum.values.iter().enumerate() {
        let about =
            string_enum.meanings.get(index).map_or_else(String::new, |meaning| format!(": {meaning}"));
        code.push_str(&doc(&format!("`{word}`{about}"), "    "));
        _ = write!(code, "    #[serde(rename = {word:?})]\n    {},\n", variants[word]);
    }
    _ = write!(
        code,
        "}}\n\nimpl {name} {{\n    /// All values, in the order of the schema.\n{}    \
         pub const ALL: [Self; {}] = [{}];\n\n    \
         /// Its name in a report.\n{}    pub const fn name(self) -> &'static str {{\n        match self {{\n",
        all_example(name, string_enum),
        string_enum.values.len(),
        string_enum
            .values
            .iter()
            .map(|word| format!("Self::{}", variants[word]))
            .collect::<Vec<_>>()
            .join(", "),
        method_example(name, string_enum, "name", &string_enum.values)
    );
    for word in &string_enum.values {
        _ = writeln!(code, "            Self::{} => {word:?},", variants[word]);
    }
    code.push_str("        }\n    }\n");
    if !string_enum.meanings.is_empty() {
        _ = write!(
            code,
            "\n    /// Its meaning, in a sentence.\n{}    pub const fn meaning(self) -> &'static str {{\n        match self {{\n",
            method_example(name, string_enum, "meaning", &string_enum.meanings)
        );
        for (word, meaning) in string_enum.values.iter().zip(&string_enum.meanings) {
            _ = writeln!(code, "            Self::{} => {meaning:?},", variants[word]);
        }
        code.push_str("        }\n    }\n");
    }
    _ = write!(
        code,
        "}}\n\nimpl fmt::Display for {name} {{\n    \
         fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {{\n        f.pad(self.name())\n    }}\n}}\n"
    );
    code
}

/// From a word to its name, and what it means.
fn word_example(name: &str, string_enum: &StringEnum) -> String {
    let Some(word) = string_enum.values.first() else { return String::new() };
    let variant = names::variant(word);
    let mut code = format!(
        "use gatewright_report::{name};\n\nassert_eq!({name}::{variant}.name(), {word:?});\n\
         assert_eq!({name}::ALL.len(), {});\n",
        string_enum.values.len()
    );
    if let Some(meaning) = string_enum.meanings.first() {
        _ = writeln!(code, "assert_eq!({name}::{variant}.meaning(), {meaning:?});");
    }
    shown_code(&code, "/// ")
}

/// An example that calls a method of the first word. results: what it returns for each word.
fn method_example(name: &str, string_enum: &StringEnum, method: &str, results: &[String]) -> String {
    let (Some(word), Some(result)) = (string_enum.values.first(), results.first()) else {
        return String::new();
    };
    let code = format!(
        "use gatewright_report::{name};\n\nassert_eq!({name}::{}.{method}(), {result:?});\n",
        names::variant(word)
    );
    shown_code(&code, "    /// ")
}

/// The names of all words.
fn all_example(name: &str, string_enum: &StringEnum) -> String {
    let mut assertion = format!("assert_eq!(names, {:?});\n", string_enum.values);
    if assertion.len() > WIDTH {
        let quoted: Vec<String> = string_enum.values.iter().map(|word| format!("{word:?}")).collect();
        assertion =
            format!("let expected = [\n{}];\nassert_eq!(names, expected);\n", filled("    ", &quoted));
    }
    let code =
        format!("use gatewright_report::{name};\n\nlet names = {name}::ALL.map({name}::name);\n{assertion}");
    shown_code(&code, "    /// ")
}

/// The identifier of a member: a keyword takes the last word of its type's name before it.
fn name(of: &str, member: &str) -> String {
    let snake = names::snake(member);
    if !KEYWORDS.contains(&snake.as_str()) {
        return snake;
    }
    let of = names::snake(of);
    let last = of.rsplit('_').next().unwrap_or_default();
    format!("{last}_{snake}")
}

fn doc(description: &str, indent: &str) -> String {
    super::comment(description, &format!("{indent}/// "))
}
