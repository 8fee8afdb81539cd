//! Reads the signatures of operations from the output of progenitor.

use indexmap::IndexMap;
use quote::ToTokens as _;
use syn::{ImplItem, Item};

/// The functions of progenitor's client by name: the facade has their signatures.
pub(crate) type Signatures = IndexMap<String, Signature>;

/// The signature of a function of progenitor's client.
#[derive(Debug)]
pub(crate) struct Signature {
    /// Name and type of each parameter.
    pub parameters: Vec<(String, String)>,
    /// The type of the answer.
    pub answer: String,
}

impl Signature {
    /// The parameters as they follow `&self` in a declaration.
    pub(crate) fn parameters(&self) -> String {
        self.parameters.iter().flat_map(|(name, ty)| [", ", name, ": ", ty]).collect()
    }
}

/// The signatures of all functions of progenitor's client.
pub(super) fn signatures(file: &syn::File) -> Signatures {
    let blocks = file.items.iter().filter_map(|item| match item {
        Item::Impl(block) => Some(&block.items),
        _ => None,
    });
    let functions = blocks.flatten().filter_map(|item| match item {
        ImplItem::Fn(function) => Some(&function.sig),
        _ => None,
    });
    functions.filter_map(|function| Some((function.ident.to_string(), signature(function)?))).collect()
}

/// `&Vec<String>` → `&[String]`.
fn slice(ty: &str) -> String {
    let ty = &ty.replace("::std::vec::Vec", "Vec");
    let inner = ty.split_once("&Vec<").and_then(|(before, rest)| Some((before, rest.split_once('>')?)));
    inner.map_or_else(|| ty.to_owned(), |(before, (item, after))| format!("{before}&[{item}]{after}"))
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
            slice(&plain(typed.ty.to_token_stream().to_string())),
        )),
        syn::FnArg::Receiver(_) => None,
    });
    Some(Signature { parameters: parameters.collect(), answer: answer.to_owned() })
}
