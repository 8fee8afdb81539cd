//! Every name that is called has an example, on it or on one of its methods.

use anyhow::{Result, bail};

use super::item::Item;

/// Errors: the names of the items that have none. where_: what to write one in.
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
    fn what_is_called_has_an_example_and_what_holds_values_needs_none() {
        let item = |signature: &str, example: &str| Item {
            name: "one".to_owned(),
            signature: signature.to_owned(),
            docs: Docs { example: example.to_owned(), ..Docs::default() },
            ..Item::default()
        };
        assert!(demand(&[item("one(it)", "one(2)"), item("one: int", "")], "sources").is_ok());
        let refusal = demand(&[item("one(it)", "")], "docstrings").expect_err("it has none").to_string();
        assert_eq!(refusal, "no example in docstrings of one");
    }
}
