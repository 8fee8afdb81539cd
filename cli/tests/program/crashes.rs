//! Accepted work is completed, wherever the gateway stops: at each step of the store and of files in turn.

mod scenes;
mod upkeep;

use std::path::Path;

use serde_json::Value;

use self::scenes::Scene;
use crate::run;
use crate::webhooks::{Listening, serve_with, submission, wait_until};

/// The minimum number of points from the start of a gateway to the delivery of a notification.
const POINTS: u32 = 80;
/// The points are divided among this many tests, each of which continues until the gateway runs to the end.
const PARTS: u32 = 4;

/// The distance between the steps that are tried: every step if `GATEWRIGHT_EVERY_STEP` is set, as in the nightly run. Where a
/// step takes long, only a few are tried after each change.
fn stride(few: usize) -> usize {
    if std::env::var_os("GATEWRIGHT_EVERY_STEP").is_some() { 1 } else { few }
}

/// Submits a video to a gateway that stops at a point, then starts a second gateway. Returns whether the first one stopped.
fn stopped_at(point: u32, folder: &Path, listening: &mut Listening) -> bool {
    let number = point.to_string();
    let first = serve_with(folder, &[("GATEWRIGHT_CRASH_AT", &number)]);
    let accepted = first.as_ref().and_then(|gateway| {
        let body = submission(&listening.url);
        let answer = gateway.try_call("POST", "/v1/videos/generations", &body)?;
        Some(answer["id"].as_str().expect("an id").to_owned())
    });
    let data = folder.join("data");
    let data = data.to_str().expect("a path");
    let Some(task) = accepted else {
        drop(first);
        drop(serve_with(folder, &[]).expect("it starts"));
        assert_eq!(run(&["store", "check", "--data", data]).status.code(), Some(0), "point {point}");
        return true;
    };
    let mut first = first.expect("it accepted a task");
    let mut is_over = false;
    wait_until("the gateway stops, or tells the end", || {
        is_over = first.has_stopped();
        is_over || listening.has_reported(&task)
    });
    drop(first);

    let second = serve_with(folder, &[]).expect("it starts");
    let path = format!("/v1/videos/generations/{task}");
    let mut ended = Value::Null;
    wait_until("the task ends", || {
        ended = second.call("GET", &path, "");
        ended["status"] == "completed" || ended["status"] == "failed"
    });
    assert_eq!(ended["status"], "completed", "point {point}: {ended}");
    assert_eq!(scenes::contents(&second, &ended).len(), 1, "point {point}");
    wait_until("the end is reported", || listening.has_reported(&task));
    drop(second);
    let check = run(&["store", "check", "--data", data]);
    assert_eq!(check.status.code(), Some(0), "point {point}: {}", String::from_utf8_lossy(&check.stderr));
    is_over
}

fn stop_at_every(part: u32) {
    let mut listening = Listening::of_all();
    let comes_to_the_end = |point: &u32| {
        let folder = tempfile::tempdir().expect("a folder");
        !stopped_at(*point, folder.path(), &mut listening)
    };
    let few = stride(4) * PARTS as usize;
    let survived = (1 + part..).step_by(few).find(comes_to_the_end).expect("it reaches the end");
    assert!(survived > POINTS, "{survived}");
}

#[test]
fn nothing_accepted_is_lost_at_any_step_first_part() {
    stop_at_every(0);
}

#[test]
fn nothing_accepted_is_lost_at_any_step_second_part() {
    stop_at_every(1);
}

#[test]
fn nothing_accepted_is_lost_at_any_step_third_part() {
    stop_at_every(5);
}

#[test]
fn nothing_accepted_is_lost_at_any_step_last_part() {
    stop_at_every(3);
}

/// 2.10: a key that was returned works, and a name is never lost.
#[test]
fn created_key_works_wherever_the_gateway_stops() {
    scenes::created_key_works(&Scene::in_folder());
}

#[test]
fn revoked_key_is_rejected_wherever_the_gateway_stops() {
    scenes::revoked_key_is_rejected(&Scene::in_folder());
}

#[test]
fn rotated_key_has_one_secret_wherever_the_gateway_stops() {
    scenes::rotated_key_has_one_secret(&Scene::in_folder());
}

#[test]
fn repeated_request_gets_one_response_wherever_the_gateway_stops() {
    scenes::request_repeated_with_its_key_gets_one_response(&Scene::in_folder());
}

#[test]
fn reported_response_is_stored_wherever_the_gateway_stops() {
    scenes::reported_response_is_stored(&Scene::in_folder());
}

#[test]
fn response_stored_upstream_is_found_wherever_the_gateway_stops() {
    let (upstream, config) = scenes::upstream_of_responses();
    scenes::reported_response_stored_upstream_is_found(&Scene::in_folder_with(config), &upstream);
}

#[test]
fn deleted_response_stays_deleted_wherever_the_gateway_stops() {
    scenes::deleted_response_stays_deleted(&Scene::in_folder());
}

#[cfg(unix)]
#[test]
fn pushed_configuration_is_used_wherever_the_gateway_stops() {
    scenes::pushed_configuration_is_used(&Scene::sharing_in_folder());
}

#[test]
fn usage_counts_once_wherever_the_gateway_stops() {
    scenes::usage_counts_once(&Scene::in_folder());
}

#[test]
fn usage_taken_over_counts_once_wherever_the_gateway_stops() {
    scenes::usage_taken_over_counts_once(&Scene::in_folder());
}

/// The journal, from the request that it records to its removal.
#[cfg(unix)]
#[test]
fn usage_counts_once_wherever_the_gateway_stops_while_removing_its_journal() {
    let scene = Scene::in_folder().at_steps_of("usage/journal.rs").at_every(1);
    scenes::usage_counts_once_when_the_gateway_shuts_down(&scene, 6);
}

/// The spool, from the first item to the removal of the last one.
#[cfg(unix)]
#[test]
fn responses_sent_without_the_store_are_replayed_wherever_it_stops() {
    scenes::responses_sent_without_the_store_are_repeated(&Scene::in_folder().at_steps_of("store/src/spool"));
}

/// Reported images are complete, and unreported ones are removed.
#[test]
fn reported_images_are_complete_wherever_the_gateway_stops() {
    scenes::reported_images_are_complete(&Scene::in_folder_with(scenes::pictures()), 20);
}

/// Part of its file may be on the disk when the gateway stops.
#[test]
fn upstream_video_is_complete_wherever_the_gateway_stops() {
    let scene = Scene::in_folder_with(scenes::upstream_of_films()).at_every(5);
    scenes::upstream_video_is_stored_completely(&scene, 30);
}

/// The same before and after each request that changes the bucket where files are stored.
#[test]
fn reported_images_in_a_bucket_are_complete_wherever_the_gateway_stops() {
    let scene = Scene::in_folder_with(scenes::pictures()).with_bucket();
    scenes::reported_images_are_complete(&scene, 16);
}

#[test]
fn upstream_video_in_a_bucket_is_complete_wherever_the_gateway_stops() {
    let scene = Scene::in_folder_with(scenes::upstream_of_films()).with_bucket();
    scenes::upstream_video_is_stored_completely(&scene, 12);
}

/// 6: manual redelivery, too.
#[test]
fn notification_is_redelivered_wherever_the_gateway_stops() {
    scenes::notification_due_for_redelivery_is_redelivered(&Scene::in_folder());
}

/// 3: the gateway that takes over may stop, too.
#[cfg(unix)]
#[test]
fn task_ends_once_wherever_the_gateway_taking_it_over_stops() {
    scenes::task_taken_over_twice_ends_once(None, (1..).step_by(stride(23)));
}

#[cfg(unix)]
mod postgres {
    use gatewright_test_stores::Postgres;

    use super::scenes::{self, Scene};
    use super::stride;

    /// Another gateway of the store answers for the one that stops.
    #[test]
    fn reported_changes_persist_for_other_gateways_wherever_one_stops() {
        let server = Postgres::start();
        let scene = Scene::on_server(server.url(), String::new());
        scenes::created_key_works(&scene);
        scenes::revoked_key_is_rejected(&scene);
        scenes::request_repeated_with_its_key_gets_one_response(&scene);
        scenes::reported_response_is_stored(&scene);
        scenes::usage_counts_once(&scene);
        scenes::notification_due_for_redelivery_is_redelivered(&scene);
    }

    #[test]
    fn changes_persist_for_other_gateways_wherever_one_stops() {
        let server = Postgres::start();
        let (upstream, config) = scenes::upstream_of_responses();
        let scene = Scene::on_server(server.url(), config);
        scenes::rotated_key_has_one_secret(&scene);
        scenes::deleted_response_stays_deleted(&scene);
        scenes::reported_response_stored_upstream_is_found(&scene, &upstream);
    }

    #[test]
    fn pushed_configuration_is_used_by_other_gateways_wherever_one_stops() {
        let server = Postgres::start();
        scenes::pushed_configuration_is_used(&Scene::sharing_on_server(server.url()));
    }

    #[test]
    fn shared_configuration_is_complete_wherever_copying_it_stopped() {
        let server = Postgres::start();
        scenes::gateway_starts_with_a_complete_configuration(server.url());
    }

    /// The file records are on the server, the files in a folder.
    #[test]
    fn reported_files_are_complete_for_other_gateways_wherever_one_stops() {
        let server = Postgres::start();
        scenes::reported_images_are_complete(&Scene::on_server(server.url(), scenes::pictures()), 20);
    }

    #[test]
    fn accepted_video_is_complete_for_other_gateways_wherever_one_stops() {
        let server = Postgres::start();
        let scene = Scene::on_server(server.url(), String::new()).at_every(13);
        scenes::video_from_the_simulator_is_stored(&scene, 20);
    }

    #[test]
    fn upstream_video_is_complete_for_other_gateways_wherever_one_stops() {
        let server = Postgres::start();
        let scene = Scene::on_server(server.url(), scenes::upstream_of_films()).at_every(23);
        scenes::upstream_video_is_stored_completely(&scene, 20);
    }

    /// Its journal is in a folder.
    #[test]
    fn usage_taken_over_counts_once_wherever_the_gateway_stops() {
        let server = Postgres::start();
        let scene = Scene::on_server(server.url(), String::new()).at_every(13);
        scenes::usage_taken_over_counts_once(&scene);
    }

    /// 3: the gateway that takes over may stop, too.
    #[test]
    fn task_ends_once_wherever_the_gateway_taking_it_over_stops() {
        let server = Postgres::start();
        scenes::task_taken_over_twice_ends_once(Some(server.url()), (1..).step_by(stride(7)));
    }
}
