//! Emits the Rust facade: a struct per resource, a method per operation, thin over the generated client.

use std::fmt::Write as _;

use super::rust::Signatures;
use super::{comment, header};
use crate::codegen::model::{Api, File, Operation, Resource, Stream, Type};
use crate::codegen::names;

/// `core/src/generated/resources.rs`.
pub(crate) fn emit(api: &Api, signatures: &Signatures) -> Vec<File> {
    let mut code = format!(
        "// {}\n//! The places on the client and their methods. Each is thin: the generated client builds the request and\n\
         //! reads the answer, `transport.rs` does what lies between.\n\n\
         use super::{{operations, types}};\n\
         use crate::client::Client;\nuse crate::error::Error;\nuse crate::response::Response;\nuse crate::stream::EventStream;\n",
        header("spec/openapi.yaml")
    );
    let root = api.resources();
    code.push_str("\nimpl Client {\n");
    accessors(&mut code, &root, "self");
    code.push_str("}\n");
    for child in &root.children {
        resource(&mut code, signatures, child);
    }
    vec![File { path: "core/src/generated/resources.rs".to_owned(), contents: code }]
}

fn type_name(resource: &Resource<'_>) -> String {
    names::pascal(&resource.path.join("_"))
}

/// Methods that lead to the resources below this one.
fn accessors(code: &mut String, parent: &Resource<'_>, client: &str) {
    for (index, child) in parent.children.iter().enumerate() {
        let name = child.path.last().map(String::as_str).unwrap_or_default();
        let blank = if index == 0 && parent.path.is_empty() { "" } else { "\n" };
        let ty = type_name(child);
        let place = child.path.join(".");
        _ = write!(
            code,
            "{blank}    /// The operations of `{place}`.\n    pub fn {name}(&self) -> {ty}<'_> {{\n        {ty} {{ client: {client} }}\n    }}\n",
        );
    }
}

fn resource(code: &mut String, signatures: &Signatures, node: &Resource<'_>) {
    let ty = type_name(node);
    let place = node.path.join(".");
    _ = write!(
        code,
        "\n/// The operations of `{place}`.\n#[derive(Debug, Clone, Copy)]\npub struct {ty}<'c> {{\n    pub(crate) client: &'c Client,\n}}\n\nimpl {ty}<'_> {{\n",
    );
    let mut methods = Vec::new();
    let mut stream_name = Some("stream".to_owned());
    for operation in &node.operations {
        if operation.response.is_some() {
            methods.push(method(signatures, operation));
        }
        if let Some(stream) = &operation.stream {
            let name = if operation.always_streams() {
                operation.name.clone()
            } else {
                // The first to stream is plainly `stream`; a second needs its own name before it.
                stream_name.take().unwrap_or_else(|| format!("{}_stream", operation.name))
            };
            methods.push(streaming(signatures, operation, stream, &name));
        }
    }
    code.push_str(&methods.join("\n"));
    if methods.is_empty() {
        // Only a way to the places below it: no blank line before the first accessor.
        let mut below = String::new();
        accessors(&mut below, node, "self.client");
        code.push_str(below.trim_start_matches('\n'));
    } else {
        accessors(code, node, "self.client");
    }
    code.push_str("}\n");
    for child in &node.children {
        resource(code, signatures, child);
    }
}

/// The method for the JSON form.
fn method(signatures: &Signatures, operation: &Operation) -> String {
    let function = &signatures[&operation.id];
    let mut code = documentation(operation, "");
    _ = write!(
        code,
        "    pub async fn {}(&self{}) -> Result<Response<{}>, Error> {{\n\
         \x20       let call = self.client.typed_call(&operations::{}, &[{}])?;\n\
         \x20       let answer = call.generated().{}({}).await;\n\
         \x20       call.value(answer).await\n    }}\n",
        operation.name,
        function.parameters(),
        function.answer,
        names::constant(&operation.id),
        path_values(operation),
        operation.id,
        function.arguments(),
    );
    code
}

/// The method for the streamed form. The transport turns the body's switch, if there is one.
fn streaming(signatures: &Signatures, operation: &Operation, stream: &Stream, name: &str) -> String {
    let generated =
        if operation.response.is_some() { format!("{}_stream", operation.id) } else { operation.id.clone() };
    let function = &signatures[&generated];
    let item = match &stream.item {
        Type::Ref(item) => format!("types::{item}"),
        _ => "::serde_json::Value".to_owned(),
    };
    let mut code = documentation(operation, " The answer is streamed.");
    _ = write!(
        code,
        "    pub async fn {name}(&self{}) -> Result<EventStream<{item}>, Error> {{\n\
         \x20       let call = self.client.typed_call(&operations::{}, &[{}])?;\n\
         \x20       let answer = call.generated().{generated}({}).await;\n\
         \x20       call.stream(answer).await\n    }}\n",
        function.parameters(),
        names::constant(&operation.id),
        path_values(operation),
        function.arguments(),
    );
    code
}

/// Name and value of each path parameter, for the transport to refuse what must not be in a path.
fn path_values(operation: &Operation) -> String {
    let values = operation.path_parameters().map(|p| format!("({:?}, {})", p.name, names::snake(&p.name)));
    values.collect::<Vec<_>>().join(", ")
}

fn documentation(operation: &Operation, note: &str) -> String {
    let text = format!("{}.{note}\n\n{}", operation.summary, operation.description);
    let mut code = comment(&escaped(&text), "    /// ");
    for parameter in operation.path_parameters().chain(operation.free_parameters()) {
        let text = format!("{}: {}", names::snake(&parameter.name), parameter.description);
        code.push_str("    ///\n");
        code.push_str(&comment(&escaped(&text), "    /// "));
    }
    _ = write!(code, "    ///\n    /// Source: {}.\n", operation.source);
    code
}

/// Text of the specification as Markdown: to rustdoc, brackets such as those of `[DONE]` are a link.
fn escaped(text: &str) -> String {
    text.replace('[', "\\[").replace(']', "\\]")
}
