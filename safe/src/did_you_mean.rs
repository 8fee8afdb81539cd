//! "Did you mean": the known word that is closest to a wrong one.

/// The likeness from which on a word is offered for another.
const LIKE: f64 = 0.75;
/// Characters of a word for each slip in it.
const CHARS_A_SLIP: usize = 3;
/// Shortest beginning of a word that is taken for the word, in characters.
const SHORTEST_BEGINNING: usize = 3;
/// Longest word that is compared, in characters: the work grows with the square of it.
const MAX_NAME_CHARS: usize = 200;

/// The likeliest of the known words; `None` if none is like the given one. What two words begin with alike, up to a mark between
/// their parts, makes neither like the other: names of one kind often begin so.
///
/// ```
/// use gatewright_safe::did_you_mean::closest;
///
/// assert_eq!(closest("tempature", ["temperature", "top_p"]), Some("temperature"));
/// assert_eq!(closest("banana", ["temperature", "top_p"]), None);
/// assert_eq!(closest("model-cedar", ["model-terra", "model-sol"]), None);
/// ```
pub fn closest<W: AsRef<str>>(given: &str, known: impl IntoIterator<Item = W>) -> Option<W> {
    let short =
        |word: &str| word.chars().take(MAX_NAME_CHARS).flat_map(char::to_lowercase).collect::<String>();
    let given = short(given);
    let rated = known.into_iter().filter_map(|word| {
        let other = short(word.as_ref());
        is_near(&given, &other).then(|| (strsim::jaro_winkler(&given, &other), word))
    });
    let best = rated.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.filter(|(likeness, _)| *likeness >= LIKE).map(|(_, word)| word)
}

/// Whether few slips of the keyboard lead from one word to the other, or one begins with the other.
fn is_near(one: &str, other: &str) -> bool {
    let alike = one.char_indices().zip(other.chars()).take_while(|((_, one), other)| one == other);
    let marks = alike.filter(|((_, char), _)| matches!(char, '-' | '_' | '.' | '/' | ' '));
    let shared = marks.last().map_or(0, |((at, mark), _)| at + mark.len_utf8());
    let (one, other) = (&one[shared..], &other[shared..]);
    let (shorter, longer) = if one.len() < other.len() { (one, other) } else { (other, one) };
    if shorter.chars().count() >= SHORTEST_BEGINNING && longer.starts_with(shorter) {
        return true;
    }
    strsim::osa_distance(one, other) <= (longer.chars().count() / CHARS_A_SLIP).max(1)
}

/// The end of a message, a question that offers the likeliest of the known words; empty if none is like the given one.
///
/// ```
/// use gatewright_safe::did_you_mean::suggestion;
///
/// assert_eq!(suggestion("base_ulr", ["kind", "base_url"]), "; did you mean base_url?");
/// ```
pub fn suggestion<W: AsRef<str>>(given: &str, known: impl IntoIterator<Item = W>) -> String {
    closest(given, known).map_or_else(String::new, |word| format!("; did you mean {}?", word.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestion_requires_a_similar_word() {
        assert_eq!(suggestion("base_ulr", ["kind", "base_url"]), "; did you mean base_url?");
        assert_eq!(suggestion("MODEL-SLO", ["model-luna", "model-sol"]), "; did you mean model-sol?");
        assert_eq!(suggestion("banana", ["kind", "base_url"]), "");
        assert_eq!(closest("anything", [""; 0]), None);
    }

    #[test]
    fn shared_prefix_alone_does_not_make_names_similar() {
        let models = ["model-terra", "model-sol", "image_model_1"];
        for (given, expected) in [
            ("model-cedar", None),
            ("model-x", None),
            ("model-", None),
            ("model-tera", Some("model-terra")),
            ("model-terra-large", Some("model-terra")),
            ("model_sol", Some("model-sol")),
            ("image_modle_1", Some("image_model_1")),
        ] {
            assert_eq!(closest(given, models), expected, "{given}");
        }
        assert_eq!(closest("access.environ", ["access.env", "access.file"]), Some("access.env"));
    }

    #[test]
    fn suggestion_for_a_huge_word_takes_bounded_time() {
        let began = std::time::Instant::now();
        let huge = "x".repeat(10_000_000);
        assert_eq!(suggestion(&huge, [huge.as_str()]), format!("; did you mean {huge}?"));
        assert!(began.elapsed() < std::time::Duration::from_secs(5));
    }
}
