//! Where objects go: relations that a person sees at a glance, and layouts in which every relation is clear.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::world::{Background, Colour, Kind, Object, Pattern, Scene, Size, closed};
use itm_core::data::Bounds;

closed! {
    /// The position of one object relative to another.
    pub Relation {
        /// Wholly to its left, and not steeply above or below.
        LeftOf,
        /// Wholly to its right, and not steeply above or below.
        RightOf,
        /// Wholly higher in the picture, and not far to a side.
        Above,
        /// Wholly lower in the picture, and not far to a side.
        Below,
        /// Within the hole of a ring or a frame.
        Inside,
        /// Overlapping it, drawn later.
        InFrontOf,
        /// Overlapping it, drawn earlier.
        Behind,
        /// Side by side with little between them.
        NextTo,
    }
}

impl Relation {
    /// Whether object `a` of the scene stands in this relation to object `b`.
    pub(crate) fn holds(self, scene: &Scene, a: usize, b: usize) -> bool {
        self.holds_by(0.0, scene, a, b)
    }

    /// Whether the relation holds when every threshold is harder (positive slack) or easier (negative slack) to meet.
    fn holds_by(self, slack: f32, scene: &Scene, a: usize, b: usize) -> bool {
        let (p, q) = (&scene.objects[a], &scene.objects[b]);
        let ((px, py), (qx, qy)) = (p.bounds.centre(), q.bounds.centre());
        let (dx, dy) = (qx - px, qy - py);
        // A gap between them along one axis, and an angle of less than 59 degrees from that axis.
        let beyond = |gap: f32, along: f32, across: f32| {
            gap >= GAP + slack && along >= (0.6 + 4.0 * slack) * across.abs()
        };
        let overlap = || {
            p.bounds.overlap(&q.bounds) / p.bounds.area().min(q.bounds.area()) >= 0.2 + 4.0 * slack
                && !nested(p, q, -slack)
                && !nested(q, p, -slack)
        };
        match self {
            Self::LeftOf => beyond(q.bounds.x1 - p.bounds.x2, dx, dy),
            Self::RightOf => beyond(p.bounds.x1 - q.bounds.x2, -dx, dy),
            Self::Above => beyond(q.bounds.y1 - p.bounds.y2, dy, dx),
            Self::Below => beyond(p.bounds.y1 - q.bounds.y2, -dy, dx),
            Self::Inside => nested(p, q, slack),
            Self::InFrontOf => a > b && overlap(),
            Self::Behind => a < b && overlap(),
            Self::NextTo => {
                let gap = (q.bounds.x1 - p.bounds.x2).max(p.bounds.x1 - q.bounds.x2);
                gap >= GAP + slack
                    && gap <= 0.17 - slack
                    && dx.abs() >= (1.5 + 4.0 * slack) * dy.abs()
            }
        }
    }

    /// Whether the answer is beyond doubt: slightly stricter and slightly looser thresholds give the same answer.
    pub(crate) fn is_clear(self, scene: &Scene, a: usize, b: usize) -> bool {
        self.holds_by(SLACK, scene, a, b) == self.holds_by(-SLACK, scene, a, b)
    }
}

/// Least distance at which two objects count as apart.
const GAP: f32 = 0.02;
/// Layouts keep at least this distance from every threshold.
pub(super) const SLACK: f32 = 0.01;
/// Least distance of an object from the edge of the picture.
const EDGE: f32 = 0.03;

fn nested(inner: &Object, outer: &Object, slack: f32) -> bool {
    let hole = outer.kind.hole();
    hole.is_some_and(|h| inner.bounds.clearance_in(&outer.bounds.scaled(h)) >= slack)
}

/// Draws a background and one to four objects; every relation among the objects is clear.
pub(super) fn scene(rng: &mut impl RngExt) -> Scene {
    let background = Background::draw(rng);
    let wanted =
        super::world::weighted(rng, [(1, 0.18), (2, 0.37), (3, 0.29), (4, 0.16)].into_iter());
    let mut scene = Scene { background, objects: Vec::with_capacity(wanted) };
    while scene.objects.len() < wanted {
        let object = draw_object(rng, &scene);
        // If no clear place is found, the scene keeps fewer objects.
        match place(rng, &scene, object) {
            Some(object) => scene.objects.push(object),
            None => break,
        }
    }
    scene
}

/// An object without a place. Often it is like the last object, so that captions have something to count.
fn draw_object(rng: &mut impl RngExt, scene: &Scene) -> Object {
    let bounds = Bounds::around(0.5, 0.5, 0.0, 0.0);
    let mut size = Size::draw(rng);
    match scene.objects.last() {
        Some(&last) if rng.random_bool(0.22) => {
            let colour =
                if rng.random_bool(0.7) { last.colour } else { Colour::draw(rng, last.kind) };
            let pattern = if rng.random_bool(0.7) { last.pattern } else { Pattern::draw(rng) };
            Object { kind: last.kind, colour, size: last.size, pattern, bounds }
        }
        _ => {
            let kind = Kind::draw(rng, scene.background);
            if kind.hole().is_some() && rng.random_bool(0.8) {
                size = Size::Large; // so that other objects fit inside
            }
            let colour = Colour::draw(rng, kind);
            Object { kind, colour, size, pattern: Pattern::draw(rng), bounds }
        }
    }
}

/// Finds a place where every relation between the object and the other objects is clear.
fn place(rng: &mut impl RngExt, scene: &Scene, mut object: Object) -> Option<Object> {
    let wished = object.size;
    let empty = |o: &&Object| o.kind.hole().is_some() && o.size == Size::Large;
    let holder = scene.objects.iter().find(empty).filter(|_| rng.random_bool(0.6));
    for attempt in 0..64 {
        let target = scene.objects.last().filter(|_| attempt < 8 && rng.random_bool(0.3));
        let held = holder.filter(|_| attempt < 12);
        // A large object becomes small to fill a hole, or when half of the attempts found no room.
        object.size = if held.is_some() || attempt >= 32 { Size::Small } else { wished };
        let mut side = rng.random_range(object.size.side());
        if held.is_some() {
            side = Size::Small.side().start; // the hole of a ring has room only for the smallest
        }
        let (w, h) = object.kind.aspect();
        let (w, h) = (w * side, h * side);
        // Sometimes the place is near another object: in its hole, or overlapping it.
        let (x, y) = match held.map(|o| (o, 0.03)).or(target.map(|o| (o, 0.3))) {
            Some((last, reach)) => {
                let (x, y) = last.bounds.centre();
                (x + rng.random_range(-reach..reach), y + rng.random_range(-reach..reach))
            }
            None => (rng.random::<f32>(), rng.random::<f32>()),
        };
        object.bounds = Bounds::around(x, y, w, h);
        let picture = Bounds { x1: 0.0, y1: 0.0, x2: 1.0, y2: 1.0 };
        if object.bounds.clearance_in(&picture) >= EDGE && fits(scene, object) {
            return Some(object);
        }
    }
    None
}

fn fits(scene: &Scene, object: Object) -> bool {
    let mut with = scene.clone();
    with.objects.push(object);
    let new = scene.objects.len();
    (0..new).all(|old| admissible(&scene.objects[old], &object) && clear(&with, old, new))
}

/// Whether two objects are clearly apart, clearly nested, or overlap so that both remain recognisable.
fn admissible(old: &Object, new: &Object) -> bool {
    let (gap_x, gap_y) = gaps(&old.bounds, &new.bounds);
    if gap_x.max(gap_y) >= GAP + SLACK {
        return true;
    }
    if nested(new, old, SLACK) {
        return old.colour != new.colour;
    }
    let share = old.bounds.overlap(&new.bounds) / old.bounds.area().min(new.bounds.area());
    // A hole shows what is behind it, and two overlapping objects of one colour would look like one object.
    let holes = old.kind.hole().is_some() || new.kind.hole().is_some();
    !holes && old.colour != new.colour && (0.25..=0.42).contains(&share)
}

fn gaps(p: &Bounds, q: &Bounds) -> (f32, f32) {
    ((q.x1 - p.x2).max(p.x1 - q.x2), (q.y1 - p.y2).max(p.y1 - q.y2))
}

fn clear(scene: &Scene, a: usize, b: usize) -> bool {
    Relation::ALL.iter().all(|r| r.is_clear(scene, a, b) && r.is_clear(scene, b, a))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    fn scene_of(objects: &[(Kind, Bounds)]) -> Scene {
        let object = |&(kind, bounds)| Object {
            kind,
            colour: Colour::Red,
            size: Size::Small,
            pattern: Pattern::Plain,
            bounds,
        };
        Scene { background: Background::Sand, objects: objects.iter().map(object).collect() }
    }

    fn relations(scene: &Scene, a: usize, b: usize) -> Vec<Relation> {
        Relation::ALL.iter().copied().filter(|r| r.holds(scene, a, b)).collect()
    }

    #[test]
    fn relations_by_hand() {
        use Relation::*;
        let ball = |x, y| (Kind::Ball, Bounds::around(x, y, 0.2, 0.2));
        let near = scene_of(&[ball(0.2, 0.5), ball(0.5, 0.55)]); // gap 0.1
        assert_eq!(relations(&near, 0, 1), [LeftOf, NextTo]);
        assert_eq!(relations(&near, 1, 0), [RightOf, NextTo]);
        let far = scene_of(&[ball(0.2, 0.5), ball(0.8, 0.5)]); // gap 0.4
        assert_eq!(relations(&far, 0, 1), [LeftOf]);
        let diagonal = scene_of(&[ball(0.2, 0.2), ball(0.6, 0.6)]);
        assert_eq!(relations(&diagonal, 0, 1), [LeftOf, Above]);
        assert_eq!(relations(&diagonal, 1, 0), [RightOf, Below]);
        let steep = scene_of(&[ball(0.2, 0.2), ball(0.45, 0.85)]); // apart in x, but steeply above
        assert_eq!(relations(&steep, 0, 1), [Above]);
        let over = scene_of(&[ball(0.4, 0.5), ball(0.5, 0.55)]); // 0.1 × 0.15 of 0.04
        assert_eq!(relations(&over, 0, 1), [Behind]);
        assert_eq!(relations(&over, 1, 0), [InFrontOf]);
        let frame = (Kind::Frame, Bounds::around(0.5, 0.5, 0.4, 0.4)); // its hole has side 0.28
        let held = scene_of(&[frame, ball(0.52, 0.5)]);
        assert_eq!(relations(&held, 1, 0), [Inside]);
        assert_eq!(relations(&held, 0, 1), []);
        let on_the_rim = scene_of(&[frame, ball(0.58, 0.5)]); // in the frame's box, not in its hole
        assert_eq!(relations(&on_the_rim, 1, 0), [InFrontOf]);
    }

    #[test]
    fn every_generated_relation_is_beyond_doubt() {
        let mut seen = [0; 8];
        for seed in 0..600 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let scene = scene(&mut rng);
            assert!((1..=4).contains(&scene.objects.len()));
            for a in 0..scene.objects.len() {
                for b in (0..scene.objects.len()).filter(|&b| b != a) {
                    // Move one box by less than the slack: no relation may change.
                    let held = relations(&scene, a, b);
                    held.iter().for_each(|&r| seen[r as usize] += 1);
                    for (dx, dy) in [(0.004, 0.0), (-0.004, 0.0), (0.0, 0.004), (0.0, -0.004)] {
                        let mut moved = scene.clone();
                        let o = &mut moved.objects[a].bounds;
                        (o.x1, o.x2, o.y1, o.y2) = (o.x1 + dx, o.x2 + dx, o.y1 + dy, o.y2 + dy);
                        assert_eq!(relations(&moved, a, b), held, "seed {seed}: {a} to {b}");
                    }
                }
            }
        }
        assert!(seen.iter().all(|&n| n >= 15), "every relation occurs: {seen:?}");
    }

    #[test]
    fn objects_stay_in_the_picture_and_recognisable() {
        for seed in 0..300 {
            let scene = scene(&mut ChaCha8Rng::seed_from_u64(seed));
            for (i, o) in scene.objects.iter().enumerate() {
                assert!(o.bounds.x1 >= EDGE - 1e-6 && o.bounds.y2 <= 1.0 - EDGE + 1e-6);
                let side = o.bounds.width().max(o.bounds.height());
                assert!(side >= o.size.side().start - 1e-4 && side <= o.size.side().end + 1e-4);
                let hidden: f32 = scene.objects[i + 1..]
                    .iter()
                    .filter(|later| o.kind.hole().is_none() && !nested(later, o, 0.0))
                    .map(|later| later.bounds.overlap(&o.bounds))
                    .sum();
                assert!(hidden <= 0.85 * o.bounds.area(), "seed {seed}, object {i}");
            }
        }
    }
}
