//! The log for a person at a terminal: a short line per request.

use std::fmt;
use std::time::Duration;

use gatewright::visible::visible;
use time::OffsetDateTime;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::amount;
use crate::terminal::{BOLD, DIM, GREEN, Paint, RED, YELLOW};

/// The gateway's message for a completed response.
const ANSWERED: &str = "answered";
/// Maximum length of a value in a line, in characters.
const MAX_LINE_CHARS: usize = 200;

/// Writes events as short lines.
pub(super) struct Lines {
    pub(super) paint: Paint,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &tracing::Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let now = OffsetDateTime::now_utc();
        let clock = format!("{:02}:{:02}:{:02}Z", now.hour(), now.minute(), now.second());
        write!(writer, "{} ", self.paint.paint(DIM, clock))?;
        if fields.get("message") == Some(ANSWERED) {
            self.answered(&mut writer, &fields)
        } else {
            self.other(&mut writer, *event.metadata().level(), &fields)
        }
    }
}

impl Lines {
    /// `200 POST /v1/chat/completions  model-sol  simulator  12 ms  3.4 KiB`; with the request id if it failed.
    fn answered(&self, writer: &mut Writer<'_>, fields: &Fields) -> fmt::Result {
        let of = |name: &str| fields.get(name).unwrap_or_default();
        let status: u16 = of("status").parse().unwrap_or_default();
        let style = match status {
            ..400 => GREEN,
            400..500 => YELLOW,
            _ => RED,
        };
        let status = self.paint.paint(style, status);
        write!(writer, "{status} {} {}", of("method"), self.paint.paint(BOLD, of("path")))?;
        for name in ["model", "upstream"] {
            if let Some(value) = fields.get(name) {
                write!(writer, "  {value}")?;
            }
        }
        let ms = of("duration_ms").parse().unwrap_or(0.0) / 1000.0;
        let took = Duration::try_from_secs_f64(ms).unwrap_or_default();
        let size = of("bytes").parse().unwrap_or_default();
        let amounts = format!("{}  {}", amount::time(took), amount::bytes(size));
        write!(writer, "  {}", self.paint.paint(DIM, amounts))?;
        let outcome = of("outcome");
        if outcome != "complete" {
            write!(writer, "  {}", self.paint.paint(RED, outcome))?;
        }
        if outcome != "complete" || style != GREEN {
            write!(writer, "  {}", self.paint.paint(DIM, of("request_id")))?;
        }
        writeln!(writer)
    }

    fn other(&self, writer: &mut Writer<'_>, level: tracing::Level, fields: &Fields) -> fmt::Result {
        let style = match level {
            tracing::Level::ERROR => RED,
            tracing::Level::WARN => YELLOW,
            _ => DIM,
        };
        let level = level.as_str().to_lowercase();
        write!(writer, "{} {}", self.paint.paint(style, level), fields.get("message").unwrap_or_default())?;
        for (name, value) in fields.0.iter().filter(|(name, _)| *name != "message") {
            write!(writer, "  {}", self.paint.paint(DIM, format_args!("{name}={value}")))?;
        }
        writeln!(writer)
    }
}

/// The fields of an event, as text that is safe to show.
#[derive(Default)]
struct Fields(Vec<(&'static str, String)>);

impl Fields {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    fn add(&mut self, field: &tracing::field::Field, value: &str) {
        let cut = value.char_indices().nth(MAX_LINE_CHARS).map_or(value.len(), |(at, _)| at);
        let more = if cut < value.len() { "…" } else { "" };
        self.0.push((field.name(), format!("{}{more}", visible(&value[..cut]))));
    }
}

impl tracing::field::Visit for Fields {
    fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
        self.add(field, value);
    }

    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
        self.add(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The logged lines, without the time.
    fn lines(log: impl FnOnce()) -> Vec<String> {
        let written = Written::default();
        let made = written.clone();
        let layer = tracing_subscriber::fmt::layer()
            .with_writer(move || made.clone())
            .event_format(Lines { paint: Paint::none() });
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        let text = String::from_utf8(written.0.lock().expect("no panic").clone()).expect("text");
        text.lines().map(|line| line["00:00:00Z ".len()..].to_owned()).collect()
    }

    #[test]
    fn request_is_logged_as_a_short_line() {
        let lines = lines(|| {
            tracing::info!(
                method = %"POST", path = "/v1/responses", operation = Some("create_response"), status = 200_u16,
                outcome = "complete", duration_ms = 12.5, bytes = 3500_u64, model = Some("model-sol"),
                upstream = Some("one"), request_id = "req_1", "answered"
            );
            tracing::info!(
                method = %"GET", path = "/\u{1b}[2J", operation = None::<&str>, status = 404_u16,
                outcome = "aborted", duration_ms = 0.25, bytes = 0_u64, model = None::<&str>,
                upstream = None::<&str>, request_id = "req_2", "answered"
            );
        });
        assert_eq!(
            lines,
            [
                "200 POST /v1/responses  model-sol  one  12 ms  3.4 KiB",
                "404 GET /\\u{1b}[2J  0.2 ms  0 B  aborted  req_2",
            ]
        );
    }

    #[test]
    fn other_events_show_level_and_fields_truncated() {
        let lines = lines(|| tracing::warn!(peer = %"p".repeat(500), "a\nconnection"));
        assert_eq!(lines, [format!("warn a\\u{{a}}connection  peer={}…", "p".repeat(MAX_LINE_CHARS))]);
    }
}
