//! Emits the examples of the types, which run as documentation tests: how a type that people send is built and what it
//! becomes on the wire, how one of answers is read, what the values of an enum are.

mod methods;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use serde_json::{Map, Value};
use syn::{Attribute, Field, Fields, Item, ItemEnum, ItemStruct, Type, parse_quote};

use super::fields::{self, wire_name};
use super::known::{TypeFacts, arguments, inner, is, is_boxed_option, last};
use crate::emit::filled;
use crate::emit::samples::{Samples, broken, written};
use crate::model::{self, Api, Kind};
use crate::names;
use crate::vocabulary::FILE_PART;

/// Columns of a line of an example; the comment's sign stands before it.
const COLUMNS: usize = 100;

/// How a value is made that Rust has no short expression for.
const FROM_JSON: &str = "serde_json::from_value(serde_json::json!(";

/// What examples are made of.
pub(super) struct Examples<'a> {
    api: &'a Api,
    known: &'a TypeFacts,
    samples: Samples<'a>,
    structs: HashMap<String, &'a ItemStruct>,
    /// Closed enums: the variant of each value.
    closed: HashMap<String, Vec<(String, String)>>,
    /// The variants of each union of different structure.
    unions: HashMap<String, Vec<(String, Type)>>,
    open: HashMap<String, Vec<String>>,
    /// The types that the example at hand names.
    named: RefCell<BTreeSet<String>>,
}

/// A field of a value, and what its JSON has there.
struct FieldValue<'v> {
    /// How Rust spells the way to it.
    place: String,
    wire: String,
    ty: &'v Type,
    value: &'v Value,
}

impl<'a> Examples<'a> {
    pub(super) fn new(
        api: &'a Api,
        known: &'a TypeFacts,
        items: &'a [Item],
        open: &[(String, Vec<String>)],
    ) -> Self {
        let mut examples = Self {
            api,
            known,
            samples: Samples::of_api(api),
            structs: HashMap::new(),
            closed: HashMap::new(),
            unions: HashMap::new(),
            open: open.iter().cloned().collect(),
            named: RefCell::default(),
        };
        for item in items {
            match item {
                Item::Struct(item) => _ = examples.structs.insert(item.ident.to_string(), item),
                Item::Enum(item) => examples.sort(item),
                _ => {}
            }
        }
        examples
    }

    fn sort(&mut self, item: &ItemEnum) {
        let name = item.ident.to_string();
        if item.variants.iter().all(|variant| matches!(variant.fields, Fields::Unit)) {
            let values = item
                .variants
                .iter()
                .map(|variant| (wire_name(&variant.attrs, &variant.ident), variant.ident.to_string()));
            self.closed.insert(name, values.collect());
        } else {
            let variants = item.variants.iter().filter_map(|variant| {
                Some((variant.ident.to_string(), variant.fields.iter().next()?.ty.clone()))
            });
            self.unions.insert(name, variants.collect());
        }
    }

    /// The lines of the example of a type, as attributes after its own documentation.
    pub(super) fn attributes(&self, name: &str) -> Vec<Attribute> {
        let Some(code) = self.code(name) else { return Vec::new() };
        let lines = ["", "```"].into_iter().chain(code.lines()).chain(["```"]);
        let attribute = |line: &str| {
            let line = if line.is_empty() { String::new() } else { format!(" {line}") };
            parse_quote!(#[doc = #line])
        };
        lines.map(attribute).collect()
    }

    fn code(&self, name: &str) -> Option<String> {
        self.named.replace(BTreeSet::from([name.to_owned()]));
        let (body, error) = if let Some(values) = self.closed.get(name) {
            (closed(name, values)?, format!("{}::types::error::ConversionError", self.api.target.rust_crate))
        } else if let Some(values) = self.open.get(name) {
            (open(name, values)?, String::new())
        } else if let Some(variants) = self.unions.get(name) {
            (self.variants(name, variants)?, "serde_json::Error".to_owned())
        } else {
            let body = self.sent(name).or_else(|| self.received(name))?;
            (body, "serde_json::Error".to_owned())
        };
        Some(self.program(&body, &error))
    }

    /// A body after the imports of the types that it names. error: what it can fail with; empty if it cannot.
    fn program(&self, body: &str, error: &str) -> String {
        let named = self.named.borrow();
        let list: Vec<&str> = named.iter().map(String::as_str).collect();
        let crate_name = self.api.target.rust_crate;
        let mut code = match list[..] {
            [one] => format!("use {crate_name}::types::{one};\n"),
            _ => format!("use {crate_name}::types::{{{}}};\n", list.join(", ")),
        };
        if code.len() > COLUMNS {
            let entries: Vec<String> = named.iter().cloned().collect();
            code = format!("use {crate_name}::types::{{\n{}}};\n", filled("    ", &entries));
        }
        code.extend(["\n", body]);
        if !error.is_empty() {
            _ = writeln!(code, "# Ok::<(), {error}>(())");
        }
        code
    }

    /// Builds a value and shows it on the wire; none for types that people do not build, or not by `new`.
    fn sent(&self, name: &str) -> Option<String> {
        let mut members = self.samples.object(name);
        let mut more = members.clone();
        self.add_optional(name, &mut more);
        let built = match self.constructed(name, &more) {
            Some(built) => {
                members = more;
                built
            }
            None => self.constructed(name, &members)?,
        };
        for field in &self.structs.get(name)?.fields {
            // Also written if it is `None`.
            if is_boxed_option(&field.ty) {
                members.entry(wire_name(&field.attrs, field.ident.as_ref()?)).or_insert(Value::Null);
            }
        }
        let variable = variable(name);
        let statement = laid_out(&format!("let {variable} = {built};"))?;
        let json = written(&Value::Object(members), 0, COLUMNS - 4);
        let whole = format!("assert_eq!(serde_json::to_value(&{variable})?, serde_json::json!({json}));\n");
        let check = if whole.lines().count() == 1 && whole.len() <= COLUMNS {
            whole
        } else {
            format!(
                "let json = serde_json::json!({json});\nassert_eq!(serde_json::to_value(&{variable})?, json);\n"
            )
        };
        Some(statement + &check)
    }

    /// Reads a value and looks at a member.
    fn received(&self, name: &str) -> Option<String> {
        self.named.replace(BTreeSet::from([name.to_owned()]));
        let variable = variable(name);
        let mut members = self.samples.object(name);
        let check = self.check(&variable, name, &members, 0).or_else(|| {
            // An optional member that says more than the kind of the object.
            self.samples.fields(name).iter().filter(|field| !field.required).find_map(|field| {
                let mut more = members.clone();
                more.insert(field.name.clone(), self.samples.member(field));
                let check = self.check(&variable, name, &more, 0)?;
                members = more;
                Some(check)
            })
        });
        let check = check.or_else(|| {
            // A type of several kinds of objects, which has no schema of its own.
            self.structs.get(name)?.fields.iter().find_map(|field| {
                let wire = wire_name(&field.attrs, field.ident.as_ref()?);
                let mut more = members.clone();
                more.insert(wire.clone(), self.samples.example_text(&wire)?.into());
                let check = self.check(&variable, name, &more, 0)?;
                members = more;
                Some(check)
            })
        });
        let check = check.or_else(|| self.kind_check(&variable, name, &members))?;
        let json = written(&Value::Object(members), 0, COLUMNS);
        let statement = if json.contains('\n') || json.len() > 60 {
            format!("let json = r#\"{json}\"#;\nlet {variable}: {name} = serde_json::from_str(json)?;\n")
        } else {
            format!("let {variable}: {name} = serde_json::from_str(r#\"{json}\"#)?;\n")
        };
        Some(format!("{statement}{check}\n"))
    }

    /// Adds an optional member that is one value, if there is one: a number before others, as it needs no explanation.
    fn add_optional(&self, name: &str, members: &mut Map<String, Value>) {
        let Some(item) = self.structs.get(name) else { return };
        let simple = self.samples.fields(name).iter().filter(|field| !field.required && !field.deprecated);
        let mut candidates = simple.filter_map(|field| {
            let value = self.samples.member(field);
            let own = item.fields.iter().find(|own| {
                own.ident.as_ref().is_some_and(|ident| wire_name(&own.attrs, ident) == field.name)
            })?;
            let ty = inner(&own.ty).filter(|_| is(&own.ty, "Option"))?;
            let plain = matches!(value, Value::Number(_) | Value::String(_) | Value::Bool(_));
            (plain && self.expression(ty, &value, true).is_some()).then(|| (field.name.clone(), value))
        });
        if let Some((name, value)) = candidates.next() {
            members.insert(name, value);
        }
    }

    /// `Type::new(…).with_…(…)`; none if the type has no such methods, or a member has no expression.
    fn constructed(&self, name: &str, members: &Map<String, Value>) -> Option<String> {
        let item = self.structs.get(name)?;
        if !self.known.is_built(name) {
            return None;
        }
        let schema = self.api.schemas.get(name);
        if let Some(Kind::Object(object)) = schema.map(|schema| &schema.kind)
            && object.new_by_hand
        {
            let is_stated = schema?.example.as_ref()?.as_object() == Some(members);
            self.named.borrow_mut().extend(is_stated.then(|| name.to_owned()));
            return object.built.clone().filter(|_| is_stated);
        }
        self.named.borrow_mut().insert(name.to_owned());
        let (mut given, mut settings) = (Vec::new(), String::new());
        for field in &item.fields {
            let wire = field.ident.as_ref().map(|ident| wire_name(&field.attrs, ident))?;
            let spare = self.known.spare(field);
            let value = match members.get(&wire) {
                Some(value) => value,
                None if spare => continue,
                None => return None,
            };
            if spare && self.known.is_single(&field.ty) {
                continue;
            }
            let argument = self.argument(field, value)?;
            if spare {
                _ = write!(settings, ".{}({argument})", fields::setter(field));
            } else {
                given.push(argument);
            }
        }
        let start = if given.is_empty() {
            format!("{name}::default()")
        } else {
            format!("{name}::new({})", given.join(", "))
        };
        Some(start + &settings)
    }

    /// An argument of `new` or of a setter.
    fn argument(&self, field: &Field, value: &Value) -> Option<String> {
        let ty = TypeFacts::parameter_type(field);
        let into = self.known.takes_into(ty);
        self.expression(ty, value, into).or_else(|| {
            let json = written(value, 0, usize::MAX);
            (!into).then(|| format!("{FROM_JSON}{json}))?"))
        })
    }

    /// A value of a type; into: whether anything that becomes one will do.
    fn expression(&self, ty: &Type, value: &Value, into: bool) -> Option<String> {
        let name = last(ty)?;
        Some(match (name.as_str(), value) {
            ("String", Value::String(text)) if into => format!("{text:?}"),
            ("String", Value::String(text)) => format!("{text:?}.to_owned()"),
            ("bool", Value::Bool(value)) => value.to_string(),
            ("f64" | "f32", Value::Number(number)) => format!("{:?}", number.as_f64()?),
            ("i64" | "i32" | "u64" | "u32" | "i16" | "u16" | "i8" | "u8", Value::Number(number)) => {
                number.to_string()
            }
            ("Box", _) if into => self.expression(inner(ty)?, value, false)?,
            ("Box", _) => format!("Box::new({})", self.expression(inner(ty)?, value, false)?),
            ("Option", _) => format!("Some({})", self.expression(inner(ty)?, value, false)?),
            ("Vec", Value::Array(items)) => {
                let item = inner(ty)?;
                let items: Option<Vec<String>> =
                    items.iter().map(|value| self.expression(item, value, false)).collect();
                format!("vec![{}]", items?.join(", "))
            }
            ("IndexMap", Value::Object(members)) => {
                let value = arguments(ty).nth(1)?;
                let entry = |(key, held)| {
                    Some(format!("({key:?}.to_owned(), {})", self.expression(value, held, false)?))
                };
                let entries: Option<Vec<String>> = members.iter().map(entry).collect();
                format!("[{}].into()", entries?.join(", "))
            }
            (FILE_PART, Value::String(name)) => {
                format!("{}::{FILE_PART}::new({name:?}, \"…\")", self.api.target.rust_runtime_crate())
            }
            ("Value", Value::String(text)) if into => format!("{text:?}"),
            ("Value", _) => format!("serde_json::json!({})", written(value, 0, usize::MAX)),
            (name, Value::String(text)) if self.closed.contains_key(name) => {
                let (_, variant) = self.closed[name].iter().find(|(word, _)| word == text)?;
                self.named.borrow_mut().insert(name.to_owned());
                format!("{name}::{variant}")
            }
            (name, Value::String(text)) if self.open.contains_key(name) => {
                self.named.borrow_mut().insert(name.to_owned());
                let known = self.open[name].contains(text);
                let word =
                    if known { format!("{name}::{}", names::constant(text)) } else { format!("{text:?}") };
                if into { word } else { format!("{name}::from({word})") }
            }
            (name, _) if self.unions.contains_key(name) => self.variant(name, value, into)?,
            (name, Value::Object(members)) => self.constructed(name, members)?,
            _ => return None,
        })
    }

    /// A value of a union.
    fn variant(&self, name: &str, value: &Value, into: bool) -> Option<String> {
        let expression = self.unions[name].iter().find_map(|(_, variant)| {
            let fits = match value {
                Value::String(_) => is(variant, "String"),
                Value::Array(_) => is(variant, "Vec"),
                _ => !is(variant, "String") && !is(variant, "Vec"),
            };
            self.expression(variant, value, is(variant, "String")).filter(|_| fits)
        })?;
        if into {
            return Some(expression);
        }
        self.named.borrow_mut().insert(name.to_owned());
        Some(format!("{name}::from({expression})"))
    }

    /// Each variant of a union, and the text that is written for the first.
    fn variants(&self, name: &str, variants: &[(String, Type)]) -> Option<String> {
        let mut code = String::new();
        for (_, variant) in variants {
            let value = self.sample(variant, name)?;
            let Some(expression) = self.expression(variant, &value, is(variant, "String")) else { continue };
            let statement = laid_out(&format!("let {} = {name}::from({expression});", variable(name)))?;
            let json = written(&value, 0, COLUMNS - 30);
            let json = if value.is_string() { json } else { format!("serde_json::json!({json})") };
            _ = writeln!(code, "{statement}assert_eq!(serde_json::to_value(&{})?, {json});", variable(name));
        }
        (!code.is_empty()).then_some(code)
    }

    /// A value of a type that Rust spells, in the union `of`.
    fn sample(&self, ty: &Type, of: &str) -> Option<Value> {
        let name = last(ty)?;
        Some(match name.as_str() {
            "String" => match self.samples.nested(of) {
                Some(Value::String(text)) => Value::String(text),
                _ => Value::String(self.samples.text(&variable(of))),
            },
            "Vec" => Value::Array(vec![self.sample(inner(ty)?, of)?]),
            "Box" => self.sample(inner(ty)?, of)?,
            "i64" => 1.into(),
            "f64" => 0.5.into(),
            "bool" => true.into(),
            name if self.structs.contains_key(name) => Value::Object(self.samples.object(name)),
            _ => return None,
        })
    }

    /// A statement about the first member that says something: a text or a number before a word, a word before a list,
    /// and all before what is within a member.
    fn check(&self, holder: &str, name: &str, members: &Map<String, Value>, depth: usize) -> Option<String> {
        let item = self.structs.get(name)?;
        // What is the same in all objects of the type.
        let constant: Vec<&str> = self
            .samples
            .fields(name)
            .iter()
            .filter(|field| matches!(field.ty, model::Type::Const(_)))
            .map(|field| field.name.as_str())
            .collect();
        let fields = Self::held(holder, item, members);
        let fields: Vec<&FieldValue<'_>> =
            fields.iter().filter(|held| !constant.contains(&held.wire.as_str())).collect();
        let plain = fields.iter().find_map(|held| plain_check(held));
        let word = || fields.iter().find_map(|held| self.word(held));
        let list = || {
            fields.iter().find_map(|FieldValue { place, ty, value, .. }| match value {
                Value::Array(items) if is(ty, "Vec") && items.is_empty() => {
                    Some(format!("assert!({place}.is_empty());"))
                }
                Value::Array(items) if is(ty, "Vec") => {
                    Some(format!("assert_eq!({place}.len(), {});", items.len()))
                }
                Value::Array(items) if is(ty, "Option") => {
                    Some(format!("assert_eq!({place}.map(|list| list.len()), Some({}));", items.len()))
                }
                _ => None,
            })
        };
        let within = || {
            fields.iter().filter(|_| depth < 3).find_map(|FieldValue { place, ty, value, .. }| {
                self.check(place, &last(ty)?, value.as_object()?, depth + 1)
            })
        };
        plain.or_else(word).or_else(list).or_else(within)
    }

    /// A statement about the first member, whatever it is.
    fn kind_check(&self, holder: &str, name: &str, members: &Map<String, Value>) -> Option<String> {
        let held = Self::held(holder, self.structs.get(name)?, members);
        held.iter().find_map(|held| plain_check(held).or_else(|| self.word(held)))
    }

    /// The fields of a value that have one in its JSON.
    fn held<'v>(holder: &str, item: &'a ItemStruct, members: &'v Map<String, Value>) -> Vec<FieldValue<'v>>
    where
        'a: 'v,
    {
        let held = item.fields.iter().filter_map(|field| {
            let wire = wire_name(&field.attrs, field.ident.as_ref()?);
            let value = members.get(&wire)?;
            Some(FieldValue {
                place: format!("{holder}.{}", fields::name(field)),
                wire,
                ty: &field.ty,
                value,
            })
        });
        held.collect()
    }

    /// A statement about a member that is a value of an enum.
    fn word(&self, FieldValue { place, ty, value, .. }: &FieldValue<'_>) -> Option<String> {
        let optional = is(ty, "Option");
        let name = last(if optional { inner(ty)? } else { ty })?;
        let text = value.as_str()?;
        let word = if let Some(values) = self.closed.get(&name) {
            let (_, variant) = values.iter().find(|(value, _)| value == text)?;
            self.named.borrow_mut().insert(name.clone());
            format!("{name}::{variant}")
        } else if self.open.contains_key(&name) {
            return Some(if optional {
                format!("assert_eq!({place}, Some({text:?}.into()));")
            } else {
                format!("assert_eq!({place}.as_str(), {text:?});")
            });
        } else {
            return None;
        };
        let word = if optional { format!("Some({word})") } else { word };
        Some(format!("assert_eq!({place}, {word});"))
    }
}

/// A statement about a member that is a text, a number or a switch.
fn plain_check(FieldValue { place, ty, value, .. }: &FieldValue<'_>) -> Option<String> {
    let optional = is(ty, "Option");
    let name = last(if optional { inner(ty)? } else { ty })?;
    let expression = match (name.as_str(), value) {
        ("String", Value::String(text)) if optional => {
            return Some(format!("assert_eq!({place}.as_deref(), Some({text:?}));"));
        }
        ("String", Value::String(text)) => format!("{text:?}"),
        ("bool", Value::Bool(true)) if !optional => return Some(format!("assert!({place});")),
        ("bool", Value::Bool(false)) if !optional => return Some(format!("assert!(!{place});")),
        ("bool", Value::Bool(value)) => value.to_string(),
        ("f64", Value::Number(number)) => format!("{:?}", number.as_f64()?),
        ("i64" | "i32" | "u64" | "u32", Value::Number(number)) => number.to_string(),
        _ => return None,
    };
    let expression = if optional { format!("Some({expression})") } else { expression };
    Some(format!("assert_eq!({place}, {expression});"))
}

/// A closed enum: from a value to its text and back.
fn closed(name: &str, values: &[(String, String)]) -> Option<String> {
    let ((first, variant), (other, of_other)) = (values.first()?, values.last()?);
    Some(format!(
        "assert_eq!({name}::{variant}.as_str(), {first:?});\nassert_eq!({other:?}.parse::<{name}>()?, {name}::{of_other});\n"
    ))
}

/// An open enum: a value that is known, and one that is not.
fn open(name: &str, values: &[String]) -> Option<String> {
    let word = values.first()?;
    let variable = variable(name);
    Some(format!(
        "let {variable} = {name}::from({word:?});\nassert_eq!({variable}.as_str(), {name}::{});\n\
         assert_eq!({name}::from(\"new\").as_str(), \"new\"); // what a later server may say\n",
        names::constant(word)
    ))
}

/// The last word of a type's name, as a variable.
fn variable(name: &str) -> String {
    let snake = names::snake(name);
    let word = snake.rsplit('_').next().unwrap_or_default();
    let is_name = syn::parse_str::<syn::Ident>(word).is_ok();
    if is_name { word.to_owned() } else { "value".to_owned() }
}

/// A statement on as many lines as it needs.
fn laid_out(statement: &str) -> Option<String> {
    if statement.len() <= COLUMNS {
        return Some(format!("{statement}\n"));
    }
    if let Some((start, json)) = statement.strip_suffix("))?;").and_then(|start| start.split_once(FROM_JSON))
    {
        let value = serde_json::from_str(json).ok()?;
        return Some(format!("{start}{FROM_JSON}{}))?;\n", broken(&value, 0, COLUMNS - 30)));
    }
    if let Some(lines) = chained(statement) {
        return Some(lines);
    }
    let whole = syn::parse_file(&format!("fn example() {{ {statement} }}")).ok()?;
    // The members of JSON are tokens to it.
    let text = prettyplease::unparse(&whole).replace("\" : ", "\": ").replace(") ?", ")?");
    let text = rejoined(&text);
    let body = text.strip_prefix("fn example() {\n")?.strip_suffix("}\n")?;
    // prettyplease indents arguments once more if a setter follows.
    let deeper = body.lines().any(|line| line == "        )");
    let lines = body.lines().enumerate().flat_map(|(index, line)| {
        let line = line.strip_prefix("    ").unwrap_or(line);
        [if deeper && index > 0 { line.strip_prefix("    ").unwrap_or(line) } else { line }, "\n"]
    });
    Some(lines.collect())
}

/// A statement with each setter on a line of its own, as rustfmt does it; none if one of the lines is too long.
fn chained(statement: &str) -> Option<String> {
    let is_outer = |at: &usize| {
        let count = |bracket: &[char]| statement[..*at].matches(bracket).count();
        count(&['(', '[']) == count(&[')', ']'])
    };
    let mut ends: Vec<usize> = statement.match_indices(".with_").map(|(at, _)| at).filter(is_outer).collect();
    let first = *ends.first()?;
    ends.push(statement.len());
    let mut lines = vec![statement[..first].to_owned()];
    lines.extend(ends.windows(2).map(|ends| format!("    {}", &statement[ends[0]..ends[1]])));
    lines.iter().all(|line| line.len() <= COLUMNS).then(|| lines.join("\n") + "\n")
}

/// Code without lines that begin with the colon of a member of JSON.
fn rejoined(code: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in code.lines() {
        match (lines.last_mut(), line.trim_start().strip_prefix(": ")) {
            (Some(last), Some(rest)) => {
                last.push(':');
                let indent = line.len() - line.trim_start().len();
                lines.push(" ".repeat(indent) + rest);
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines.join("\n") + "\n"
}
