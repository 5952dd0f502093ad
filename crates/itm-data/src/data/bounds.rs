//! A box in a picture.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// A box in picture units: 0 is left or top, 1 right or bottom.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// Left edge.
    pub x1: f32,
    /// Top edge.
    pub y1: f32,
    /// Right edge.
    pub x2: f32,
    /// Bottom edge.
    pub y2: f32,
}

/// How far an edge may be outside the picture: this allows for rounding to f16.
const SLACK: f32 = 1e-3;

impl Bounds {
    /// A box with the edges x1, y1, x2, y2, which must be inside the picture.
    ///
    /// # Errors
    /// If the box is not inside; the error names `place`.
    pub(super) fn inside(place: impl Fn() -> String, edges: [f32; 4]) -> Result<Self> {
        let [x1, y1, x2, y2] = edges;
        let within = edges.iter().all(|e| (-SLACK..=1.0 + SLACK).contains(e));
        if !within || x1 > x2 || y1 > y2 {
            let expected =
                "x1, y1, x2, y2 in shares of the picture, 0 ≤ x1 ≤ x2 ≤ 1, 0 ≤ y1 ≤ y2 ≤ 1";
            return Err(Error::invalid(place(), expected, format!("{edges:?}")));
        }
        Ok(Self { x1, y1, x2, y2 })
    }

    /// The box of a centre, a width and a height.
    pub fn around(x: f32, y: f32, width: f32, height: f32) -> Self {
        let (w, h) = (width / 2.0, height / 2.0);
        Self { x1: x - w, y1: y - h, x2: x + w, y2: y + h }
    }

    /// Its centre.
    pub fn centre(&self) -> (f32, f32) {
        ((self.x1 + self.x2) / 2.0, (self.y1 + self.y2) / 2.0)
    }

    /// Its width.
    pub fn width(&self) -> f32 {
        self.x2 - self.x1
    }

    /// Its height.
    pub fn height(&self) -> f32 {
        self.y2 - self.y1
    }

    /// Its area.
    pub fn area(&self) -> f32 {
        self.width() * self.height()
    }

    /// Area shared with another box.
    pub fn overlap(&self, other: &Self) -> f32 {
        let w = self.x2.min(other.x2) - self.x1.max(other.x1);
        let h = self.y2.min(other.y2) - self.y1.max(other.y1);
        w.max(0.0) * h.max(0.0)
    }

    /// Smallest distance from an edge of this box to the same edge of `outer`; negative if this box sticks out.
    pub fn clearance_in(&self, outer: &Self) -> f32 {
        let x = (self.x1 - outer.x1).min(outer.x2 - self.x2);
        x.min(self.y1 - outer.y1).min(outer.y2 - self.y2)
    }

    /// The box scaled about its centre.
    pub fn scaled(&self, factor: f32) -> Self {
        let (x, y) = self.centre();
        Self::around(x, y, self.width() * factor, self.height() * factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_overlap_and_nest() {
        let a = Bounds { x1: 0.0, y1: 0.0, x2: 0.4, y2: 0.2 };
        let b = Bounds { x1: 0.3, y1: 0.1, x2: 0.5, y2: 0.5 };
        assert!((a.overlap(&b) - 0.01).abs() < 1e-6);
        assert!((a.overlap(&b.scaled(0.1))).abs() < 1e-9);
        let outer = Bounds { x1: -0.1, y1: -0.2, x2: 0.9, y2: 0.9 };
        assert!((a.clearance_in(&outer) - 0.1).abs() < 1e-6);
        assert!(b.clearance_in(&a) < 0.0);
    }
}
