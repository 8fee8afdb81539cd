use std::time::Instant;

use tempfile::TempDir;

use super::*;

const KEY: [u8; 32] = [3; 32];

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn open(folder: &TempDir) -> Arc<Spool> {
    Spool::open(&folder.path().join("spool"), KEY)
}

async fn keep(spool: &Arc<Spool>, content: &str) -> Option<SpoolEntry> {
    spool.keep(EntryKind::Answer, content.to_owned()).await
}

/// What ended processes left behind.
fn left(spool: &Spool, kind: EntryKind) -> Vec<String> {
    let text = |one: RecoveredEntry| String::from_utf8(one.content).expect("text");
    spool.inherited(kind).into_iter().map(text).collect()
}

fn files(folder: &TempDir) -> Vec<String> {
    let Ok(files) = std::fs::read_dir(folder.path().join("spool")) else { return Vec::new() };
    let name = |file: io::Result<std::fs::DirEntry>| file.expect("a file").file_name().into_string();
    let mut names: Vec<_> = files.map(|file| name(file).expect("text")).collect();
    names.sort();
    names
}

#[tokio::test]
async fn inherited_entries_keep_their_order_and_live_ones_stay_with_their_owner() {
    let folder = folder();
    let (one, idle) = (open(&folder), open(&folder));
    assert_eq!(files(&folder), [""; 0], "an unused spool creates no files");
    for number in 0..12 {
        keep(&one, &number.to_string()).await.expect("kept");
    }
    one.keep(EntryKind::Changes, b"changes".to_vec()).await.expect("kept");
    drop(idle);
    let other = open(&folder);
    assert!(left(&other, EntryKind::Answer).is_empty());
    drop(keep(&other, "of the other").await.expect("kept"));
    drop((one, other));

    let next = open(&folder);
    assert_eq!(left(&open(&folder), EntryKind::Changes), [""; 0], "another process holds it");
    assert_eq!(left(&next, EntryKind::Changes), ["changes"]);
    let all = next.inherited(EntryKind::Answer);
    let texts: Vec<_> = all.iter().map(|one| String::from_utf8_lossy(&one.content).into_owned()).collect();
    let expected = (0..12).map(|number| number.to_string()).chain(["of the other".to_owned()]);
    assert_eq!(texts, expected.collect::<Vec<_>>());
    // Items that are not removed are left to the next process.
    for one in &all[1..] {
        one.entry.remove().await;
    }
    drop((all, next));
    let last = open(&folder);
    assert_eq!(left(&last, EntryKind::Answer), ["0"]);
    assert_eq!(left(&last, EntryKind::Changes), ["changes"]);
}

#[tokio::test]
async fn removed_entry_leaves_no_file_even_before_it_is_written() {
    let folder = folder();
    let spool = open(&folder);
    let entry = keep(&spool, "a").await.expect("kept");
    entry.remove().await;
    entry.remove().await;
    // It is removed before it is written.
    let entry = spool.begin(EntryKind::Answer, 1).expect("room");
    entry.remove().await;
    spool.write(&entry.0, b"b").expect("written");
    assert_eq!(files(&folder), [format!("{}.lock", spool.writer)]);
    drop((entry, spool));
    assert_eq!(files(&folder), [""; 0]);
}

#[cfg(unix)]
#[tokio::test]
async fn spool_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    let spool = open(&folder);
    keep(&spool, "a").await.expect("kept");
    let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&spool.folder), 0o700);
    for file in files(&folder) {
        assert_eq!(mode(&spool.folder.join(&file)), 0o600, "{file}");
    }
}

/// Truncated, modified, extended, renamed or foreign: such a file is neither taken for an item nor removed.
#[tokio::test]
async fn incomplete_or_foreign_entries_are_left_alone() {
    let folder = folder();
    let spool = open(&folder);
    keep(&spool, "an answer").await.expect("kept");
    let name = files(&folder).into_iter().find(|name| name.ends_with(".answer")).expect("a file");
    drop(spool);
    let path = |name: &str| folder.path().join("spool").join(name);
    let whole = std::fs::read(path(&name)).expect("a file");
    let is_left = |name: &str, bytes: &[u8]| {
        std::fs::write(path(name), bytes).expect("written");
        assert!(left(&open(&folder), EntryKind::Answer).is_empty(), "{name} of {} bytes", bytes.len());
        assert_eq!(std::fs::read(path(name)).expect("it is there"), bytes);
    };
    for at in 0..whole.len() {
        is_left(&name, &whole[..at]);
        let mut changed = whole.clone();
        changed[at] ^= 1;
        is_left(&name, &changed);
    }
    is_left(&name, &[&whole[..], b"!"].concat());
    std::fs::remove_file(path(&name)).expect("removed");
    for foreign in
        ["b.000000000001.answer", "notes.txt", "b.1", ".000000000001.answer", "b.x.answer", "b.answer"]
    {
        is_left(foreign, &whole);
        std::fs::remove_file(path(foreign)).expect("removed");
    }
    std::fs::create_dir(path("b.000000000002.answer")).expect("created");
    // Another pepper.
    std::fs::write(path(&name), &whole).expect("written");
    let with_other_key = Spool::open(&folder.path().join("spool"), [4; 32]);
    assert!(left(&with_other_key, EntryKind::Answer).is_empty());
    drop(with_other_key);
    assert_eq!(left(&open(&folder), EntryKind::Answer), ["an answer"]);
}

#[tokio::test]
async fn unfinished_files_of_a_dead_process_are_removed() {
    let folder = folder();
    let spool = open(&folder);
    keep(&spool, "a").await.expect("kept").remove().await;
    let unfinished = format!("{}.000000000002.answer.new", spool.writer);
    for name in [&unfinished, "b.lock", "c.lock.new"] {
        std::fs::write(spool.folder.join(name), "half").expect("written");
    }
    drop(open(&folder));
    // The files of a live process are its own.
    assert_eq!(files(&folder), [unfinished, format!("{}.lock", spool.writer)]);
    drop(spool);
    drop(open(&folder));
    assert_eq!(files(&folder), [""; 0]);
}

#[tokio::test]
async fn spool_is_bounded_in_count_and_bytes() {
    let folder = folder();
    let spool = open(&folder);
    assert!(spool.begin(EntryKind::Answer, MAX_RECORD_BYTES + 1).is_none());
    let many: Vec<_> = std::iter::from_fn(|| spool.begin(EntryKind::Answer, 1)).collect();
    assert_eq!(many.len(), MAX_ITEMS);
    assert!(keep(&spool, "a").await.is_none() && !spool.works());
    drop(many);
    let large: Vec<_> = std::iter::from_fn(|| spool.begin(EntryKind::Answer, MAX_RECORD_BYTES)).collect();
    assert_eq!(large.len(), MAX_BYTES / MAX_RECORD_BYTES);
    drop(large);
    assert!(keep(&spool, "a").await.is_some() && spool.works());
    let taken = lock(&spool.taken);
    assert_eq!((taken.items, taken.bytes), (0, 0));
}

#[tokio::test]
async fn entries_beyond_the_bounds_wait_for_the_next_start() {
    let folder = folder();
    let spool = open(&folder);
    let large = vec![0; MAX_RECORD_BYTES - HEAD];
    for _ in 0..=MAX_BYTES / MAX_RECORD_BYTES {
        spool.keep(EntryKind::Answer, large.clone()).await.expect("kept");
    }
    drop(spool);
    let next = open(&folder);
    let all = next.inherited(EntryKind::Answer);
    assert_eq!(all.len(), MAX_BYTES / MAX_RECORD_BYTES);
    for one in &all {
        one.entry.remove().await;
    }
    drop((all, next));
    assert_eq!(open(&folder).inherited(EntryKind::Answer).len(), 1);
}

#[tokio::test]
async fn spool_recovers_from_an_uncreatable_folder() {
    let folder = folder();
    std::fs::write(folder.path().join("spool"), "a file").expect("written");
    let spool = open(&folder);
    assert!(keep(&spool, "a").await.is_none() && !spool.works());
    std::fs::remove_file(folder.path().join("spool")).expect("removed");
    assert!(keep(&spool, "a").await.is_some() && spool.works());
}

/// This pipe has no reader: opening it for writing hangs, as with a hanging disk.
#[cfg(unix)]
#[tokio::test]
async fn hanging_disk_delays_callers_once() {
    let folder = folder();
    let spool = open(&folder);
    create_folder(&spool.folder).expect("created");
    let name = |number| format!("{}.{number:012}.answer.new", spool.writer);
    let pipes: Vec<_> = (1..=MAX_WRITING).map(|number| spool.folder.join(name(number))).collect();
    assert!(std::process::Command::new("mkfifo").args(&pipes).status().expect("mkfifo").success());
    let started = Instant::now();
    let stuck = futures_util::future::join_all((0..MAX_WRITING).map(|_| keep(&spool, "a"))).await;
    assert!(stuck.iter().all(Option::is_some) && !spool.works());
    // All slots are taken: the others do not wait.
    for _ in 0..100 {
        assert!(keep(&spool, "b").await.is_none());
    }
    assert!(started.elapsed() < 20 * PATIENCE, "{:?}", started.elapsed());
    // It continues.
    for pipe in &pipes {
        drop(File::open(pipe).expect("a pipe"));
    }
    while keep(&spool, "c").await.is_none() {
        assert!(started.elapsed() < Duration::from_mins(1), "it hangs forever");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(spool.works());
}

#[test]
fn handbook_states_the_spool_memory_bound() {
    let page = include_str!("../../../docs/handbook/strangers.md");
    let row =
        format!("| what waits for the store while it is away | fixed | {} MiB |", MAX_BYTES / 1024 / 1024);
    assert!(page.contains(&row), "{row}");
}
