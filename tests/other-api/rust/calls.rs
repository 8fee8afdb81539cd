//! Calls every operation of the harbor through its generated client, and compares the results with the exchanges. `cargo xtask
//! test other-api` builds and runs it; without the generated code there is nothing to call.

#[cfg(not(other_api))]
fn main() {}

#[cfg(other_api)]
#[allow(unused, unreachable_pub, reason = "not every specification has every kind of type")]
mod api;
#[cfg(other_api)]
#[allow(
    dead_code,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    reason = "generated, as a crate of its own would be"
)]
mod harbour {
    include!(concat!(env!("OTHER_API"), "/mod.rs"));
}

#[cfg(other_api)]
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    use gatewright::ErrorKind;
    use serde_json::{Value, from_value, json, to_value};

    use harbour::resources::Resources;
    use harbour::types::{BerthRequest, FindBerthsState, LogRequest, Move};

    let text = std::fs::read_to_string(std::env::var("EXCHANGES")?)?;
    let exchanges: Value = serde_json::from_str(&text)?;
    let expected = |name: &str| exchanges[name]["answer"]["json"].clone();

    let client = gatewright::Client::from_env()?;
    let harbour = Resources::new(&client);
    let berths = harbour.berths();

    let state = Some(FindBerthsState::Free);
    let listed = berths.list("nyc", Some("east"), Some(5), state, Some("ada")).await?;
    assert_eq!(listed.status(), 200);
    let ship = listed[0].ship.as_ref().expect("a ship is there");
    assert_eq!(
        ship.engine.as_ref().map(|engine| (engine.kind.as_str(), engine.masts)),
        Some(("sail", Some(3)))
    );
    assert_eq!(listed[0].note, None);
    assert_eq!(to_value(&*listed)?, expected("an array"));
    assert!(berths.list("osl", None, None, None, None).await?.is_empty());
    let error = berths.list("none", None, None, None, None).await.expect_err("no such harbour");
    assert_eq!((error.kind(), error.message()), (ErrorKind::NotFound, "no such harbour"));

    let request: BerthRequest =
        from_value(json!({"length_m": 120.5, "cargo": {"kind": "grain", "tonnes": 12.5}}))?;
    let opened = berths.yield_("nyc", Some(true), Some(2), Some("ada"), &request).await?;
    assert_eq!(opened.status(), 201);
    assert_eq!(opened.cargo.as_ref().and_then(|cargo| cargo.tonnes), Some(12.5));
    let request: BerthRequest =
        from_value(json!({"length_m": 30.5, "cargo": {"kind": "livestock", "heads": 3}}))?;
    let opened = berths.yield_("osl", None, None, None, &request).await?;
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

    let basins = harbour.waters().streams().match_().await?;
    assert_eq!((basins["east"][0].name.as_str(), basins["west"].len()), ("Bille", 0));
    assert_eq!(to_value(&*basins)?, expected("a map of arrays"));
    Ok(())
}
