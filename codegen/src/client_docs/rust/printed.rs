//! Prints Rust items for readers: without bodies, documentation and private parts.

use quote::ToTokens as _;
use syn::{Fields, File, FnArg, Item as Code, Pat, ReceiverKind, Signature, Type, Visibility};

/// The head of a function, the public fields of a struct, the variants of an enum, or a type alias.
pub(super) fn signature(code: &Code) -> String {
    match code {
        Code::Fn(function) => self::function(&function.sig),
        Code::Struct(shape) => {
            let mut shape = shape.clone();
            shape.attrs.clear();
            if let Fields::Named(fields) = &mut shape.fields {
                let public = std::mem::take(&mut fields.named).into_iter();
                let public = public.filter(|field| matches!(field.vis, Visibility::Public(_)));
                fields.named = public
                    .map(|mut field| {
                        field.attrs.clear();
                        field
                    })
                    .collect();
                // A struct without public fields is created and read by its methods.
                if fields.named.is_empty() {
                    return String::new();
                }
            } else {
                return String::new();
            }
            pretty(Code::Struct(shape))
        }
        Code::Type(alias) => {
            let mut alias = alias.clone();
            alias.attrs.clear();
            pretty(Code::Type(alias))
        }
        _ => String::new(),
    }
}

/// The head of a function.
pub(super) fn function(signature: &Signature) -> String {
    let mut signature = signature.clone();
    signature.inputs.iter_mut().for_each(|input| match input {
        FnArg::Receiver(own) if matches!(own.kind, ReceiverKind::Value) => own.mutability = None,
        FnArg::Typed(argument) => {
            if let Pat::Ident(name) = &mut *argument.pat {
                name.mutability = None;
            }
        }
        FnArg::Receiver(_) => {}
    });
    let whole: syn::ItemFn = syn::parse_quote!(#signature {});
    let code = pretty(Code::Fn(whole));
    code.trim_end().trim_end_matches("{}").trim_end().to_owned()
}

/// A method as it appears in a table row: `timeout(timeout: Duration)`.
pub(super) fn called(signature: &Signature) -> String {
    let arguments = signature.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(argument) => match &*argument.pat {
            Pat::Ident(name) => Some(format!("{}: {}", name.ident, ty(&argument.ty))),
            _ => Some(ty(&argument.ty)),
        },
        FnArg::Receiver(_) => None,
    });
    format!("{}({})", signature.ident, arguments.collect::<Vec<_>>().join(", "))
}

/// A type on one line.
pub(super) fn ty(ty: &Type) -> String {
    let alias: Code = syn::parse_quote!(type T = #ty;);
    let code = pretty(alias);
    let code = code.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = code.strip_prefix("type T = ").and_then(|code| code.strip_suffix(';'));
    shown.map_or_else(|| ty.to_token_stream().to_string(), str::to_owned)
}

fn pretty(code: Code) -> String {
    prettyplease::unparse(&File { shebang: None, frontmatter: None, attrs: Vec::new(), items: vec![code] })
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_omit_bodies_and_private_members() {
        let shape: Code = syn::parse_quote! {
            /// A pen.
            pub struct Pen { /** Its colour. */ pub ink: Option<String>, width: u32 }
        };
        assert_eq!(signature(&shape), "pub struct Pen {\n    pub ink: Option<String>,\n}");
        let function: Code = syn::parse_quote!(
            pub async fn draw(&self, mut to: impl Into<u32>) -> Result<(), Error> {
                Ok(())
            }
        );
        assert_eq!(signature(&function), "async fn draw(&self, to: impl Into<u32>) -> Result<(), Error>");
        let method: Signature = syn::parse_quote!(fn ink(mut self, ink: &str) -> Self);
        assert_eq!(
            (self::function(&method), called(&method)),
            ("fn ink(self, ink: &str) -> Self".to_owned(), "ink(ink: &str)".to_owned())
        );
        assert_eq!(ty(&syn::parse_quote!(Vec<(String, String)>)), "Vec<(String, String)>");
    }
}
