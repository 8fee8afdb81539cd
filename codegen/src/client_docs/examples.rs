//! Every callable name has an example, its own or that of one of its methods.

use anyhow::{Result, bail};

use super::item::Item;

/// Errors: the names of the items without one. `where_`: where to write it.
pub(super) fn demand(items: &[Item], where_: &str) -> Result<()> {
    let lacking: Vec<&str> =
        items.iter().filter(|item| is_bare(item)).map(|item| item.name.as_str()).collect();
    if !lacking.is_empty() {
        bail!("no example in {where_} of {}", lacking.join(", "));
    }
    Ok(())
}

fn is_bare(item: &Item) -> bool {
    let is_called = item.signature.contains('(') || !item.methods.is_empty();
    let has_one = [item].into_iter().chain(&item.methods).any(|item| !item.docs.example.is_empty());
    is_called && !has_one
}

#[cfg(test)]
mod tests {
    use super::super::item::Docs;
    use super::*;

    #[test]
    fn callables_require_an_example_and_values_do_not() {
        let item = |signature: &str, example: &str| Item {
            name: "one".to_owned(),
            signature: signature.to_owned(),
            docs: Docs { example: example.to_owned(), ..Docs::default() },
            ..Item::default()
        };
        assert!(demand(&[item("one(it)", "one(2)"), item("one: int", "")], "sources").is_ok());
        let refusal = demand(&[item("one(it)", "")], "docstrings").expect_err("no example").to_string();
        assert_eq!(refusal, "no example in docstrings of one");
    }
}
