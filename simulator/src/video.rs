//! Simulated videos: a moving picture derived from the prompt, as an MP4 file for ordinary players.

use super::h264::{Colour, Encoder};
use super::mp4::{self, Track};
use super::palette::{Palette, Shape};

/// Pictures per second. Low, since a simulation needs no smooth motion and each picture costs time.
pub const RATE: u32 = 10;

/// Width and height of a resolution and aspect ratio in samples (2.6): the resolution is the shorter side. `None` if
/// the specification lacks either.
pub fn size(resolution: &str, aspect_ratio: &str) -> Option<(u16, u16)> {
    let (short, long) = match resolution {
        "720p" => (720, 1280),
        "1080p" => (1080, 1920),
        _ => return None,
    };
    match aspect_ratio {
        "16:9" => Some((long, short)),
        "9:16" => Some((short, long)),
        "1:1" => Some((short, short)),
        _ => None,
    }
}

/// Estimates the size of a video in bytes, erring on the high side.
pub fn expected_bytes((width, height): (u16, u16), duration_s: u32) -> usize {
    let (columns, rows) = Encoder::new(usize::from(width), usize::from(height)).blocks();
    // A block takes two to three bytes (h264.rs).
    columns * rows * 4 * (duration_s * RATE) as usize
}

/// Encodes a video. `duration_s`: whole seconds. Takes tens of milliseconds per second of video: call it from a
/// blocking thread.
pub fn encode(prompt: &str, (width, height): (u16, u16), duration_s: u32) -> Vec<u8> {
    let palette = Palette::of(prompt);
    let mut encoder = Encoder::new(usize::from(width), usize::from(height));
    let sequence_parameters = encoder.sequence_parameters();
    let picture_parameters = Encoder::picture_parameters();
    let (columns, rows) = encoder.blocks();
    let aspect = f64::from(width) / f64::from(height);
    // Edges are as wide as a block: the deblocking filter then rounds them.
    let edge = 1.0 / float(rows);
    let pictures: Vec<Vec<u8>> = (0..duration_s * RATE)
        .map(|picture| {
            let seconds = f64::from(picture) / f64::from(RATE);
            let shapes: Vec<Shape> = palette.shapes().iter().map(|shape| shape.at(seconds)).collect();
            encoder.picture(|column, row| {
                let x = centre(column, columns);
                let y = centre(row, rows);
                Colour::from_rgb(palette.colour(&shapes, (x, y), aspect, edge))
            })
        })
        .collect();
    mp4::file(
        &Track {
            width,
            height,
            rate: RATE,
            sequence_parameters: &sequence_parameters,
            picture_parameters: &picture_parameters,
        },
        &pictures,
    )
}

/// Center of block `index` of `count`, from 0 to 1.
fn centre(index: usize, count: usize) -> f64 {
    (float(index) + 0.5) / float(count)
}

fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
