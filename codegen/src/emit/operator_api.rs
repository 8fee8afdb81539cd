//! Emits what follows from the operator API (`spec/admin.yaml`): the gateway's routes and operations, the console's types, and the
//! reference page.

use std::fmt::Write as _;

use anyhow::Result;

use super::docs::{definition, field_table, link, parameter_table};
use super::{Input, file, operations, routes, typescript};
use crate::model::{Api, File, Operation, Type};

/// The module of routes and operations, the console's types, `docs/reference/admin.md`.
pub(super) fn emit(input: &Input<'_>) -> Result<Vec<File>> {
    let api = input.api;
    let rust = |name: &str, body: &str| file(format!("{}/{name}", api.target.rust_api), &api.source, body);
    let module = "//! The operator API: its operations, its routes, and the service that answers them.\n\n\
                  pub mod operations;\npub(crate) mod routes;\n";
    Ok(vec![
        operations::table(api),
        rust("mod.rs", module),
        rust("routes.rs", &routes(api)),
        typescript::types(api),
        file("docs/reference/admin.md", &api.source, &page(api)),
    ])
}

/// The table of routes, and a trait without defaults: the compiler asks for each operation.
fn routes(api: &Api) -> String {
    let mut code = "//! The paths of all operations, and the service that answers them.\n\n\
         use std::future::Future;\n\nuse super::operations;\n\
         use crate::wire::{ApiError, OperatorCall, Response, Route, Segment};\n"
        .to_owned();
    routes::table(&mut code, api);
    code.push_str("\n/// What answers the operations.\npub(crate) trait Service: Send + Sync {\n");
    let methods = api.operations.iter().map(|operation| {
        format!(
            "    /// {}: `{} {}`.\n    fn {}(&self, call: OperatorCall) -> impl Future<Output = Result<Response, ApiError>> + Send;\n",
            operation.summary,
            operation.method.upper(),
            operation.path,
            operation.id,
        )
    });
    code.push_str(&methods.collect::<Vec<_>>().join("\n"));
    code.push_str(
        "}\n\n/// Passes a call to the method of its operation; `None` if the operation is of another API.\n\
         pub(crate) async fn dispatch(service: &impl Service, call: OperatorCall) -> Option<Result<Response, ApiError>> {\n    \
         Some(match call.operation.id {\n",
    );
    for operation in &api.operations {
        _ = writeln!(code, "        {:?} => service.{}(call).await,", operation.id, operation.id);
    }
    code.push_str("        _ => return None,\n    })\n}\n");
    code
}

fn page(api: &Api) -> String {
    let mut out = format!("# {}\n\n{}\n\n| HTTP | What it does |\n|---|---|\n", api.title, api.description);
    for operation in &api.operations {
        _ = writeln!(
            out,
            "| [`{} {}`](#{}) | {} |",
            operation.method.upper(),
            operation.path,
            anchor(operation),
            operation.summary
        );
    }
    for operation in &api.operations {
        out.push_str(&section(api, operation));
    }
    out.push_str("\n## Types\n");
    for schema in api.schemas.values() {
        _ = write!(out, "\n### {}\n\n{}\n\n{}", schema.name, schema.description, definition(schema));
    }
    // All types are on this page.
    out.replace("](types.md#", "](#")
}

/// The anchor of an operation's heading, which is its summary.
fn anchor(operation: &Operation) -> String {
    operation.summary.to_lowercase().replace(' ', "-")
}

fn section(api: &Api, operation: &Operation) -> String {
    let mut out = format!(
        "\n## {}\n\n`{} {}`\n\n{}\n\n",
        operation.summary,
        operation.method.upper(),
        operation.path,
        operation.description
    );
    if let Some(request) = &operation.request {
        _ = writeln!(out, "- Request: {}", link(&Type::Ref(request.clone())));
    }
    if let Some(response) = &operation.response {
        _ = writeln!(out, "- Response: {}", link(response));
    }
    out.push_str(&parameter_table(operation));
    let fields = api.request_fields(operation);
    if !fields.is_empty() {
        out.push('\n');
        out.push_str(&field_table(fields, &operation.source));
    }
    out
}
