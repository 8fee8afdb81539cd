//! Simulated images: draws a PNG of the requested size, with the palette of the prompt and the prompt as text on it.

use font8x8::UnicodeFonts;

use super::palette::{Palette, Shape};

/// Glyphs are 8 by 8 dots.
const GLYPH: usize = 8;
/// Width of the edges of shapes, as a fraction of the picture's height.
const EDGE: f64 = 0.003;
/// Maximum number of lines of the prompt in an image.
const LINES: usize = 3;

/// Estimates the size of `count` images in bytes, erring on the high side.
pub fn expected_bytes((width, height): (u32, u32), count: u32) -> usize {
    // A smooth image takes far less than a byte per four samples.
    width as usize * height as usize / 4 * count as usize
}

/// Draws an image. `variation`: index of the image among the `n` requested. Takes up to a second for the largest size in
/// a debug build: call it from a blocking thread.
pub fn draw(prompt: &str, variation: u32, (width, height): (u32, u32)) -> Vec<u8> {
    let palette = Palette::of(&format!("{variation}:{prompt}"));
    let (columns, rows) = (width as usize, height as usize);
    let aspect = f64::from(width) / f64::from(height);
    let mut pixels = Vec::with_capacity(columns * rows * 3);
    for row in 0..height {
        let y = (f64::from(row) + 0.5) / f64::from(height);
        let shapes: Vec<Shape> = palette.shapes().iter().filter(|shape| shape.reaches(y)).cloned().collect();
        for column in 0..width {
            let x = (f64::from(column) + 0.5) / f64::from(width);
            pixels.extend(palette.colour(&shapes, (x, y), aspect, EDGE));
        }
    }
    write_caption(&mut pixels, columns, rows, prompt);
    encode(&pixels, width, height)
}

/// Writes the beginning of the prompt in white with a dark shadow at the bottom left.
fn write_caption(pixels: &mut [u8], width: usize, height: usize, prompt: &str) {
    let scale = (width / 256).max(1);
    let margin = GLYPH * scale;
    let per_line = ((width.saturating_sub(2 * margin)) / (GLYPH * scale)).max(1);
    let characters: Vec<char> =
        prompt.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(per_line * LINES).collect();
    let lines: Vec<&[char]> = characters.chunks(per_line).collect();
    let line_height = (GLYPH + 2) * scale;
    let top = height.saturating_sub(margin + lines.len() * line_height);
    for (shift, shade) in [(scale.div_ceil(2), 24), (0, 255)] {
        for (number, line) in lines.iter().enumerate() {
            for (position, character) in line.iter().enumerate() {
                let left = margin + position * GLYPH * scale + shift;
                let dots = font8x8::BASIC_FONTS
                    .get(*character)
                    .or_else(|| font8x8::LATIN_FONTS.get(*character))
                    .or_else(|| font8x8::GREEK_FONTS.get(*character))
                    .unwrap_or([0xff, 0x81, 0x81, 0x81, 0x81, 0x81, 0xff, 0]);
                let area = Area { left, top: top + number * line_height + shift, scale, width, height };
                area.stamp(pixels, dots, shade);
            }
        }
    }
}

struct Area {
    left: usize,
    top: usize,
    scale: usize,
    width: usize,
    height: usize,
}

impl Area {
    fn stamp(&self, pixels: &mut [u8], dots: [u8; GLYPH], shade: u8) {
        for y in 0..GLYPH * self.scale {
            for x in 0..GLYPH * self.scale {
                let set = dots[y / self.scale] >> (x / self.scale) & 1 == 1;
                let (column, row) = (self.left + x, self.top + y);
                if set && column < self.width && row < self.height {
                    let start = (row * self.width + column) * 3;
                    pixels[start..start + 3].fill(shade);
                }
            }
        }
    }
}

fn encode(pixels: &[u8], width: u32, height: u32) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    let mut writer = encoder.write_header().expect("writing to memory does not fail");
    writer.write_image_data(pixels).expect("the buffer has the size of the picture");
    writer.finish().expect("writing to memory does not fail");
    file
}
