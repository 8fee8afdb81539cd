//! Types that a macro of the crate writes: their documentation stands in the macro.

use proc_macro2::{TokenStream, TokenTree};
use syn::{Item as Code, LitStr};

/// What a macro says of a type, and of its public methods by their names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MacroDocs {
    /// The lines of its documentation.
    pub docs: Vec<String>,
    pub methods: Vec<(String, Vec<String>)>,
}

/// What the macros among these items write of a type. None if they do not write it.
pub(super) fn find(items: &[Code], name: &str) -> Option<MacroDocs> {
    let mut found = None;
    for code in items {
        if let Code::Macro(code) = code {
            look(code.mac.tokens.clone(), name, None, &mut found);
        }
    }
    found
}

/// owner: the type that the tokens are an `impl` of.
fn look(tokens: TokenStream, name: &str, owner: Option<&str>, found: &mut Option<MacroDocs>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut docs = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1).map(ToString::to_string).unwrap_or_default();
        match token {
            TokenTree::Group(group) => {
                // `impl ErrorKind { … }`
                let owner = at.checked_sub(2).filter(|at| tokens[*at].to_string() == "impl");
                let owner = owner.map(|at| tokens[at + 1].to_string());
                docs.extend(documented(group.stream()));
                look(group.stream(), name, owner.as_deref(), found);
            }
            TokenTree::Ident(kind) if ["enum", "struct"].iter().any(|known| kind == known) => {
                if next == name {
                    found.get_or_insert_with(MacroDocs::default).docs = std::mem::take(&mut docs);
                }
            }
            TokenTree::Ident(kind) if kind == "fn" => {
                let docs = std::mem::take(&mut docs);
                if let (Some(written), true) = (found.as_mut(), owner == Some(name) && !docs.is_empty()) {
                    written.methods.push((next, docs));
                }
            }
            // What stands between documentation and what it is of.
            TokenTree::Ident(word) if ["pub", "const", "async"].iter().any(|known| word == known) => {}
            TokenTree::Punct(mark) if mark.as_char() == '#' => {}
            _ => docs.clear(),
        }
    }
}

/// The text of `doc = "…"`.
fn documented(tokens: TokenStream) -> Option<String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let [TokenTree::Ident(doc), TokenTree::Punct(_), TokenTree::Literal(text)] = tokens.as_slice() else {
        return None;
    };
    let text = syn::parse_str::<LitStr>(&text.to_string()).ok().filter(|_| doc == "doc")?;
    Some(text.value())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_of_a_type_is_found_in_the_macro_that_writes_it() {
        let text = "macro_rules! inks { ($($ink:ident)+) => {
            /// An ink.
            #[derive(Debug)]
            pub enum Ink { $($ink,)+ }
            impl Ink {
                /// Every one.
                pub const ALL: &[Self] = &[$(Self::$ink),+];
                /// Its name.
                pub const fn name(self) -> &'static str { \"\" }
                fn own(self) {}
            }
        } }";
        let file = syn::parse_file(text).expect("it is Rust");
        let lines = |line: &str| vec![line.to_owned()];
        let expected =
            MacroDocs { docs: lines(" An ink."), methods: vec![("name".to_owned(), lines(" Its name."))] };
        assert_eq!(find(&file.items, "Ink"), Some(expected));
        assert_eq!(find(&file.items, "Pen"), None);
    }
}
