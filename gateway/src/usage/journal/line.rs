//! The lines of a journal: JSON after a checksum, padded so that each line begins at a multiple of [`UNIT`] and a corrupt line
//! doesn't hide those that follow.

use std::borrow::Cow;
use std::io::Write as _;

use flate2::Crc;
use gatewright_store::{Day, Totals, UsageKey};
use serde::{Deserialize, Serialize};

use super::UsageGroup;

/// Version of the journal format. Earlier ones are still readable: the first has no count of unpriced requests, and the second
/// neither failures nor times.
pub(super) const VERSION: u32 = 3;
/// Alignment of lines, in bytes.
const UNIT: usize = 64;
/// Maximum length of a line, in bytes.
pub(super) const MAX_LINE_BYTES: usize = 4096;
/// The checksum in hexadecimal digits, and a space.
const PREFIX: usize = 9;

/// The contents of a line.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum JournalLine<'t> {
    /// The first line: [`VERSION`], and the name of the writing process.
    Journal(u32, Cow<'t, str>),
    /// What a request consumed.
    #[serde(borrow)]
    Request(JournalEntry<'t>),
    /// The sum of requests from earlier parts.
    #[serde(borrow)]
    Sum(JournalEntry<'t>),
    /// The sums of this part are complete, with this count. Lines of earlier parts are included in them, or in the store.
    Whole(u64, u64),
}

/// The batch number, the part, the day, key, model, upstream, the counts, the count of unpriced requests, and failures and times.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct JournalEntry<'t>(
    u64,
    u64,
    i32,
    #[serde(borrow)] Cow<'t, str>,
    #[serde(borrow)] Cow<'t, str>,
    #[serde(borrow)] Cow<'t, str>,
    [u64; 9],
    #[serde(default)] u64,
    #[serde(default)] [u64; 4],
);

impl<'t> JournalLine<'t> {
    pub(super) fn request(mark: UsageGroup, place: &'t UsageKey, totals: &Totals) -> Self {
        Self::Request(JournalEntry::new(mark, place, totals))
    }

    pub(super) fn sum(mark: UsageGroup, place: &'t UsageKey, totals: &Totals) -> Self {
        Self::Sum(JournalEntry::new(mark, place, totals))
    }
}

impl<'t> JournalEntry<'t> {
    fn new(UsageGroup { batch, part }: UsageGroup, place: &'t UsageKey, totals: &Totals) -> Self {
        let [key, model, upstream] =
            [&place.key, &place.model, &place.upstream].map(|name| Cow::Borrowed(&**name));
        let [counts @ .., unpriced, failed, timed, first_byte_ms, latency_ms] = totals.counts();
        let outcomes = [failed, timed, first_byte_ms, latency_ms];
        Self(batch, part, place.day.number(), key, model, upstream, counts, unpriced, outcomes)
    }

    pub(super) fn mark(&self) -> UsageGroup {
        UsageGroup { batch: self.0, part: self.1 }
    }

    /// None: there is no such day.
    pub(super) fn read(self) -> Option<(UsageKey, Totals)> {
        let Self(_, _, day, key, model, upstream, counts, unpriced, outcomes) = self;
        let mut all = Totals::default().counts();
        let (first, rest) = all.split_at_mut(counts.len());
        first.copy_from_slice(&counts);
        rest[0] = unpriced;
        rest[1..].copy_from_slice(&outcomes);
        let totals = Totals::of(all);
        let [key, model, upstream] = [key, model, upstream].map(|name| (&*name).into());
        Some((UsageKey { day: Day::of_number(day)?, key, model, upstream }, totals))
    }
}

/// A line in the written format. None: it is too long. `writer`: of the process; prevents lines of other processes from being
/// accepted.
pub(super) fn framed(writer: &str, line: &JournalLine<'_>) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(3 * UNIT);
    bytes.resize(PREFIX, b' ');
    serde_json::to_writer(&mut bytes, line).ok()?;
    finished(writer, bytes)
}

/// The JSON of a line in the written format.
#[cfg(test)]
pub(super) fn framed_json(writer: &str, json: &[u8]) -> Option<Vec<u8>> {
    finished(writer, [&[b' '; PREFIX], json].concat())
}

/// Fills in the checksum of what follows it, and adds the padding.
fn finished(writer: &str, mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let sum = checksum(writer, &bytes[PREFIX..]);
    write!(&mut bytes[..PREFIX], "{sum:08x}").ok()?;
    let length = (bytes.len() + 1).next_multiple_of(UNIT);
    bytes.resize(length - 1, b' ');
    bytes.push(b'\n');
    (length <= MAX_LINE_BYTES).then_some(bytes)
}

/// The valid lines of a text, whatever else it contains.
pub(super) fn lines<'t>(writer: &str, text: &'t [u8]) -> impl Iterator<Item = JournalLine<'t>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < text.len() {
            let rest = &text[at..text.len().min(at + MAX_LINE_BYTES)];
            if let Some((line, length)) = line_of(writer, rest) {
                at += length;
                return Some(line);
            }
            at += UNIT;
        }
        None
    })
}

/// The line at the start of a text, and its length.
fn line_of<'t>(writer: &str, text: &'t [u8]) -> Option<(JournalLine<'t>, usize)> {
    let sum = std::str::from_utf8(text.get(..PREFIX - 1)?).ok()?;
    let sum = u32::from_str_radix(sum, 16).ok()?;
    let end = memchr::memchr(b'\n', text)?;
    let json = text.get(PREFIX..end)?.trim_ascii_end();
    let length = end + 1;
    if !length.is_multiple_of(UNIT) || checksum(writer, json) != sum {
        return None;
    }
    serde_json::from_slice(json).ok().map(|line| (line, length))
}

fn checksum(writer: &str, json: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(writer.as_bytes());
    crc.update(json);
    crc.sum()
}
