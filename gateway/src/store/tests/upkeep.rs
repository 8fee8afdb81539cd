//! Moving what a database holds into another one.

use std::io::Cursor;
use std::time::Duration;

use super::kinds::{Shared, sqlite};
use crate::keys::{Digest, NewKey};
use crate::store::history::{Change, Holder, Place};
use crate::store::{KeyRecord, Most, NewConfig, Notice, State, Store, Task};

async fn exported(store: &dyn Store) -> String {
    let mut text = String::new();
    let mut lines = |line: &str| {
        text.push_str(line);
        text.push('\n');
        Ok(())
    };
    store.export(&mut lines).await.expect("rows");
    text
}

/// Puts something into each table that has columns of its own kind.
async fn fill(store: &dyn Store) {
    let mut new = NewKey::new("ci \" \u{1f980}".to_owned());
    new.limits.file_bytes = Some(5_000_000_000);
    let record = KeyRecord { key: new.issue(7), digest: Digest([9; 32]), old: None };
    store.add_key(record).await.expect("a store").expect("a name");
    store.pepper_check(Digest([3; 32])).await.expect("a store");
    let holder = Holder { upstream: "one".into(), key: Some(i64::MIN), model: "mine".into() };
    let place = Place { id: "resp_1".into(), owner: "k".into(), holder };
    store.change_places(&[Change::Kept(place)]).await.expect("a store");
    let config = NewConfig { made: 7, author: "ada", repeats: None, document: "# \u{1f980}\n" };
    assert_eq!(store.add_config(config, None).await.expect("a store"), Some(1));
    let most = Most { of_key: 9, of_all: 9, notices: 9, notices_of_key: 9, ended_hundredths: 100 };
    for (id, announced) in [("a", true), ("b", false)] {
        let (owner, model) = ("k".into(), "m".into());
        let task = Task { id: id.to_owned(), owner, created: 1, model, state: State::Pending };
        let lease = store
            .add_task(&task, announced, most, Duration::from_secs(5))
            .await
            .expect("a store")
            .expect("a place");
        if announced {
            let text = str::to_owned;
            let notice = Notice {
                id: text("m"),
                task: text("a"),
                owner: text("k"),
                url: text("https://x/"),
                body: text("{}"),
            };
            assert!(store.end_task(&lease, &State::failed("why"), Some(&notice)).await.expect("a store"));
        }
    }
}

async fn move_over(from: Shared, to: Shared) {
    fill(&*from.one).await;
    let rows = exported(&*from.one).await;
    assert_eq!(to.one.import(&mut Cursor::new(&rows)).await.expect("all rows"), 6);
    assert_eq!(exported(&*to.other).await, rows);
    assert_eq!(to.other.list_keys(false).await.expect("keys")[0].limits.file_bytes, Some(5_000_000_000));
    assert!(to.other.damage().await.expect("an answer").is_empty());
    // Not twice, and not in part.
    let refused = to.one.import(&mut Cursor::new(&rows)).await.expect_err("it is not empty").to_string();
    assert!(refused.contains("the store is not empty"), "{refused}");
}

mod postgres {
    use super::super::kinds::{postgres, sqlite};

    #[tokio::test]
    async fn what_one_machine_kept_goes_to_a_server_of_several() {
        super::move_over(sqlite(), postgres()).await;
    }

    #[tokio::test]
    async fn what_several_kept_goes_back_to_one_machine() {
        super::move_over(postgres(), sqlite()).await;
    }
}

#[tokio::test]
async fn rows_that_cannot_be_read_leave_nothing_behind() {
    let from = sqlite();
    fill(&*from.one).await;
    let rows = exported(&*from.one).await;
    let all = rows.strip_suffix("{\"rows\":6}\n").expect("its end");
    for (broken, why) in [
        (all.to_owned(), "the file ends too early"),
        (all.to_owned() + "{\"rows\":4}\n", "4 rows were written, and 6 are here"),
        (all.to_owned() + "{}\n", "line 8"),
        (all.to_owned() + "{\"table\": \"state\", \"row\": {}}\n", "there is no table"),
        (all.to_owned() + "{\"table\": \"keys\", \"row\": {\"id\": 7}}\n", "id of keys is no Text"),
        (all.to_owned() + "{\"table\": \"keys\", \"row\": {\"x\": 7}}\n", "has no column"),
        (rows.replacen("\"migration\":", "\"migration\":400", 1), "a newer version"),
        (String::new(), "the file is empty"),
        ("{}\n".to_owned(), "it is not the beginning"),
    ] {
        let to = sqlite();
        let error = to.one.import(&mut Cursor::new(&broken)).await.expect_err(why).to_string();
        assert!(error.contains(why), "{error}");
        assert_eq!(exported(&*to.one).await.lines().count(), 2, "{why}");
    }
}
