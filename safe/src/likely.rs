//! "Did you mean": the known word that a wrong one is likely meant to be.

/// The likeness from which on a word is offered for another.
const LIKE: f64 = 0.75;
/// Longest word that is compared, in characters: the work grows with the square of it.
const LONGEST: usize = 200;

/// The likeliest of the known words; `None` if none is like the given one.
///
/// ```
/// use gatewright_safe::likely::likely;
///
/// assert_eq!(likely("tempature", ["temperature", "top_p"]), Some("temperature"));
/// assert_eq!(likely("banana", ["temperature", "top_p"]), None);
/// ```
pub fn likely<W: AsRef<str>>(given: &str, known: impl IntoIterator<Item = W>) -> Option<W> {
    let short = |word: &str| word.chars().take(LONGEST).flat_map(char::to_lowercase).collect::<String>();
    let given = short(given);
    let rated = known.into_iter().map(|word| (strsim::jaro_winkler(&given, &short(word.as_ref())), word));
    let best = rated.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.filter(|(likeness, _)| *likeness >= LIKE).map(|(_, word)| word)
}

/// The end of a message, a question that offers the likeliest of the known words; empty if none is like the given one.
///
/// ```
/// use gatewright_safe::likely::offer;
///
/// assert_eq!(offer("base_ulr", ["kind", "base_url"]), "; did you mean base_url?");
/// ```
pub fn offer<W: AsRef<str>>(given: &str, known: impl IntoIterator<Item = W>) -> String {
    likely(given, known).map_or_else(String::new, |word| format!("; did you mean {}?", word.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_offered_only_if_it_is_like_the_given_one() {
        assert_eq!(offer("base_ulr", ["kind", "base_url"]), "; did you mean base_url?");
        assert_eq!(offer("MODEL-SLO", ["model-luna", "model-sol"]), "; did you mean model-sol?");
        assert_eq!(offer("banana", ["kind", "base_url"]), "");
        assert_eq!(likely("anything", [""; 0]), None);
    }

    #[test]
    fn the_work_for_a_huge_word_is_bounded() {
        let began = std::time::Instant::now();
        let huge = "x".repeat(10_000_000);
        assert_eq!(offer(&huge, [huge.as_str()]), format!("; did you mean {huge}?"));
        assert!(began.elapsed() < std::time::Duration::from_secs(5));
    }
}
