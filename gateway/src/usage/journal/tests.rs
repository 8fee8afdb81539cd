use std::collections::BTreeMap;
use std::fs::FileTimes;
use std::time::SystemTime;

use gatewright_store::Day;
use tempfile::TempDir;

use super::*;
use crate::usage::Ledger;

const KNOWN_FOR: Duration = Duration::from_hours(24);

fn place(model: &str) -> UsageKey {
    UsageKey { day: Day::of(0), key: "a \"key\"\n".into(), model: model.into(), upstream: "ü".into() }
}

fn took(input: u64) -> Totals {
    Totals { requests: 1, input, ..Totals::default() }
}

fn begin(folder: &Path, writer: &str) -> Ledger {
    Ledger::new(Some(Journal::open(folder, &writer.into())))
}

fn spend(ledger: &Ledger, model: &str, input: u64) {
    ledger.add(&place(model), &took(input));
}

fn journal(ledger: &Ledger) -> &Journal {
    ledger.journal().expect("a journal")
}

/// What the ended processes of a folder left: the input of each model by batch.
fn left(folder: &Path) -> BTreeMap<String, BTreeMap<u64, BTreeMap<String, u64>>> {
    let inputs =
        |rows: &Rows| rows.iter().map(|(place, totals)| (place.model.to_string(), totals.input)).collect();
    let of = |one: RecoveredJournal| {
        let batches = one.batches.iter().map(|(number, rows)| (*number, inputs(rows))).collect();
        (one.writer.to_string(), batches)
    };
    Journal::inherited(folder, KNOWN_FOR).into_iter().map(of).collect()
}

/// The same for one process.
fn left_by(folder: &Path, writer: &str) -> BTreeMap<u64, BTreeMap<String, u64>> {
    left(folder).remove(writer).unwrap_or_default()
}

fn batches<const N: usize>(batches: [(u64, &[(&str, u64)]); N]) -> BTreeMap<u64, BTreeMap<String, u64>> {
    let models =
        |models: &[(&str, u64)]| models.iter().map(|(model, input)| ((*model).to_owned(), *input)).collect();
    batches.into_iter().map(|(number, all)| (number, models(all))).collect()
}

fn files(folder: &TempDir) -> Vec<String> {
    let files = std::fs::read_dir(folder.path()).expect("a folder");
    files.map(|file| file.expect("a file").file_name().into_string().expect("text")).collect()
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn inherited_batches_are_read_and_live_journals_stay_with_their_owner() {
    let folder = folder();
    let ledger = begin(folder.path(), "a");
    spend(&ledger, "m", 1);
    spend(&ledger, "m", 10);
    assert_eq!(ledger.seal().0, 1);
    spend(&ledger, "m", 100);
    spend(&ledger, "n", 7);
    assert_eq!(left(folder.path()), BTreeMap::new());
    drop(ledger);
    let expected = batches([(1, &[("m", 11)]), (2, &[("m", 100), ("n", 7)])]);
    // Reading it without confirming that the store has it leaves it unchanged.
    for _ in 0..2 {
        assert_eq!(left_by(folder.path(), "a"), expected);
    }
    let [one] = Journal::inherited(folder.path(), KNOWN_FOR).try_into().expect("one");
    assert_eq!(one.requests(), 4);
    let (known, key) = (one.batches[&2].keys().next().expect("a row").clone(), place("m").key);
    assert_eq!((known.day, known.key), (Day::of(0), key));
    one.taken();
    assert_eq!(files(&folder), [""; 0]);
}

#[test]
fn compacted_journal_drops_stored_batches() {
    let folder = folder();
    let ledger = begin(folder.path(), "a");
    let (mut sending, mut next) = (Rows::new(), Rows::new());
    spend(&ledger, "m", 1);
    sending.extend(ledger.seal().1);
    for input in [2, 3] {
        spend(&ledger, "m", input);
        journal(&ledger).write_sums(|| {
            let (mark, fresh) = ledger.begin_part();
            ledger.queue(&mut next, fresh, 0);
            (mark.part, vec![(1, &sending), (mark.batch, &next)])
        });
    }
    spend(&ledger, "n", 4);
    // The store accepts the first batch.
    journal(&ledger).write_sums(|| {
        let (mark, fresh) = ledger.begin_part();
        ledger.queue(&mut next, fresh, 0);
        (mark.part, vec![(mark.batch, &next)])
    });
    spend(&ledger, "n", 5);
    drop(ledger);
    assert_eq!(left_by(folder.path(), "a"), batches([(2, &[("m", 5), ("n", 9)])]));
}

#[test]
fn fully_stored_journal_is_empty_or_removed() {
    let folder = folder();
    let ledger = begin(folder.path(), "a");
    spend(&ledger, "m", 1);
    journal(&ledger).write_sums(|| (ledger.begin_part().0.part, Vec::new()));
    assert_eq!(files(&folder), ["a.journal"]);
    drop(ledger);
    assert_eq!((left(folder.path()), files(&folder)), (BTreeMap::new(), Vec::new()));
    let ledger = begin(folder.path(), "b");
    journal(&ledger).end();
    assert_eq!(files(&folder), [""; 0]);
}

/// Truncated, overwritten or duplicated anywhere, a journal yields only what was written, and only complete records.
#[test]
fn damaged_journal_yields_its_complete_records() {
    let folder = folder();
    let ledger = begin(folder.path(), "a");
    for model in ["m", "n", "o"] {
        spend(&ledger, model, 1);
    }
    drop(ledger);
    let path = named(folder.path(), "a", ENDING);
    let whole = std::fs::read(&path).expect("a file");
    let begins = usize::try_from(HEAD).expect("small");
    let length = whole[begins..].iter().position(|byte| *byte == 0).expect("an end");
    // The line of the empty sums, and three requests of the same number of units.
    let request = (length - 64) / 3;
    for cut in begins..begins + length {
        let mut broken = whole.clone();
        broken.truncate(cut);
        std::fs::write(&path, &broken).expect("written");
        let expected = (cut - begins).saturating_sub(64) / request;
        let recovered = left_by(folder.path(), "a");
        assert_eq!(recovered.get(&1).map_or(0, BTreeMap::len), expected, "cut at {cut}");
        if expected == 0 {
            assert_eq!(files(&folder), [""; 0]);
        }
    }
    for at in (begins + 64..begins + length).step_by(17) {
        let mut broken = whole.clone();
        broken[at] ^= 1;
        std::fs::write(&path, &broken).expect("written");
        let recovered = left_by(folder.path(), "a");
        assert_eq!(
            recovered[&1].len(),
            if whole[at] == b'\n' || whole[at] == b' ' { recovered[&1].len() } else { 2 },
            "{at}"
        );
        assert!(
            recovered[&1].len() >= 2 && recovered[&1].values().all(|input| *input == 1),
            "changed at {at}"
        );
    }
}

#[test]
fn foreign_files_are_left_alone() {
    let folder = folder();
    let newer = framed("", &JournalLine::Journal(line::VERSION + 1, "a".into())).expect("a line");
    let evil = framed("", &JournalLine::Journal(1, "../a".into())).expect("a line");
    let foreign: [(&str, &[u8]); 4] = [
        ("foreign.journal", b"ELF"),
        ("newer.journal", &newer),
        ("evil.journal", &evil),
        ("notes.txt", b"\0\0"),
    ];
    for (name, bytes) in foreign {
        std::fs::write(folder.path().join(name), bytes).expect("written");
    }
    std::fs::create_dir(folder.path().join("folder.journal")).expect("created");
    // A file that was just created is removed.
    for name in ["empty.journal", "unfinished.new"] {
        std::fs::write(folder.path().join(name), [0; 100]).expect("written");
    }
    assert_eq!(left(folder.path()), BTreeMap::new());
    let mut files = files(&folder);
    files.sort();
    assert_eq!(files, ["evil.journal", "folder.journal", "foreign.journal", "newer.journal", "notes.txt"]);
}

#[test]
fn lines_of_another_writer_are_ignored() {
    let folder = folder();
    for writer in ["a", "b"] {
        spend(&begin(folder.path(), writer), "m", 1);
    }
    let [a, b] = ["a", "b"].map(|writer| named(folder.path(), writer, ENDING));
    let head = usize::try_from(HEAD).expect("small");
    let mut mixed = std::fs::read(a).expect("a file");
    mixed.extend_from_slice(&std::fs::read(&b).expect("a file")[head..2 * head]);
    std::fs::write(b, mixed).expect("written");
    assert_eq!(left(folder.path())["a"], batches([(1, &[("m", 1)])]));
}

#[test]
fn outdated_journal_is_set_aside() {
    let folder = folder();
    spend(&begin(folder.path(), "a"), "m", 1);
    let file = File::options().write(true).open(named(folder.path(), "a", ENDING)).expect("a file");
    let old = SystemTime::now() - KNOWN_FOR - Duration::from_mins(1);
    file.set_times(FileTimes::new().set_modified(old)).expect("set");
    drop(file);
    assert_eq!((left(folder.path()), files(&folder)), (BTreeMap::new(), vec!["a.late".to_owned()]));
}

#[test]
fn journal_is_bounded_and_compaction_frees_space() {
    let folder = folder();
    let ledger = begin(folder.path(), "a");
    let long = "m".repeat(1000);
    let most = HALF / 1024;
    for _ in 0..2 * most {
        spend(&ledger, &long, 1);
    }
    let missed = journal(&ledger).missed();
    assert!(missed > most / 2 && journal(&ledger).wants_sums(), "{missed}");
    let size = |name| std::fs::metadata(folder.path().join(name)).expect("a file").len();
    assert!(size("a.journal") <= HEAD + 2 * HALF + PIECE as u64);
    let mut next = Rows::new();
    journal(&ledger).write_sums(|| {
        let (mark, fresh) = ledger.begin_part();
        next = fresh;
        (mark.part, vec![(mark.batch, &next)])
    });
    assert!(!journal(&ledger).wants_sums());
    spend(&ledger, &long, 1);
    assert_eq!(journal(&ledger).missed(), missed);
    // A name that doesn't fit in a line.
    spend(&ledger, &"m".repeat(MAX_LINE_BYTES), 1);
    assert_eq!(journal(&ledger).missed(), missed + 1);
    drop(ledger);
    assert_eq!(left_by(folder.path(), "a"), batches([(1, &[(&long, 2 * most + 1)])]));
}

#[test]
fn compaction_without_room_leaves_the_journal_unchanged() {
    let folder = folder();
    let ledger = begin(folder.path(), "a");
    spend(&ledger, "m", 1);
    let many: Rows = (0..HALF / 64).map(|model| (place(&model.to_string()), took(1))).collect();
    journal(&ledger).write_sums(|| (ledger.begin_part().0.part, vec![(1, &many)]));
    spend(&ledger, "m", 10);
    drop(ledger);
    assert_eq!(left_by(folder.path(), "a"), batches([(1, &[("m", 11)])]));
}

#[test]
fn uncreatable_folder_is_counted_as_missed_usage() {
    let folder = folder();
    let place = folder.path().join("usage");
    std::fs::write(&place, "a file").expect("written");
    assert!(Journal::inherited(&place, KNOWN_FOR).is_empty());
    let ledger = begin(&place, "a");
    spend(&ledger, "m", 1);
    assert_eq!((journal(&ledger).missed(), journal(&ledger).wants_sums()), (1, true));
}

#[test]
fn concurrent_writes_are_all_recorded() {
    const THREADS: u64 = 4;
    const EACH: u64 = 1000;
    let folder = folder();
    let ledger = begin(folder.path(), "a");
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..EACH).for_each(|_| spend(&ledger, "m", 1)));
        }
        // Meanwhile the store accepts some, which it is known to have from then on.
        scope.spawn(|| {
            let mut next = Rows::new();
            for _ in 0..20 {
                journal(&ledger).write_sums(|| {
                    let (mark, fresh) = ledger.begin_part();
                    ledger.queue(&mut next, fresh, 0);
                    (mark.part, vec![(mark.batch, &next)])
                });
            }
        });
    });
    assert_eq!(journal(&ledger).missed(), 0);
    drop(ledger);
    assert_eq!(left_by(folder.path(), "a"), batches([(1, &[("m", THREADS * EACH)])]));
}

#[test]
fn writes_proceed_while_others_wait_for_the_disk() {
    let folder = folder();
    let ledger = begin(folder.path(), "a");
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..20).for_each(|_| journal(&ledger).sync()));
        }
        (0..1000).for_each(|_| spend(&ledger, "m", 1));
    });
    assert_eq!(journal(&ledger).missed(), 0);
    journal(&ledger).end();
    // There is nothing to wait for.
    journal(&ledger).sync();
    let ledger = begin(folder.path(), "b");
    spend(&ledger, "m", 5);
    journal(&ledger).sync();
    drop(ledger);
    assert_eq!(left_by(folder.path(), "b"), batches([(1, &[("m", 5)])]));
}

#[test]
fn journals_of_earlier_formats_are_read_without_what_they_did_not_count() {
    let known = Totals { requests: 1, complete: 1, input: 7, output: 2, cost: 9, ..Totals::default() };
    for (version, json, expected) in [
        (1, r#"{"request":[1,1,0,"k","m","u",[1,1,0,7,0,0,2,0,9]]}"#, known),
        (2, r#"{"request":[1,1,0,"k","m","u",[1,1,0,7,0,0,2,0,9],1]}"#, Totals { unpriced: 1, ..known }),
        (
            line::VERSION,
            r#"{"request":[1,1,0,"k","m","u",[1,1,0,7,0,0,2,0,9],0,[2,3,4,5]]}"#,
            Totals { failed: 2, timed: 3, first_byte_ms: 4, latency_ms: 5, ..known },
        ),
    ] {
        let folder = folder();
        let mut text = framed("", &JournalLine::Journal(version, "a".into())).expect("a line");
        text.resize(usize::try_from(HEAD).expect("small"), 0);
        text.extend(line::framed_json("a", json.as_bytes()).expect("a line"));
        std::fs::write(named(folder.path(), "a", ENDING), text).expect("written");
        let [one] = Journal::inherited(folder.path(), KNOWN_FOR).try_into().expect("one");
        let totals = one.batches[&1].values().next().expect("a row");
        assert_eq!(*totals, expected, "version {version}");
    }
}

#[test]
fn every_count_survives_in_a_journal() {
    let folder = folder();
    let totals = Totals::of([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, u64::MAX]);
    begin(folder.path(), "a").add(&place("m"), &totals);
    let [one] = Journal::inherited(folder.path(), KNOWN_FOR).try_into().expect("one");
    assert_eq!(one.batches[&1][&place("m")], totals);
}
