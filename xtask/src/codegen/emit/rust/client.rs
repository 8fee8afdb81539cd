//! Emits the client below the facade, from the output of progenitor.

use anyhow::Result;
use indexmap::IndexMap;
use quote::ToTokens as _;
use syn::{ImplItem, Item, parse_quote};

use super::SOURCE;
use crate::codegen::emit::header;
use crate::codegen::home::Home;
use crate::codegen::model::File;

/// The generated client's functions by name: the facade has their signatures.
pub(crate) type Signatures = IndexMap<String, Signature>;

/// The signature of a function of the generated client.
#[derive(Debug)]
pub(crate) struct Signature {
    /// The function's name.
    pub name: String,
    /// Name and type of each parameter.
    pub parameters: Vec<(String, String)>,
    /// The type inside `ResponseValue`.
    pub answer: String,
}

impl Signature {
    /// The parameters as they follow `&self` in a declaration.
    pub(crate) fn parameters(&self) -> String {
        self.parameters.iter().flat_map(|(name, ty)| [", ", name, ": ", ty]).collect()
    }

    /// The parameters as arguments.
    pub(crate) fn arguments(&self) -> String {
        self.parameters.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// `client.rs`, from progenitor's output, and the signatures of its functions.
pub(super) fn emit(home: &Home, mut file: syn::File) -> Result<(File, Signatures)> {
    file.items.retain(
        |item| !matches!(item, Item::Mod(module) if module.ident == "types" || module.ident == "prelude"),
    );
    let mut signatures = Signatures::new();
    for item in &mut file.items {
        if let Item::Impl(block) = item {
            for item in &block.items {
                if let ImplItem::Fn(function) = item
                    && let Some(signature) = signature(&function.sig)
                {
                    signatures.insert(function.sig.ident.to_string(), signature);
                }
            }
            // `new` sets a total timeout of 15 s, which ends streams; only `new_with_client` is kept.
            block.items.retain(|item| !matches!(item, ImplItem::Fn(function) if function.sig.ident == "new"));
        }
    }
    let types: syn::Path = syn::parse_str(&format!("{}::types", home.rust_api_module))?;
    file.items.insert(
        0,
        parse_quote!(
            use #types;
        ),
    );
    file.items.extend(hooks(home)?);
    file.attrs = vec![parse_quote!(#![allow(
        clippy::all,
        clippy::pedantic,
        clippy::unwrap_used,
        missing_docs,
        unreachable_pub,
        unused_imports,
        reason = "written by progenitor, for progenitor's style to decide"
    )])];
    let doc = "//! The client underneath: builds requests and reads answers. Its hooks hand everything between to the call's\n\
               //! context.\n";
    let contents = format!("// {}\n{doc}\n{}", header(SOURCE), prettyplease::unparse(&file));
    Ok((File { path: format!("{}/client.rs", home.rust_client), contents }, signatures))
}

/// The creation of a client for a call, and its hooks.
fn hooks(home: &Home) -> Result<Vec<Item>> {
    let path = |name| syn::parse_str::<syn::Path>(&home.rust_path(name));
    let (call, context) = (path("TypedCall")?, path("CallContext")?);
    Ok(vec![
        parse_quote!(impl Client {
            /// The client of one call.
            pub(crate) fn of(call: &#call) -> Self {
                let (baseurl, client, inner) = call.context();
                Self::new_with_client(baseurl, client, inner)
            }
        }),
        parse_quote!(impl ClientHooks<#context> for Client {
            async fn pre<E>(&self, request: &mut reqwest::Request, info: &OperationInfo) -> Result<(), Error<E>> {
                self.inner.pre(request, info.operation_id).map_err(Error::Custom)
            }

            async fn exec(
                &self,
                request: reqwest::Request,
                info: &OperationInfo,
            ) -> reqwest::Result<reqwest::Response> {
                Ok(self.inner.exec(request, info.operation_id).await)
            }
        }),
    ])
}

/// The signature of an operation's function; none for other functions.
fn signature(function: &syn::Signature) -> Option<Signature> {
    let plain = |tokens: String| tokens.replace("'a ", "").replace(' ', "").replace(',', ", ");
    let syn::ReturnType::Type(_, answer) = &function.output else { return None };
    let answer = plain(answer.to_token_stream().to_string());
    let (_, answer) = answer.split_once("ResponseValue<")?;
    let (answer, _) = answer.rsplit_once(">, Error")?;
    let parameters = function.inputs.iter().filter_map(|input| match input {
        syn::FnArg::Typed(typed) => Some((
            plain(typed.pat.to_token_stream().to_string()),
            plain(typed.ty.to_token_stream().to_string()),
        )),
        syn::FnArg::Receiver(_) => None,
    });
    let name = function.ident.to_string();
    Some(Signature { name, parameters: parameters.collect(), answer: answer.to_owned() })
}
