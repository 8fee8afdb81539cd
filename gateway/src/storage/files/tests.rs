//! Guarantees for files, tested with real folders and databases.

use std::path::Path;
use std::time::SystemTime;

use futures_util::TryStreamExt as _;
use gatewright::operations::ErrorStyle;
use gatewright_store::{FileKind, SqlStore, StoredFile};
use tokio::time::Instant;

use super::*;

const MINUTE: Duration = Duration::from_mins(1);

impl GeneratedFiles {
    /// Files in memory.
    pub(crate) fn in_memory(max_bytes: usize) -> Arc<Self> {
        Self::new(Contents::in_memory(), Arc::new(SqlStore::in_memory()), key(), max_bytes)
    }
}

fn key() -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, b"a key")
}

/// Files in a folder with a database, as a gateway has them.
pub(super) fn in_folder(folder: &Path, max_bytes: usize) -> Arc<GeneratedFiles> {
    let contents = Contents::in_folder(&folder.join("files")).expect("a folder");
    let store = SqlStore::in_file(&folder.join("a.db")).expect("a database");
    GeneratedFiles::new(contents, Arc::new(store), key(), max_bytes)
}

fn parts(address: &str) -> (String, Vec<(String, String)>) {
    let url = url::Url::parse(&format!("http://gateway{address}")).expect("an address");
    (url.path().trim_start_matches(PREFIX).to_owned(), url.query_pairs().into_owned().collect())
}

/// The contents served at a file's URL, or the error's status.
pub(super) async fn served(files: &GeneratedFiles, file: &StoredFile) -> Result<Vec<u8>, u16> {
    let (name, query) = parts(&files.address(file));
    let status = |error: ApiError| error.into_response(ErrorStyle::Standard).status().as_u16();
    let open = files.open(&name, &query).await.map_err(status)?;
    let pieces = open.read(0..open.bytes).await.map_err(status)?;
    Ok(pieces.try_collect::<Vec<_>>().await.expect("a whole file").concat())
}

pub(super) async fn keep(
    files: &Arc<GeneratedFiles>,
    owner: &str,
    sizes: &[usize],
) -> Result<Vec<StoredFile>, ApiError> {
    keep_for(files, owner, sizes, MINUTE).await
}

pub(super) async fn keep_for(
    files: &Arc<GeneratedFiles>,
    owner: &str,
    sizes: &[usize],
    lifetime: Duration,
) -> Result<Vec<StoredFile>, ApiError> {
    let contents = sizes.iter().map(|size| vec![7; *size]).collect();
    let room = files.reserve(&owner.into(), KeyFileQuota::ALL, 0).await?;
    room.keep(FileKind::Png, contents, lifetime).await
}

/// Status and `retry-after` of a refusal.
pub(super) fn refusal(error: ApiError) -> (u16, Option<u64>) {
    let response = error.into_response(ErrorStyle::Standard);
    let wait = response.headers().get("retry-after");
    let wait = wait.map(|wait| wait.to_str().expect("ASCII").parse().expect("seconds"));
    (response.status().as_u16(), wait)
}

/// The names in the folder of the files.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder.join("files")).expect("a folder");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
    names.sort_unstable();
    names
}

/// Makes a file look as if it had been written this long ago.
fn age(file: &Path, age: Duration) {
    let file = std::fs::OpenOptions::new().append(true).open(file).expect("a file");
    file.set_modified(SystemTime::now() - age).expect("a time");
}

#[tokio::test]
async fn files_and_their_urls_survive_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = in_folder(folder.path(), 100);
    let saved = keep(&first, "key", &[3, 4]).await.expect("room");
    let address = first.address(&saved[1]);
    // As tasks store it.
    let stored = serde_json::to_string(&saved[1]).expect("JSON");
    drop(first);
    let second = in_folder(folder.path(), 100);
    let file: StoredFile = serde_json::from_str(&stored).expect("a file");
    assert_eq!((second.address(&file), served(&second, &file).await), (address, Ok(vec![7; 4])));
    // Files stored before count.
    let refused = keep(&second, "key", &[94]).await.expect_err("no room");
    assert!(matches!(refusal(refused), (503, Some(1..=60))));
    // Another key produces other signatures.
    let contents = Contents::in_folder(&folder.path().join("files")).expect("a folder");
    let other = hmac::Key::new(hmac::HMAC_SHA256, b"another key");
    let stranger = GeneratedFiles::new(contents, Arc::new(SqlStore::in_memory()), other, 100);
    let (name, query) = parts(&stranger.address(&file));
    let error = second.open(&name, &query).await.err().expect("not signed by it");
    assert_eq!(refusal(error).0, 403);
}

#[tokio::test]
async fn expired_url_is_gone_even_if_the_file_exists() {
    // Section 8.
    let folder = tempfile::tempdir().expect("a folder");
    let files = in_folder(folder.path(), 1000);
    let saved = keep_for(&files, "key", &[3], Duration::ZERO).await.expect("room");
    assert_eq!(names(folder.path()).len(), 1);
    assert_eq!(served(&files, &saved[0]).await, Err(410));
}

#[tokio::test]
async fn files_are_not_evicted_before_expiry_and_refusals_have_retry_after() {
    // Section 8: a URL is valid for its hour.
    let files = GeneratedFiles::in_memory(10);
    let saved = keep(&files, "key", &[4, 4]).await.expect("room");
    let refused = keep(&files, "key", &[3]).await.expect_err("no room");
    assert!(matches!(refusal(refused), (503, Some(1..=60))));
    for file in &saved {
        assert_eq!(served(&files, file).await, Ok(vec![7; 4]));
    }
    let refused = keep(&files, "key", &[11]).await.expect_err("never");
    assert_eq!(refusal(refused), (503, None), "retrying does not help");
}

#[tokio::test]
async fn expired_files_free_their_space_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = in_folder(folder.path(), 10);
    keep_for(&files, "key", &[4, 4], Duration::ZERO).await.expect("room");
    let saved = keep(&files, "key", &[8]).await.expect("room again");
    assert_eq!(names(folder.path()), [saved[0].name.to_string()]);
}

#[tokio::test]
async fn key_cannot_exceed_its_share_of_the_space() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = in_folder(folder.path(), 100);
    let (mine, other) = ("mine".into(), "other".into());
    keep(&files, "mine", &[30]).await.expect("room");
    let room = files.reserve(&mine, KeyFileQuota::part(50), 20).await.expect("the rest of its share");
    let refused = files.reserve(&mine, KeyFileQuota::part(50), 1).await.err().expect("beyond its share");
    assert!(refused.to_string().contains("this API key"), "{refused}");
    assert!(matches!(refusal(refused), (429, Some(1..=60))));
    files.reserve(&other, KeyFileQuota::part(50), 50).await.expect("another key's share");
    // Alone, it may use the rest, too.
    files.reserve(&mine, KeyFileQuota::ALL, 50).await.expect("all of it");
    drop(room);
    assert_eq!(files.reserve(&mine, KeyFileQuota::part(50), 0).await.expect("nothing").most(), 50);
    let refused = files.reserve(&mine, KeyFileQuota::part(50), 51).await.err().expect("never");
    assert_eq!(refusal(refused), (429, None), "retrying does not help");
    assert_eq!(files.promised(), (0, 0));
}

#[tokio::test]
async fn key_limit_holds_across_gateways_that_share_a_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let gateways = [in_folder(folder.path(), 100), in_folder(folder.path(), 100)];
    let limited = |percent, bytes| KeyFileQuota { percent, bytes: Some(bytes) };
    let mine = "mine".into();
    for (files, bytes) in gateways.iter().zip([12, 5]) {
        let room = files.reserve(&mine, limited(100, 20), bytes).await.expect("within its limit");
        let contents = vec![vec![7; usize::try_from(bytes).expect("small")]];
        room.keep(FileKind::Png, contents, MINUTE).await.expect("kept");
    }
    for files in &gateways {
        let room = files.reserve(&mine, limited(100, 20), 3).await.expect("the rest of it");
        let refused = files.reserve(&mine, limited(100, 20), 1).await.err().expect("reservations count");
        drop(room);
        assert!(matches!(refusal(refused), (429, Some(1..=60))));
        let refused = files.reserve(&mine, limited(100, 20), 4).await.err().expect("beyond its limit");
        let expected = "generated files of this API key use 17 of the 20 bytes that its limit file_bytes allows, and this \
                    needs about 4; files expire and free space in ";
        assert!(refused.to_string().contains(expected), "{refused}");
        assert!(matches!(refusal(refused), (429, Some(1..=60))));
        let refused = files.reserve(&mine, limited(100, 20), 21).await.err().expect("never");
        assert!(refused.to_string().ends_with("request less, or use a key with a larger limit"), "{refused}");
        assert_eq!(refusal(refused), (429, None), "retrying does not help");
        // Other keys are unaffected.
        files.reserve(&"other".into(), KeyFileQuota::ALL, 83).await.expect("the rest of the room");
    }
    // The smaller of the key's limit and its share applies.
    let largest = async |most| gateways[0].reserve(&mine, most, 0).await.expect("nothing").most();
    assert_eq!((largest(limited(100, 20)).await, largest(limited(10, 20)).await), (20, 10));
    let refused = gateways[0].reserve(&mine, limited(15, 200), 1).await.err().expect("beyond its share");
    assert!(refused.to_string().contains("that one key may use"), "{refused}");
    // A limit larger than the total has no effect.
    let refused = gateways[0].reserve(&mine, limited(100, 1_000), 84).await.err().expect("no room");
    assert_eq!(refusal(refused).0, 503);
}

#[tokio::test]
async fn reservation_grows_while_there_is_room() {
    let files = GeneratedFiles::in_memory(10);
    let owner = "key".into();
    let mut room = files.reserve(&owner, KeyFileQuota::ALL, 0).await.expect("room");
    assert_eq!(room.most(), 10);
    room.grow(8).await.expect("room");
    room.grow(3).await.expect("it has more already");
    let other = files.reserve(&owner, KeyFileQuota::ALL, 2).await.expect("the rest");
    assert_eq!(refusal(room.grow(9).await.expect_err("no room")), (503, Some(1)), "work under way may end");
    drop(other);
    room.grow(9).await.expect("room again");
    drop(room);
    assert_eq!(files.promised(), (0, 0));
}

#[tokio::test]
async fn files_of_one_response_are_stored_all_or_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = in_folder(folder.path(), 10);
    assert!(keep(&files, "key", &[6, 6]).await.is_err());
    assert!(names(folder.path()).is_empty());
    assert_eq!(keep(&files, "key", &[5, 5]).await.expect("room").len(), 2);
}

#[tokio::test]
async fn reservation_is_held_until_the_work_ends() {
    let (files, owner) = (GeneratedFiles::in_memory(10), "key".into());
    let room = files.reserve(&owner, KeyFileQuota::ALL, 8).await.expect("room");
    assert!(files.reserve(&owner, KeyFileQuota::ALL, 3).await.is_err());
    drop(room);
    let room = files.reserve(&owner, KeyFileQuota::ALL, 8).await.expect("given back");
    room.keep(FileKind::Mp4, vec![vec![0; 2]], MINUTE).await.expect("room");
    assert!(
        files.reserve(&owner, KeyFileQuota::ALL, 8).await.is_ok(),
        "what was promised and not used is free"
    );
}

#[tokio::test]
async fn concurrent_reservations_never_exceed_the_space() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = in_folder(folder.path(), 100);
    let owner = "key".into();
    let work = (0..40).map(async |_| {
        let room = files.reserve(&owner, KeyFileQuota::ALL, 10).await.ok()?;
        room.keep(FileKind::Png, vec![vec![7; 10]], MINUTE).await.ok()
    });
    let saved = futures_util::future::join_all(work).await.into_iter().flatten().count();
    // A file counts twice while it is being recorded: that may reject one, but never lets too many in.
    assert!((1..=10).contains(&saved), "{saved}");
    assert_eq!((names(folder.path()).len(), files.promised()), (saved, (0, 0)));
    while keep(&files, "key", &[10]).await.is_ok() {}
    assert_eq!(names(folder.path()).len(), 10);
}

#[tokio::test]
async fn file_is_visible_only_when_complete() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = in_folder(folder.path(), 100 * 1024 * 1024);
    let mut room = files.reserve(&"key".into(), KeyFileQuota::ALL, 0).await.expect("room");
    let piece = vec![7; 1024 * 1024];
    let mut file = room.write(FileKind::Mp4).await.expect("started");
    for _ in 0..12 {
        file.put(&piece).await.expect("written");
    }
    assert!(names(folder.path()).iter().all(|name| name.ends_with("#1")), "{:?}", names(folder.path()));
    // The upstream broke off the transfer.
    drop(file);
    while !names(folder.path()).is_empty() {
        tokio::task::yield_now().await;
    }
    let mut file = room.write(FileKind::Mp4).await.expect("started again");
    for _ in 0..12 {
        file.put(&piece).await.expect("written");
    }
    let saved = file.finish(MINUTE, Instant::now()).await.expect("kept");
    assert_eq!(names(folder.path()), [saved.name.to_string()]);
    assert_eq!(served(&files, &saved).await.expect("a file").len(), 12 * piece.len());
    assert_eq!(files.promised(), (0, 0));
}

#[tokio::test]
async fn written_file_waits_for_an_unavailable_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = in_folder(folder.path(), 1_000);
    let mut room = files.reserve(&"key".into(), KeyFileQuota::ALL, 100).await.expect("room");
    let (database, away) = (folder.path().join("a.db"), folder.path().join("away"));
    let mut file = room.write(FileKind::Mp4).await.expect("started");
    file.put(&[7; 100]).await.expect("written");
    std::fs::rename(&database, &away).expect("taken");
    let deadline = Instant::now() + MINUTE;
    let (saved, written) = tokio::join!(file.finish(MINUTE, deadline), async {
        // Must be one listing: a file may appear between two.
        let written = loop {
            let there = names(folder.path());
            if !there.is_empty() && there.iter().all(|name| !name.contains('#')) {
                break there;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        std::fs::rename(&away, &database).expect("put back");
        written
    });
    let saved = saved.expect("it is recorded");
    assert_eq!(written, [saved.name.to_string()], "it is written once");
    assert_eq!(served(&files, &saved).await.expect("a file").len(), 100);
    // After the deadline, the caller gets an error.
    let mut room = files.reserve(&"key".into(), KeyFileQuota::ALL, 100).await.expect("room");
    std::fs::rename(&database, &away).expect("taken");
    let file = room.write(FileKind::Mp4).await.expect("started");
    assert!(file.finish(MINUTE, Instant::now()).await.is_err());
}

/// Another gateway may have removed it by then, because it was not recorded.
#[tokio::test]
async fn file_that_waited_too_long_for_the_store_is_not_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = in_folder(folder.path(), 1_000);
    let mut room = files.reserve(&"key".into(), KeyFileQuota::ALL, 100).await.expect("room");
    let file = room.write(FileKind::Mp4).await.expect("started");
    std::fs::rename(folder.path().join("a.db"), folder.path().join("away")).expect("taken");
    tokio::time::pause();
    let started = Instant::now();
    assert!(file.finish(LIFETIME, started + 10 * sweeping::LEFT).await.is_err());
    assert!(started.elapsed() < sweeping::LEFT, "{:?}", started.elapsed());
}

#[tokio::test]
async fn leftovers_of_a_crash_are_removed_and_other_files_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = in_folder(folder.path(), 100);
    let saved = keep(&files, "key", &[3]).await.expect("room");
    let lies = folder.path().join("files");
    // A file that was never recorded, partial files, and something that is not the gateway's.
    let unknown = lies.join(FileName::random(FileKind::Mp4).as_str());
    let part = lies.join(format!("{}#1", FileName::random(FileKind::Mp4)));
    let (fresh, fresh_part) = (
        lies.join(FileName::random(FileKind::Mp4).as_str()),
        lies.join(format!("{}#2", FileName::random(FileKind::Mp4))),
    );
    let (foreign, foreign_part) = (lies.join("README"), lies.join("README#1"));
    for file in [&unknown, &part, &fresh, &fresh_part, &foreign, &foreign_part] {
        std::fs::write(file, "x").expect("written");
    }
    let known = lies.join(saved[0].name.as_str());
    for file in [&unknown, &part, &foreign, &foreign_part, &known] {
        age(file, sweeping::LEFT + MINUTE);
    }
    files.remove_left_over(sweeping::LEFT, 100, &mut None).await.expect("swept");
    let there =
        [&unknown, &part, &fresh, &fresh_part, &foreign, &foreign_part, &known].map(|file| file.exists());
    assert_eq!(there, [false, false, true, true, true, true, true]);
    assert_eq!(served(&files, &saved[0]).await, Ok(vec![7; 3]));
}

#[tokio::test]
async fn sweep_resumes_where_it_stopped() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = in_folder(folder.path(), 100);
    let lies = folder.path().join("files");
    for _ in 0..12 {
        let file = lies.join(FileName::random(FileKind::Png).as_str());
        std::fs::write(&file, "x").expect("written");
        age(&file, sweeping::LEFT + MINUTE);
    }
    let mut listing = None;
    files.remove_left_over(sweeping::LEFT, 10, &mut listing).await.expect("swept");
    assert_eq!((names(folder.path()).len(), listing.is_some()), (2, true));
    files.remove_left_over(sweeping::LEFT, 10, &mut listing).await.expect("swept");
    assert_eq!((names(folder.path()).len(), listing.is_some()), (0, false));
}

#[tokio::test]
async fn huge_file_is_read_in_chunks() {
    const TEBIBYTE: u64 = 1 << 40;

    let folder = tempfile::tempdir().expect("a folder");
    let files = in_folder(folder.path(), 100);
    let saved = keep(&files, "key", &[3]).await.expect("room");
    let place = folder.path().join("files").join(saved[0].name.as_str());
    let file = std::fs::OpenOptions::new().write(true).open(place).expect("a file");
    // It takes no disk space: its contents were never written.
    file.set_len(TEBIBYTE).expect("a sparse file");
    let (name, query) = parts(&files.address(&saved[0]));
    let open = files.open(&name, &query).await.expect("a file");
    assert_eq!(open.bytes, TEBIBYTE);
    let end = open.read(TEBIBYTE - 4..TEBIBYTE).await.expect("a part");
    assert_eq!(end.try_collect::<Vec<_>>().await.expect("a part").concat(), [0; 4]);
    let mut pieces = open.read(2..TEBIBYTE).await.expect("all but two bytes");
    let first = pieces.try_next().await.expect("readable").expect("a piece");
    assert!(first.starts_with(&[7, 0]) && first.len() <= 1024 * 1024, "{}", first.len());
    // Truncating it causes an error, not a regular end.
    file.set_len(3).expect("a short file");
    assert!(pieces.try_collect::<Vec<_>>().await.is_err());
}

#[tokio::test]
async fn missing_folder_is_reported_and_not_recreated() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = in_folder(folder.path(), 100);
    let saved = keep(&files, "key", &[3]).await.expect("room");
    let (here, away) = (folder.path().join("files"), folder.path().join("away"));
    std::fs::rename(&here, &away).expect("taken away");
    let refused = keep(&files, "key", &[3]).await.expect_err("no folder");
    assert!(!refused.to_string().contains(folder.path().to_str().expect("text")), "{refused}");
    assert_eq!(refusal(refused), (503, Some(30)));
    assert_eq!(served(&files, &saved[0]).await, Err(503));
    assert!(!here.exists());
    std::fs::rename(&away, &here).expect("put back");
    assert_eq!(served(&files, &saved[0]).await, Ok(vec![7; 3]));
    // Another folder is mounted over this one.
    std::fs::rename(here.join(saved[0].name.as_str()), folder.path().join("elsewhere")).expect("moved");
    assert_eq!(served(&files, &saved[0]).await, Err(503));
    assert_eq!(files.promised(), (0, 0));
}

#[tokio::test]
async fn files_are_not_stored_without_the_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = in_folder(folder.path(), 100);
    let saved = keep(&files, "key", &[3]).await.expect("room");
    let room = files.reserve(&"key".into(), KeyFileQuota::ALL, 10).await.expect("room");
    std::fs::rename(folder.path().join("a.db"), folder.path().join("b.db")).expect("taken away");
    let refused = room.keep(FileKind::Png, vec![vec![7; 10]], MINUTE).await.expect_err("no store");
    assert_eq!((refusal(refused), files.promised()), ((503, Some(30)), (0, 0)));
    // It may have been recorded as far as we know; a later sweep removes it.
    assert_eq!(names(folder.path()).len(), 2);
    // Files that exist are served.
    assert_eq!(served(&files, &saved[0]).await, Ok(vec![7; 3]));
}
