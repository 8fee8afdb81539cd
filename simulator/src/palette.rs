//! The design for a prompt: the colors of a gradient and the shapes on it, for both images and videos. Positions are
//! fractions of width and height; radii are fractions of the height.

use super::seed::Seed;

/// Number of shapes on the gradient.
const SHAPES: usize = 6;

/// The corner colors of the gradient, and the shapes.
#[derive(Debug)]
pub(crate) struct Palette {
    corners: [[f64; 3]; 4],
    shapes: Vec<Shape>,
}

/// A disc or a ring.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    x: f64,
    y: f64,
    radius: f64,
    /// Thickness of a ring; twice the radius makes a disc.
    thickness: f64,
    colour: [f64; 3],
    /// Fractions per second.
    speed: (f64, f64),
}

impl Shape {
    /// The shape at its position after `seconds`; it bounces off the edges.
    pub(crate) fn at(&self, seconds: f64) -> Self {
        let bounce = |start: f64, speed: f64| {
            let position = (start + speed * seconds).rem_euclid(2.0);
            if position > 1.0 { 2.0 - position } else { position }
        };
        Self { x: bounce(self.x, self.speed.0), y: bounce(self.y, self.speed.1), ..self.clone() }
    }

    /// Whether the shape may cover any point of the row at height `y`. Avoids testing every shape for every point.
    pub(crate) fn reaches(&self, y: f64) -> bool {
        (y - self.y).abs() <= self.radius + 0.05
    }

    /// How much the shape covers the point, 0 to 1; `softness` is the width of its edge.
    fn cover(&self, x: f64, y: f64, aspect: f64, softness: f64) -> f64 {
        let distance = ((x - self.x) * aspect).hypot(y - self.y);
        let inside = self.thickness / 2.0 - (distance - (self.radius - self.thickness / 2.0)).abs();
        (inside / softness + 0.5).clamp(0.0, 1.0)
    }
}

impl Palette {
    /// The palette of a prompt; equal prompts give equal palettes.
    pub(crate) fn of(prompt: &str) -> Self {
        let mut seed = Seed::of(prompt);
        let hue = seed.fraction();
        let corners = [0.0, 0.12, 0.3, 0.45].map(|turn| rgb((hue + turn).fract(), 0.65, 0.85));
        let shapes = (0..SHAPES)
            .map(|_| {
                let radius = 0.08 + 0.17 * seed.fraction();
                Shape {
                    x: seed.fraction(),
                    y: seed.fraction(),
                    radius,
                    thickness: if seed.below(2) == 0 { 2.0 * radius } else { radius / 3.0 },
                    colour: rgb((hue + 0.4 + 0.3 * seed.fraction()).fract(), 0.75, 0.95),
                    speed: (0.25 * seed.fraction() - 0.125, 0.25 * seed.fraction() - 0.125),
                }
            })
            .collect();
        Self { corners, shapes }
    }

    /// The shapes at their initial positions.
    pub(crate) fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    /// The color at a point. `aspect`: width over height. `softness`: width of the shapes' edges, at most 0.1.
    pub(crate) fn colour(&self, shapes: &[Shape], (x, y): (f64, f64), aspect: f64, softness: f64) -> [u8; 3] {
        let [top_left, top_right, bottom_left, bottom_right] = &self.corners;
        let mut colour = mix(mix(*top_left, *top_right, x), mix(*bottom_left, *bottom_right, x), y);
        for shape in shapes {
            colour = mix(colour, shape.colour, 0.85 * shape.cover(x, y, aspect, softness));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0 to 255")]
        colour.map(|channel| (channel * 255.0).round().clamp(0.0, 255.0) as u8)
    }
}

fn mix(from: [f64; 3], to: [f64; 3], share: f64) -> [f64; 3] {
    let channel = |index: usize| from[index] + (to[index] - from[index]) * share;
    [channel(0), channel(1), channel(2)]
}

/// Converts hue, saturation and value, each 0 to 1, to RGB.
fn rgb(hue: f64, saturation: f64, value: f64) -> [f64; 3] {
    [5.0, 3.0, 1.0].map(|offset: f64| {
        let position = (offset + hue * 6.0).rem_euclid(6.0);
        value - value * saturation * position.min(4.0 - position).clamp(0.0, 1.0)
    })
}
