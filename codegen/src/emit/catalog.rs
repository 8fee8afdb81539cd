//! Emits the model catalog as Rust data: a struct for each kind of row that its schema has, and the rows.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use indexmap::IndexMap;
use serde_json::Value;

use super::{Input, SHOWN_ROWS, comment, file, origin, rows_example, shown_code};
use crate::model::{Field, File, Kind, Object, Schema, Type};
use crate::names;

/// `core/src/api/generated/catalog.rs`.
pub(super) fn emit(input: &Input<'_>) -> Result<Vec<File>> {
    let api = input.api;
    let types = CatalogTypes { schemas: &api.catalog_types };
    let catalog = types.schemas.values().next().context("the catalog has a type")?;
    let data = serde_json::to_value(&api.catalog)?;
    let (mut structs, mut tables, mut constants) = (String::new(), String::new(), String::new());
    for field in &object(catalog)?.fields {
        let data = &data[&field.name];
        match types.resolved(&field.ty) {
            Type::Array(row) => {
                let Type::Ref(row) = &**row else { bail!("{}: rows are of a named type", field.name) };
                structs.push_str(&types.structure(&types.schemas[row], field, data)?);
                tables.push_str(&types.table(field, &types.schemas[row], data)?);
            }
            Type::Ref(name) => constants.push_str(&types.constants(object(&types.schemas[name])?, data)),
            // `$schema` and `$comment`, for readers of the file.
            _ => {}
        }
    }
    let code =
        format!("//! Model families, models and their limits, as data.\n{structs}{tables}\n{constants}");
    Ok(vec![file("core/src/api/generated/catalog.rs", "spec/catalog.json", &code)])
}

struct CatalogTypes<'a> {
    schemas: &'a IndexMap<String, Schema>,
}

impl<'a> CatalogTypes<'a> {
    /// What a type is once its aliases are followed; an object keeps its name.
    fn resolved<'t>(&self, ty: &'t Type) -> &'t Type
    where
        'a: 't,
    {
        match ty {
            Type::Ref(name) => match &self.schemas[name].kind {
                Kind::Alias(ty) => self.resolved(ty),
                Kind::Enum(_) => &Type::String,
                Kind::Object(_) | Kind::Union(_) => ty,
            },
            ty => ty,
        }
    }

    fn structure(&self, schema: &Schema, table: &Field, data: &Value) -> Result<String> {
        let mut code = format!(
            "\n{}{}#[derive(Debug, Clone, Copy, PartialEq, Eq)]\n#[non_exhaustive]\npub struct {} {{\n",
            comment(&schema.description, "/// "),
            self.row_example(schema, table, &data[0])?,
            schema.name
        );
        for field in &object(schema)?.fields {
            let ty = self.expression(&field.ty).with_context(|| format!("{}.{}", schema.name, field.name))?;
            code.push_str(&comment(&field.description, "    /// "));
            _ = writeln!(code, "    pub {}: {ty},", member(field));
        }
        Ok(code + "}\n")
    }

    /// Finds a row of the table by its first member, and looks at the next one that holds something.
    fn row_example(&self, schema: &Schema, table: &Field, row: &Value) -> Result<String> {
        let plain = |field: &&Field| !row[&field.name].is_null() && !row[&field.name].is_array();
        let mut stated = object(schema)?.fields.iter().filter(plain);
        let (Some(key), Some(other)) = (stated.next(), stated.next()) else { return Ok(String::new()) };
        let table = names::constant(&table.name);
        let variable = variable(schema);
        let of = |field: &Field| (member(field), self.value(&field.ty, &row[&field.name]));
        let ((key, known), (other, value)) = (of(key), of(other));
        let code = format!(
            "use gatewright::catalog::{table};\n\n\
             let {variable} = {table}.iter().find(|{variable}| {variable}.{key} == {known}).unwrap();\n\
             assert_eq!({variable}.{other}, {value});\n"
        );
        Ok(shown_code(&code, "/// "))
    }

    fn expression(&self, ty: &Type) -> Result<String> {
        Ok(match self.resolved(ty) {
            Type::String | Type::Enum(_) => "&'static str".to_owned(),
            Type::Integer => "u32".to_owned(),
            Type::Boolean => "bool".to_owned(),
            Type::Array(item) => format!("&'static [{}]", self.expression(item)?),
            Type::Nullable(inner) => format!("Option<{}>", self.expression(inner)?),
            other => {
                bail!("the catalog has no data of type {other:?}; teach codegen/src/emit/catalog.rs")
            }
        })
    }

    fn table(&self, field: &Field, row: &Schema, data: &Value) -> Result<String> {
        let fields = &object(row)?.fields;
        let mut code = format!(
            "\n{}{}pub static {}: &[{}] = &[\n",
            comment(&field.description, "/// "),
            self.table_example(field, row, data)?,
            names::constant(&field.name),
            row.name
        );
        for entry in data.as_array().into_iter().flatten() {
            _ = writeln!(code, "    {} {{", row.name);
            for field in fields {
                let value = self.value(&field.ty, &entry[&field.name]);
                _ = writeln!(code, "        {}: {value},", member(field));
            }
            code.push_str("    },\n");
        }
        Ok(code + "];\n")
    }

    /// Lists the first member of the first rows.
    fn table_example(&self, table: &Field, row: &Schema, data: &Value) -> Result<String> {
        let Some(key) = object(row)?.fields.first() else { return Ok(String::new()) };
        let rows = data.as_array().into_iter().flatten().take(SHOWN_ROWS);
        let values: Vec<String> = rows.map(|row| self.value(&key.ty, &row[&key.name])).collect();
        let table = format!("gatewright::catalog::{}", names::constant(&table.name));
        Ok(rows_example(&table, &variable(row), &member(key), &values))
    }

    fn value(&self, ty: &Type, value: &Value) -> String {
        match (self.resolved(ty), value) {
            (Type::Nullable(_), Value::Null) => "None".to_owned(),
            (Type::Nullable(inner), value) => format!("Some({})", self.value(inner, value)),
            (Type::Array(item), Value::Array(items)) => {
                let items: Vec<_> = items.iter().map(|value| self.value(item, value)).collect();
                format!("&[{}]", items.join(", "))
            }
            (_, Value::String(text)) => format!("{text:?}"),
            (_, value) => value.to_string(),
        }
    }

    /// The numbers of an object, each with the section that its `x-source` has for it.
    fn constants(&self, object: &Object, data: &Value) -> String {
        let mut code = String::new();
        for field in object.fields.iter().filter(|field| *self.resolved(&field.ty) == Type::Integer) {
            let source = data["x-source"][&field.name].as_str().unwrap_or_default();
            let docs = format!("{}. {}", field.description.trim_end_matches('.'), origin(source));
            let (name, value) = (names::constant(&field.name), &data[&field.name]);
            code.push_str(&comment(&docs, "/// "));
            code.push_str(&number_example(&name, value));
            _ = writeln!(code, "pub const {name}: u32 = {value};");
        }
        code
    }
}

/// What an example calls a row: the last word of its type.
fn variable(row: &Schema) -> String {
    let name = names::snake(&row.name);
    name.rsplit('_').next().unwrap_or_default().to_owned()
}

/// The value of a number; one whose name says that it counts seconds is a time.
fn number_example(name: &str, value: &Value) -> String {
    let path = format!("gatewright::catalog::{name}");
    let code = if name.ends_with("_S") {
        format!(
            "use std::time::Duration;\n\nuse {path};\n\nassert_eq!({name}, {value});\n\
             let time = Duration::from_secs({name}.into());\n"
        )
    } else {
        format!("assert_eq!({path}, {value});\n")
    };
    shown_code(&code, "/// ")
}

fn object(schema: &Schema) -> Result<&Object> {
    match &schema.kind {
        Kind::Object(object) => Ok(object),
        _ => bail!("spec/catalog.schema.json: {} is no object; make it one", schema.name),
    }
}

/// What a member is called: those for readers of the specification lose their `x-`.
fn member(field: &Field) -> String {
    names::rust(field.name.trim_start_matches("x-"))
}
