//! The parts of a scene and their frequencies: kinds, colours, sizes, patterns, backgrounds, boxes.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use itm_core::data::Bounds;

/// Declares a small closed vocabulary: an enum with `ALL`.
macro_rules! closed {
    ($(#[$doc:meta])* $vis:vis $name:ident {
        $($(#[$variant_doc:meta])* $variant:ident),+ $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        $vis enum $name { $($(#[$variant_doc])* $variant),+ }

        impl $name {
            /// Every value, in order.
            $vis const ALL: &'static [Self] = &[$(Self::$variant),+];
        }
    };
}
pub(super) use closed;

closed! {
    /// What an object is; commonest first.
    pub Kind {
        /// A disc with a highlight.
        Ball,
        /// A house with a pitched roof.
        House,
        /// A round tree on a trunk.
        Tree,
        /// A car seen from the side.
        Car,
        /// A ring; other objects may lie inside it.
        Ring,
        /// A boat under sail.
        Boat,
        /// A five-pointed star.
        Star,
        /// A bird with a raised wing.
        Bird,
        /// A fish.
        Fish,
        /// A square frame; other objects may lie inside it.
        Frame,
        /// Five petals on a stem.
        Flower,
        /// A cup with a handle.
        Cup,
        /// A block in three shades.
        Cube,
        /// A heart.
        Heart,
        /// An open umbrella.
        Umbrella,
        /// A kite with a tail.
        Kite,
        /// A hat with a band.
        Hat,
        /// A cone standing on its round base.
        Cone,
        /// A mushroom.
        Mushroom,
    }
}

closed! {
    /// The colour of an object's body; commonest first.
    pub Colour {
        /// Red.
        Red,
        /// Blue.
        Blue,
        /// Yellow.
        Yellow,
        /// Green.
        Green,
        /// White.
        White,
        /// Orange.
        Orange,
        /// Black.
        Black,
        /// Purple.
        Purple,
    }
}

closed! {
    /// How large an object is; the two ranges are far apart.
    pub Size {
        /// The longer side is under a quarter of the picture.
        Small,
        /// The longer side is over a third of the picture.
        Large,
    }
}

closed! {
    /// What the body is covered with; commonest first.
    pub Pattern {
        /// One colour.
        Plain,
        /// Slanted stripes in a second shade of the colour.
        Striped,
        /// Dots in a second shade of the colour.
        Dotted,
    }
}

closed! {
    /// Where the scene is; commonest first.
    pub Background {
        /// A lawn.
        Grass,
        /// A beach.
        Sand,
        /// The sea.
        Water,
        /// The planks of a table.
        Table,
        /// A snow field.
        Snow,
        /// The sky at night.
        Night,
    }
}

impl Kind {
    /// For the kinds with a hole: side of the free square in the middle, as a share of the side of the box.
    pub(crate) fn hole(self) -> Option<f32> {
        match self {
            Self::Ring => Some(0.52), // the square inscribed in a hole whose radius is 0.37 of the side
            Self::Frame => Some(0.68),
            _ => None,
        }
    }

    /// Width and height of the box; the longer side is 1.
    pub(super) fn aspect(self) -> (f32, f32) {
        match self {
            Self::Car => (1.0, 0.58),
            Self::Fish => (1.0, 0.62),
            Self::Bird => (1.0, 0.78),
            Self::Hat => (1.0, 0.66),
            Self::Cup => (1.0, 0.86),
            Self::Tree => (0.74, 1.0),
            Self::Kite => (0.66, 1.0),
            Self::Flower => (0.72, 1.0),
            Self::Cone => (0.78, 1.0),
            _ => (1.0, 1.0),
        }
    }
}

/// One object of a scene.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Object {
    /// What it is.
    pub kind: Kind,
    /// The colour of its body.
    pub colour: Colour,
    /// How large it is.
    pub size: Size,
    /// What its body is covered with.
    pub pattern: Pattern,
    /// Where it is.
    pub bounds: Bounds,
}

/// The facts of one image: captions can speak only of these facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scene {
    /// Where it is.
    pub background: Background,
    /// Its objects in drawing order: later objects are in front.
    pub objects: Vec<Object>,
}

/// Draws position `i` of `items` with probability proportional to `(i + 1)^-exponent`.
pub(super) fn zipf<T: Copy>(rng: &mut impl RngExt, items: &[T], exponent: f64) -> T {
    weighted(rng, items.iter().enumerate().map(|(i, &t)| (t, ((i + 1) as f64).powf(-exponent))))
}

/// Draws one item with probability proportional to its weight.
pub(super) fn weighted<T>(
    rng: &mut impl RngExt,
    items: impl Iterator<Item = (T, f64)> + Clone,
) -> T {
    let total: f64 = items.clone().map(|(_, w)| w).sum();
    let mut left = rng.random::<f64>() * total;
    let mut last = None;
    for (item, weight) in items {
        left -= weight;
        last = Some(item);
        if left < 0.0 {
            break;
        }
    }
    last.expect("something to draw from")
}

/// Skewed pairings, as in real data sets: each background has its usual kinds.
const HABITAT: [[Kind; 4]; 6] = [
    [Kind::Tree, Kind::House, Kind::Flower, Kind::Ball], // grass
    [Kind::Umbrella, Kind::Ball, Kind::Hat, Kind::Kite], // sand
    [Kind::Boat, Kind::Fish, Kind::Ring, Kind::Bird],    // water
    [Kind::Cup, Kind::Frame, Kind::Cube, Kind::Cone],    // table
    [Kind::House, Kind::Tree, Kind::Car, Kind::Heart],   // snow
    [Kind::Star, Kind::Bird, Kind::House, Kind::Kite],   // night
];

impl Background {
    pub(super) fn draw(rng: &mut impl RngExt) -> Self {
        zipf(rng, Self::ALL, 0.5)
    }
}

impl Kind {
    /// Half of the draws take a kind that is usual on this background; the other half take any kind by its frequency.
    pub(super) fn draw(rng: &mut impl RngExt, background: Background) -> Self {
        if rng.random_bool(0.5) {
            return zipf(rng, &HABITAT[background as usize], 0.8);
        }
        zipf(rng, Self::ALL, 0.7)
    }
}

impl Colour {
    /// Half of the draws take one of two colours that are usual for the kind; the other half take any colour by its
    /// frequency.
    pub(super) fn draw(rng: &mut impl RngExt, kind: Kind) -> Self {
        if rng.random_bool(0.5) {
            let usual = [Self::ALL[kind as usize % 8], Self::ALL[(kind as usize * 3 + 2) % 8]];
            return zipf(rng, &usual, 0.8);
        }
        zipf(rng, Self::ALL, 0.8)
    }
}

impl Size {
    pub(super) fn draw(rng: &mut impl RngExt) -> Self {
        if rng.random_bool(0.5) { Self::Small } else { Self::Large }
    }

    /// The range of the longer side, as a share of the picture's side.
    pub(crate) fn side(self) -> std::ops::Range<f32> {
        match self {
            Self::Small => 0.18..0.24,
            Self::Large => 0.36..0.46,
        }
    }
}

impl Pattern {
    pub(super) fn draw(rng: &mut impl RngExt) -> Self {
        weighted(rng, Self::ALL.iter().copied().zip([0.56, 0.26, 0.18]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    /// Weights 1, 2^-1, 3^-1 sum to 11/6: shares 6/11, 3/11, 2/11.
    #[test]
    fn zipf_draws_by_rank() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut counts = [0; 3];
        (0..11_000).for_each(|_| counts[zipf(&mut rng, &[0, 1, 2], 1.0)] += 1);
        for (got, want) in counts.into_iter().zip([6000, 3000, 2000]) {
            assert!(i32::abs(got - want) < 200, "{counts:?}");
        }
    }

    #[test]
    fn sizes_are_far_apart_and_every_enum_indexes_itself() {
        assert!(Size::Large.side().start > 1.4 * Size::Small.side().end);
        assert!(Kind::ALL.iter().enumerate().all(|(i, k)| *k as usize == i));
        assert!(Kind::ALL.len() >= 16 && Colour::ALL.len() == 8 && Background::ALL.len() == 6);
    }
}
