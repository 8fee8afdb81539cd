//! Videos whose usage differs from what the upstream made.

use super::*;

/// A task that was reported, and a submission to which the client got this response.
fn two(outcome: Outcome) -> Script {
    let mut script = sound();
    let operation = Operation::Submit { intent: BAD, once: None, notifies: false };
    script.call((20_000, 20_500), (0, "default"), operation, outcome);
    script
}

/// The upstream has the second one, too.
fn made(outcome: Outcome) -> Script {
    let mut script = two(outcome);
    script.line(20_100, Event::Filmed { node: 0, intent: BAD });
    script
}

#[test]
fn video_that_is_not_counted_or_counted_twice_is_detected() {
    sound().films_counted("default", 1, 1).is_sound();
    sound().films_counted("default", 0, 0).breaks("videos are counted");
    sound().films_counted("default", 2, 2).breaks("videos are counted");
    sound().films_counted("default", 2, 1).breaks("videos are counted");
    sound().films_counted("default", 1, 0).breaks("videos are counted");
    // Each key has its own.
    sound().films_counted("other", 1, 1).breaks("videos are counted");
    sound().films_counted("default", 1, 1).films_counted("other", 1, 1).breaks("videos are counted");
    // A row for texts doesn't count as one for videos.
    sound().counted("default", &[]).breaks("videos are counted");
}

#[test]
fn video_of_a_reported_task_counts_despite_faults_of_its_gateway() {
    for fault in [
        Fault::Killed { node: 0 },
        Fault::Stopped { node: 0 },
        Fault::Paused { node: 0 },
        Fault::Store,
        cut(0),
    ] {
        sound().fault(fault, 5, 3_000).films_counted("default", 1, 1).is_sound();
        sound().fault(fault, 11, 3_000).films_counted("default", 0, 0).breaks("videos are counted");
        sound().fault(fault, 5, 3_000).films_counted("default", 0, 0).breaks("videos are counted");
        sound().fault(fault, 5, 3_000).films_counted("default", 1, 0).breaks("videos are counted");
        sound().fault(fault, 5, 3_000).films_counted("default", 2, 2).breaks("videos are counted");
    }
}

#[test]
fn video_whose_response_was_lost_counts() {
    for outcome in [lost(), refused(503)] {
        made(outcome.clone()).films_counted("default", 2, 2).is_sound();
        made(outcome.clone()).films_counted("default", 1, 1).breaks("videos are counted");
        made(outcome).films_counted("default", 2, 1).breaks("videos are counted");
    }
}

#[test]
fn video_may_be_missing_only_if_its_gateway_was_killed_too_early() {
    let killed = |node: usize, at: u64, outcome: Outcome| {
        let mut script = made(outcome);
        script.fault(Fault::Killed { node }, at, at + 500);
        script
    };
    let one = |mut script: Script| -> Script {
        script.films_counted("default", 1, 1);
        script
    };
    one(killed(0, 20_400, lost())).is_sound();
    // It arrived after the line of the fault, which is written before.
    one(killed(0, 20_090, lost())).is_sound();
    killed(0, 20_400, lost()).films_counted("default", 2, 2).is_sound();
    killed(0, 20_400, lost()).films_counted("default", 3, 2).breaks("videos are counted");
    killed(0, 20_400, lost()).films_counted("default", 0, 0).breaks("videos are counted");
    // Another one, before the upstream accepted it, or long after; and one that had responded.
    one(killed(1, 20_400, lost())).breaks("videos are counted");
    one(killed(0, 19_400, lost())).breaks("videos are counted");
    one(killed(0, 21_200, lost())).breaks("videos are counted");
    one(killed(0, 20_400, refused(503))).breaks("videos are counted");
    // It learned nothing while it hung.
    one(killed(0, 23_900, lost())).breaks("videos are counted");
    let hung = |node: usize| {
        let mut script = one(killed(0, 23_900, lost()));
        script.fault(Fault::Paused { node }, 20_050, 23_500);
        script
    };
    hung(0).is_sound();
    hung(1).breaks("videos are counted");
}

#[test]
fn abandoned_submission_may_count_as_started() {
    for fault in [Fault::Stopped { node: 0 }, Fault::Paused { node: 0 }, Fault::Store, cut(0)] {
        let left = |mut script: Script| {
            script.fault(fault, 20_010, 20_400);
            script
        };
        // It had not reached the upstream yet.
        left(two(lost())).films_counted("default", 1, 1).is_sound();
        left(two(lost())).films_counted("default", 2, 1).is_sound();
        left(two(lost())).films_counted("default", 2, 2).breaks("videos are counted");
        left(two(lost())).films_counted("default", 3, 1).breaks("videos are counted");
        let again = || Operation::Submit { intent: BAD, once: Some("x".to_owned()), notifies: false };
        let mut conflict = sound();
        conflict.call((19_000, 19_500), (1, "default"), again(), lost());
        conflict.call((20_000, 20_500), (0, "default"), again(), refused(409));
        left(conflict).films_counted("default", 2, 1).breaks("videos are counted");
        // It had, and counts.
        left(made(lost())).films_counted("default", 2, 1).is_sound();
        left(made(lost())).films_counted("default", 1, 1).breaks("videos are counted");
    }
    for fault in [Fault::Killed { node: 0 }, Fault::Stopped { node: 1 }, cut(1), Fault::Bucket] {
        two(lost()).fault(fault, 20_010, 20_400).films_counted("default", 2, 1).breaks("videos are counted");
    }
}

#[test]
fn tokens_and_costs_of_videos_are_detected() {
    let taken = |input: u64, output: u64, cost: u64| {
        let mut script = sound();
        let (key, model) = ("default".to_owned(), FILM.to_owned());
        let (requests, complete, estimated) = (1, 1, 0);
        let counted = Event::Counted { key, model, requests, complete, input, output, estimated, cost };
        script.line(90_000, counted);
        script
    };
    taken(0, 0, 0).is_sound();
    taken(1, 0, 0).breaks("videos take no tokens");
    taken(0, 1, 0).breaks("videos take no tokens");
    taken(0, 0, 1).breaks("videos take no tokens");
}
