//! The task that keeps reading a stream, whether or not its reader is there.

use std::sync::Arc;

use super::inbox::{Inbox, Level, State, StreamReader};

/// Starts the task, if there is no reader and the level is known.
pub(super) fn start<E: Send + 'static>(inbox: &Arc<Inbox<E>>, state: &mut State<E>) {
    if state.pump.is_none()
        && state.end.is_none()
        && !state.as_document
        && let Some(level) = state.level
        && let Some(stream) = state.stream.take()
    {
        let reader = StreamReader::new(stream, inbox);
        state.pump = Some(inbox.runtime.spawn(pump(reader, level)).abort_handle());
    }
}

async fn pump<E>(mut reader: StreamReader<E>, level: Level) {
    let inbox = Arc::clone(&reader.inbox);
    reader.stream().drive();
    loop {
        let (events, end) = tokio::select! {
            biased;
            read = reader.read(level) => read,
            () = inbox.recalled.notified() => {
                if hand_back(&mut reader) {
                    return;
                }
                continue;
            }
        };
        if end.is_some() {
            // The document may be requested immediately.
            reader.settle(events, end);
            return;
        }
        if !inbox.put(events, None) {
            inbox.room().await;
        }
    }
}

/// Prepares the stream for a reader that watches the connection itself; false if that's not possible.
fn hand_back<E>(reader: &mut StreamReader<E>) -> bool {
    let watched = reader.stream().watch();
    let mut state = reader.inbox.lock();
    state.watched = watched;
    if state.watched.is_some() {
        state.pump = None;
    }
    state.watched.is_some()
}
