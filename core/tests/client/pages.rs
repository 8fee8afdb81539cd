//! Lists that come in pages, as streams of their items.

use futures_util::{Stream, StreamExt as _, TryStreamExt as _, future};
use gatewright::types::{ListResponseInputItemsOrder, ResponseItem};
use gatewright::{Client, Error, ErrorKind};
use serde_json::json;

use crate::server::{Script, Server};

/// A page of this many items, the first of which has this number.
fn page(first: u32, count: u32, has_more: bool) -> Script {
    let ids: Vec<String> = (first..first + count).map(|number| format!("item_{number}")).collect();
    let item = |id: &String| json!({"type": "message", "id": id, "role": "user", "content": []});
    let data: Vec<_> = ids.iter().map(item).collect();
    let page = json!({
        "object": "list", "data": data, "first_id": ids.first(), "last_id": ids.last(), "has_more": has_more,
    });
    Script::json(&page.to_string())
}

/// A page of models with these names.
fn models(names: &[&str], next: &str) -> Script {
    let models: Vec<_> = names.iter().map(|name| json!({"name": format!("models/{name}")})).collect();
    Script::json(&json!({"models": models, "nextPageToken": next}).to_string())
}

fn all_items(client: &Client) -> impl Stream<Item = Result<ResponseItem, Error>> + Unpin + use<> {
    client.responses().input_items().list_all("resp_1", None, None, None)
}

fn targets(server: &Server) -> Vec<String> {
    let target = |line: &str| line.split(' ').nth(1).unwrap().to_owned();
    server.requests().iter().map(|request| target(&request.line)).collect()
}

#[tokio::test]
async fn items_of_all_pages_follow_each_other_and_a_page_is_fetched_when_it_is_needed() {
    let server = Server::start([page(0, 2, true), page(2, 2, true), page(4, 1, false)]).await;
    let client = server.client();
    let order = Some(ListResponseInputItemsOrder::Asc);
    let mut items = client.responses().input_items().list_all("resp 1", Some("item"), Some(2), order);
    let mut ids = Vec::new();
    while let Some(item) = items.try_next().await.unwrap() {
        ids.push(item.id.unwrap());
        assert_eq!(server.requests().len(), ids.len().div_ceil(2));
    }
    assert_eq!(ids, ["item_0", "item_1", "item_2", "item_3", "item_4"]);
    assert!(items.next().await.is_none());
    let path = "/v1/responses/resp%201/input_items?limit=2&order=asc&after=";
    assert_eq!(targets(&server), ["item", "item_1", "item_3"].map(|after| format!("{path}{after}")));
}

#[tokio::test]
async fn models_go_on_until_a_page_has_no_token() {
    let server = Server::start([models(&["a"], "t 1"), models(&[], "t2"), models(&["b", "c"], "")]).await;
    let models: Vec<_> = server.client().native().models().list_all(Some(1)).try_collect().await.unwrap();
    let names: Vec<_> = models.iter().map(|model| model.name.as_str()).collect();
    assert_eq!(names, ["models/a", "models/b", "models/c"]);
    let [first, second, third]: [String; 3] = targets(&server).try_into().unwrap();
    assert_eq!(first, "/v1beta/models?pageSize=1");
    assert!(second.contains("pageToken=t") && third.ends_with("pageToken=t2"), "{second} {third}");
}

#[tokio::test]
async fn list_that_leads_back_to_an_earlier_page_is_an_error() {
    for length in [1, 2, 3] {
        let pages = (0..20).map(|number| page(number % length, 1, true));
        let server = Server::start(pages).await;
        let mut items = all_items(&server.client());
        let mut count = 0;
        let error = loop {
            match items.try_next().await {
                Ok(item) => count += u32::from(item.is_some()),
                Err(error) => break error,
            }
        };
        assert!((length..4 * length).contains(&count), "{count} of {length}");
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Decode, Some("list_response_input_items")));
        assert!(error.message().contains("leads back to an earlier page: item_"), "{error}");
        assert_eq!(error.status(), Some(200));
    }
}

#[tokio::test]
async fn page_that_failed_is_fetched_again_by_the_next_read() {
    let failure = || Script::whole(404, &[], r#"{"error":{"message":"no such response"}}"#);
    let server = Server::start([page(0, 1, true), failure(), failure(), page(1, 1, false)]).await;
    let mut items = all_items(&server.client());
    assert_eq!(items.try_next().await.unwrap().unwrap().id.as_deref(), Some("item_0"));
    for _ in 0..2 {
        assert_eq!(items.try_next().await.unwrap_err().kind(), ErrorKind::NotFound);
    }
    assert_eq!(items.try_next().await.unwrap().unwrap().id.as_deref(), Some("item_1"));
    assert!(items.try_next().await.unwrap().is_none());
}

#[tokio::test]
async fn reader_that_ignores_errors_comes_to_an_end() {
    let failure = || Script::whole(404, &[], r#"{"error":{"message":"no such response"}}"#);
    let server = Server::start((0..100).map(|_| failure())).await;
    let items = all_items(&server.client()).filter_map(|item| future::ready(item.ok()));
    assert_eq!(items.count().await, 0);
    assert_eq!(server.requests().len(), 17);
}
