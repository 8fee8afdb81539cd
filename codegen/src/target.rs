//! The places of generated code, and its names for the hand-written code that it uses: for this workspace's clients, or
//! for clients that the generator makes of another specification.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;

/// The folders of generated code, from the repository's root, and its imports from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Target {
    /// Folder of the Rust modules that describe the API: `types`, `operations`.
    pub rust_api: &'static str,
    /// Path of their parent module, from the client's modules.
    pub rust_api_module: &'static str,
    /// The crate, as those who use it call it.
    pub rust_crate: &'static str,
    /// Folder of the Rust modules that call it: `resources`.
    pub rust_client: &'static str,
    /// The module of another crate with everything that they use; none if they are part of that crate.
    pub rust_runtime: Option<&'static str>,
    /// Folder of the Python modules.
    pub python: &'static str,
    /// The name of their Python package.
    pub python_package: &'static str,
    /// Folder of the TypeScript modules.
    pub node: &'static str,
    /// The TypeScript module of another package with everything that they use; none if they are part of that package.
    pub node_runtime: Option<&'static str>,
}

/// The clients of this workspace.
pub(crate) const GATEWRIGHT: Target = Target {
    rust_api: "core/src/api/generated",
    rust_api_module: "crate::api",
    rust_crate: "gatewright",
    rust_client: "core/src/client/generated",
    rust_runtime: None,
    python: "bindings-python/python/gatewright/generated",
    python_package: "gatewright.generated",
    node: "bindings-node/src-ts/generated",
    node_runtime: None,
};

/// The operator API, which no client has: the gateway serves it, and the program and the console call it.
pub(crate) const OPERATOR_API: Target = Target {
    rust_api: "gateway/src/generated/admin",
    rust_api_module: "super",
    rust_crate: "gatewright_gateway::admin",
    rust_client: "gateway/src/generated/admin",
    rust_runtime: Some("gatewright::runtime"),
    python: "",
    python_package: "",
    node: "console/app/generated",
    node_runtime: None,
};

/// The modules of this workspace's own crate that generated Rust uses; `runtime.rs` exports the same names to others.
const OWN: &[(&str, &str)] = &[
    ("Bytes", "bytes"),
    ("Chunk", "crate::api::chunk"),
    ("Client", "crate::client"),
    ("Conversation", "crate::api::operation"),
    ("Error", "crate::wire::error"),
    ("ErrorStyle", "crate::api::operation"),
    ("EventStream", "crate::stream"),
    ("FilePart", "crate"),
    ("FormMember", "crate::api::operation"),
    ("Method", "crate::api::operation"),
    ("ModelKind", "crate::api::operation"),
    ("Operation", "crate::api::operation"),
    ("Protocol", "crate::api::operation"),
    ("Response", "crate::transport::response"),
    ("ResponseBody", "crate::api::operation"),
    ("StreamMode", "crate::api::operation"),
    ("TextForm", "crate::api::operation"),
    ("TypedCall", "crate::client"),
    ("Varying", "crate::api::chunk"),
];

/// What generated TypeScript uses of this workspace's own package: the name, its module from the folder of generated code,
/// and whether it is a type. `runtime.ts` exports the same to others.
pub(crate) const OWN_NODE: &[(&str, &str, bool)] = &[
    ("ApiPromise", "../promise", false),
    ("CallSite", "../failure", false),
    ("ClientOptions", "./options", true),
    ("Connection", "../connection", false),
    ("FileArgument", "../file-argument", true),
    ("Operation", "../operation", true),
    ("RequestOptions", "../resource", true),
    ("Resource", "../resource", false),
    ("Stream", "../stream", false),
    ("engine", "../engine", false),
];

impl Target {
    /// Reads one from a JSON file. Its text stays for as long as the process, which generates once.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        serde_json::from_str(text.leak())
            .with_context(|| format!("{} does not describe a target", file.display()))
    }

    /// Packages of their own for clients of another specification, all of one name.
    pub(crate) fn of_package(name: &str) -> Self {
        let name: &'static str = name.to_owned().leak();
        Self {
            rust_api: "rust/src",
            rust_api_module: "crate",
            rust_crate: name,
            rust_client: "rust/src",
            rust_runtime: Some("::gatewright::runtime"),
            python: format!("python/{name}").leak(),
            python_package: name,
            node: "node/src",
            node_runtime: Some("gatewright/runtime"),
        }
    }

    /// Whether the Rust modules are part of the crate that they use.
    pub(crate) fn is_own_crate(&self) -> bool {
        self.rust_runtime.is_none()
    }

    /// The crate of the client that the Rust modules use, as those who use both call it.
    pub(crate) fn rust_runtime_crate(&self) -> &'static str {
        if self.is_own_crate() { self.rust_crate } else { GATEWRIGHT.rust_crate }
    }

    /// The module of something that generated Rust uses.
    fn rust_module(&self, name: &str) -> &'static str {
        let own = || OWN.iter().find(|(known, _)| *known == name).map(|(_, module)| *module);
        self.rust_runtime.or_else(own).expect("the list has what emitters use")
    }

    /// The path of something that generated Rust uses.
    pub(crate) fn rust_path(&self, name: &str) -> String {
        format!("{}::{name}", self.rust_module(name))
    }

    /// The TypeScript module of something that generated code uses.
    pub(crate) fn node_module(&self, name: &str) -> &'static str {
        let own = || OWN_NODE.iter().find(|(known, ..)| *known == name).map(|(_, module, _)| *module);
        self.node_runtime.or_else(own).expect("the list has what emitters use")
    }

    /// Several things of one module, as they follow `use`.
    pub(crate) fn rust_list(&self, names: &[&str]) -> String {
        format!("{}::{{{}}}", self.rust_module(names[0]), names.join(", "))
    }
}
