//! Calls every operation of the harbor and the library through their generated clients, and compares the results with the exchanges. `cargo xtask
//! test other-api` builds and runs it; without the generated code there is nothing to call.

#[cfg(not(other_api))]
fn main() {}

#[cfg(other_api)]
#[allow(unused, unreachable_pub, clippy::all, clippy::pedantic, reason = "both APIs call the same macros")]
mod api {
    include!(concat!(env!("OTHER_API"), "/harbour/api/mod.rs"));
}
#[cfg(other_api)]
#[allow(
    dead_code,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    reason = "generated, as a crate of its own would be"
)]
mod harbour {
    include!(concat!(env!("OTHER_API"), "/harbour/mod.rs"));
}
#[cfg(other_api)]
#[allow(
    dead_code,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    reason = "generated, as a crate of its own would be"
)]
mod library {
    include!(concat!(env!("OTHER_API"), "/library/mod.rs"));
}

#[cfg(other_api)]
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    use gatewright::{ErrorKind, FilePart};
    use serde_json::{Value, from_value, json, to_value};

    use harbour::resources::Resources;
    use harbour::types::{
        BerthRequest, Channel, FindBerthsState, ForecastRequest, ForecastRequestLayout, Level, LogRequest,
        ManifestRequest, Move, Notice, NoticeRequest,
    };

    let text = std::fs::read_to_string(std::env::var("EXCHANGES")?)?;
    let exchanges: Value = serde_json::from_str(&text)?;
    let expected = |name: &str| exchanges[name]["answer"]["json"].clone();

    let client = gatewright::Client::from_env()?;
    let harbour = Resources::new(&client);
    let berths = harbour.berths();

    let state = Some(FindBerthsState::Free);
    let piloted = harbour.berths().with_x_pilot("ada");
    let listed = piloted.list("nyc", Some("east"), Some(5), state).await?;
    assert_eq!(listed.status(), 200);
    let ship = listed[0].ship.as_ref().expect("a ship is there");
    assert_eq!(
        ship.engine.as_ref().map(|engine| (engine.kind.as_str(), engine.masts)),
        Some(("sail", Some(3)))
    );
    assert_eq!(listed[0].note, None);
    assert_eq!(to_value(&*listed)?, expected("an array"));
    assert!(berths.list("osl", None, None, None).await?.is_empty());
    let error = berths.list("none", None, None, None).await.expect_err("no such harbour");
    assert_eq!((error.kind(), error.message()), (ErrorKind::NotFound, "no such harbour"));

    let request: BerthRequest =
        from_value(json!({"length_m": 120.5, "cargo": {"kind": "grain", "tonnes": 12.5}}))?;
    let opened = piloted.yield_("nyc", Some(true), Some(2), &request).await?;
    assert_eq!(opened.status(), 201);
    assert_eq!(opened.cargo.as_ref().and_then(|cargo| cargo.tonnes), Some(12.5));
    let request: BerthRequest =
        from_value(json!({"length_m": 30.5, "cargo": {"kind": "livestock", "heads": 3}}))?;
    let opened = berths.yield_("osl", None, None, &request).await?;
    let cargo = opened.cargo.as_ref().expect("it has cargo");
    assert_eq!((cargo.kind.as_str(), &cargo.extra["heads"]), ("livestock", &json!(3)));

    let berth = berths.retrieve("nyc", 7).await?;
    assert_eq!(to_value(&*berth)?, expected("a number in the path"));
    let request: Move = from_value(json!({"from": "6", "class": "cargo", "async": true, "fn": "repair"}))?;
    let record = berths.move_("nyc", 7, &request).await?;
    assert_eq!(record.type_, "move");
    assert_eq!(record.lines, [vec!["from".to_owned(), "6".to_owned()], Vec::new()]);
    assert_eq!(record.self_.as_ref().map(|before| before.type_.as_str()), Some("stay"));

    let closed = berths.del("nyc", 7).await?;
    assert_eq!(closed.status(), 204);
    let () = closed.into_inner();
    assert_eq!(berths.signals().raise("nyc").await?.status(), 202);

    let chart = harbour.charts().import("depth", "large").await?;
    let digits: String = chart.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(json!(digits), exchanges["bytes"]["answer"]["bytes"]);
    let log = harbour.log().lambda("monday").await?;
    assert_eq!(json!(*log), exchanges["text"]["answer"]["text"]);

    let request: LogRequest =
        from_value(exchanges["arguments with the names of what methods keep"]["body"].clone())?;
    let written = harbour.log().write(&request).await?;
    assert_eq!(written.depth["pier"], 4.5);
    assert_eq!(to_value(&*written)?, expected("arguments with the names of what methods keep"));

    let file = FilePart::new("größe \"a\"\r\n.csv", b"\0\r\n--\xff".as_slice()).with_media_type("text/csv");
    let request = ManifestRequest::new(file, "Ada \"of\r\nOslo\" ü")
        .with_level(Level::Calm)
        .with_tonnes(12.5)
        .with_urgent(true)
        .with_marks(vec!["dry".to_owned(), "heavy".to_owned()])
        .with_berths(vec![7])
        .with_pages(vec![FilePart::new("1.txt", "1"), FilePart::new("2.txt", "")]);
    assert_eq!(harbour.manifests().submit("nyc", &request).await?.any, Some(json!("taken")));

    let request = ForecastRequest::new(2).with_layout(ForecastRequestLayout::Table);
    assert_eq!(harbour.forecasts().make(&request).await?.wind, [4, 7]);
    let request = ForecastRequest::new(2).with_layout(ForecastRequestLayout::Letter);
    let letter = harbour.forecasts().make_text(&request).await?;
    assert_eq!(json!(*letter), exchanges["a text that a word of the request asks for"]["answer"]["text"]);
    let mut days = harbour.forecasts().stream(&ForecastRequest::new(2)).await?;
    let mut winds = Vec::new();
    while let Some(day) = days.try_next().await? {
        winds.push(day.wind);
    }
    assert_eq!(winds, [Some(4), Some(7), None]);
    let broken = harbour.forecasts().stream(&ForecastRequest::new(3)).await?;
    let error = broken.finish().await.expect_err("its last event is missing");
    assert_eq!(error.kind(), ErrorKind::StreamTruncated);

    let basins = harbour.waters().streams().match_().await?;
    assert_eq!((basins["east"][0].name.as_str(), basins["west"].len()), ("Bille", 0));
    assert_eq!(to_value(&*basins)?, expected("a map of arrays"));

    let channel = |number| Channel { number, extra: serde_json::Map::new() };
    let channels = [("constructor", channel(7)), ("east", channel(16))];
    let channels: indexmap::IndexMap<_, _> =
        channels.map(|(name, channel)| (name.to_owned(), channel)).into();
    let request = NoticeRequest::new(Level::Error, channels.into())
        .with_until(1_767_323_045)
        .with_größe("large")
        .with_tiefe("deep")
        .with_secret("s")
        .with_builtins("b")
        .with_str("t");
    #[expect(deprecated, reason = "the specification marks it as deprecated")]
    let notices = harbour.notices().hoist(Some(true), &request).await?;
    // The first form of the union would fit both but for its kind.
    assert!(matches!(&notices[..], [Notice::Heard(heard), Notice::Sent(_)] if heard.ship == "Ada"));
    let name = "idioms of OpenAPI 3.0, and names that are hard to spell";
    assert_eq!(to_value(&*notices)?, expected(name));
    assert_eq!("err".parse::<Level>()?, Level::Err);

    call_library(&client, &exchanges).await
}

/// The operations of the library.
#[cfg(other_api)]
async fn call_library(
    client: &gatewright::Client,
    exchanges: &serde_json::Value,
) -> Result<(), Box<dyn std::error::Error>> {
    use library::types::{
        Item, ItemKind, ListItemsKindItem, LoanEventState, NewItem, ScanItemRequest, Shelf, UpdateItemRequest,
    };

    let expected = |name: &str| exchanges[name]["answer"]["json"].clone();
    let library = library::resources::Resources::new(client);

    let kinds = [ListItemsKindItem::Book, ListItemsKindItem::Film];
    let traced = library.items().with_x_request_id("r-1");
    let page = traced.list(Some("a"), Some(&[3, 4]), Some(&kinds), Some(2), Some("-title")).await?;
    let [Item::Book(book), Item::Film(film)] = &page.data[..] else { panic!("{page:?}") };
    assert_eq!((book.pages, book.barcode, film.minutes), (Some(352), Some(42), Some(124.5)));
    assert_eq!(book.extra["lent"], false);
    assert!(matches!(film.shelf, Some(Shelf::String(ref room)) if room == "cellar"));
    assert_eq!(serde_json::to_value(&*page)?, expected("lists in a query, and a header"));
    let last = library.items().list(page.next_cursor.as_deref(), None, None, None, None).await?;
    assert!(last.data.is_empty() && last.next_cursor.is_none());

    let item = NewItem::new("Walden", ItemKind::Book).with_pages(352).with_shelf("cellar");
    let added = library.items().with_x_request_id("r-2").add(&item).await?;
    assert!(matches!(&*added, Item::Book(book) if book.title == "Walden" && book.barcode.is_none()));
    let found = traced.get_by_id("77a0").await?;
    assert!(matches!(&*found, Item::Film(_)));
    let moved = UpdateItemRequest::default().with_id("6a01").with_shelf(3);
    let moved = library.items().update("5f4d", &moved).await?;
    assert!(matches!(&*moved, Item::Film(film) if matches!(film.shelf, Some(Shelf::Integer(3)))));

    let scan = ScanItemRequest::new(gatewright::FilePart::new("scan", b"\x89PNG".as_slice()));
    library.items().scan("5f4d", &scan).await?;

    let mut events = library.loans().watch("l1").await?;
    let mut states = Vec::new();
    while let Some(event) = events.try_next().await? {
        states.push(event.state);
    }
    assert_eq!(states, [LoanEventState::Lent, LoanEventState::Returned]);
    let last = library.loans().watch("l1").await?.finish().await?;
    assert_eq!(last.extra["note"], "wet");
    Ok(())
}
