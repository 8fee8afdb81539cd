//! `model_access`: the model is in the list that `models_endpoint` got. Sends no request.

use super::context::Context;
use crate::cell::Cell;
use crate::failure::Category;

pub(super) fn check(context: &Context<'_>, cell: &mut Cell, model: &str) {
    let listed: Vec<&str> =
        context.listed.iter().copied().flatten().map(|listed| listed.id.as_str()).collect();
    let held = listed.contains(&model);
    let found = if held { format!("{model:?}") } else { named(&listed) };
    cell.assert(Category::Verification, "model list", format!("{model:?} in it"), found, held);
}

/// The first ids of a list, and the number of the others.
fn named(ids: &[&str]) -> String {
    const MAX_NAMED: usize = 3;
    const MAX_CHARS: usize = 60;
    let first =
        ids.iter().take(MAX_NAMED).map(|id| format!("{:?}", id.chars().take(MAX_CHARS).collect::<String>()));
    let names = first.collect::<Vec<_>>().join(", ");
    match ids.len() {
        0 => "no models".to_owned(),
        count => match count.saturating_sub(MAX_NAMED) {
            0 => names,
            1 => format!("{names} and 1 other"),
            others => format!("{names} and {others} others"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_of_found_models_is_bounded() {
        let ids = ["a", "b", "c", "d", "e"];
        assert_eq!(named(&ids), r#""a", "b", "c" and 2 others"#);
        assert_eq!(named(&ids[..4]), r#""a", "b", "c" and 1 other"#);
        assert_eq!(named(&ids[..2]), r#""a", "b""#);
        assert_eq!(named(&[]), "no models");
        assert_eq!(named(&[&"x".repeat(1000)]).len(), 62);
    }
}
