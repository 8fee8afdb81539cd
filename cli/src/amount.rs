//! Human-readable amounts: sizes and times.

use std::time::Duration;

/// A size: `850 B`, `3.4 KiB`, `10 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let (mut whole, mut rest, mut unit) = (bytes, 0, "B");
    for larger in UNITS {
        if whole < 1024 {
            break;
        }
        (rest, unit) = (whole % 1024, larger);
        whole /= 1024;
    }
    match rest * 10 / 1024 {
        0 => format!("{whole} {unit}"),
        tenths => format!("{whole}.{tenths} {unit}"),
    }
}

/// A time: `0.4 ms`, `850 ms`, `1.2 s`, `2 min 5 s`.
pub(crate) fn time(time: Duration) -> String {
    let (ms, seconds) = (time.as_millis(), time.as_secs());
    match ms {
        0..10 => format!("{}.{} ms", ms, time.as_micros() % 1000 / 100),
        10..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{seconds}.{} s", time.subsec_millis() / 100),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_rounded_to_short_text() {
        assert_eq!(
            [0, 850, 3500, 10 << 20, u64::MAX].map(bytes),
            ["0 B", "850 B", "3.4 KiB", "10 MiB", "16777215.9 TiB"]
        );
        let times = [400, 850_000, 1_250_000, 125_000_000].map(|us| time(Duration::from_micros(us)));
        assert_eq!(times, ["0.4 ms", "850 ms", "1.2 s", "2 min 5 s"]);
    }
}
