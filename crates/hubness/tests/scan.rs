//! The scan for planted hubs against attacks: how many are found, and how many natural items are taken for them.
#![allow(clippy::unwrap_used, reason = "helpers of tests, which may")]

use hubness::rows::unit;
use hubness::scan::{Alert, Budget, Scan};
use hubness::{Embeddings, Tiles};
use itm_core::tiles::Side;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const DIM: usize = 48;
const TOPICS: usize = 20;
const QUERIES: usize = 1500;
const ITEMS: usize = 800;
const BUDGET: Budget = Budget::FalseAlarms(0.1);

/// Queries and items of some topics. Queries share a direction, as texts do beside images; items near the middle of their topic are natural
/// hubs of it. `known` are other queries of the same kind: what an attacker has.
struct World {
    bank: Vec<f32>,
    known: Vec<f32>,
    items: Vec<f32>,
}

fn normal(rng: &mut ChaCha8Rng) -> f32 {
    (0..12).map(|_| rng.random::<f32>()).sum::<f32>() - 6.0
}

fn noise(rng: &mut ChaCha8Rng, size: f32) -> Vec<f32> {
    let size = size / (DIM as f32).sqrt();
    (0..DIM).map(|_| size * normal(rng)).collect()
}

fn sum(rows: &[&[f32]]) -> Vec<f32> {
    (0..DIM).map(|d| rows.iter().map(|row| row[d]).sum()).collect()
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let topics: Vec<_> = (0..TOPICS).map(|_| noise(&mut rng, 1.0)).collect();
        let common = noise(&mut rng, 0.7);
        let mut side = |count: usize, common: &[f32], size: f32| {
            let row = |at: usize| {
                // Items at various distances from the middle of their topic.
                let size = size * rng.random_range(0.6..1.4);
                sum(&[&topics[at % TOPICS], common, &noise(&mut rng, size)])
            };
            unit(DIM, &(0..count).flat_map(row).collect::<Vec<_>>())
        };
        let none = [0.0; DIM];
        let (bank, known) = (side(QUERIES, &common, 0.9), side(QUERIES, &common, 0.9));
        Self { bank, known, items: side(ITEMS, &none, 0.9) }
    }

    /// The mean of some of the attacker's queries.
    fn mean(&self, of: impl Fn(usize) -> bool) -> Vec<f32> {
        let rows: Vec<_> = self
            .known
            .chunks(DIM)
            .enumerate()
            .filter(|&(at, _)| of(at))
            .map(|(_, row)| row)
            .collect();
        unit(DIM, &sum(&rows))
    }

    /// An answer to everything.
    fn universal(&self) -> Vec<f32> {
        self.mean(|_| true)
    }

    /// An answer to all queries of a topic.
    fn targeted(&self, topic: usize) -> Vec<f32> {
        self.mean(|at| at % TOPICS == topic)
    }

    /// An item that is pushed uphill from a natural one until it is an answer to many of the attacker's queries:
    /// `Σ_q sigmoid((s(q, x) − s_k(q)) / 0.05)`, the step towards its gradient, on the sphere.
    fn climbed(&self, from: usize, steps: usize) -> Vec<f32> {
        let mut x = self.items[from * DIM..][..DIM].to_vec();
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let known = Embeddings::new("known", QUERIES, DIM, &self.known).unwrap();
        let items = Embeddings::new("items", ITEMS, DIM, &self.items).unwrap();
        let present = Tiles::new(known, items).unwrap().top(Side::Images, 10);
        let bars: Vec<f32> = (0..QUERIES).map(|query| present.scores(query)[9]).collect();
        for _ in 0..steps {
            let mut gradient = vec![0.0; DIM];
            for (query, bar) in self.known.chunks(DIM).zip(&bars) {
                let share = 1.0 / (1.0 + (-(dot(query, &x) - bar) / 0.05).exp());
                let by = share * (1.0 - share);
                gradient.iter_mut().zip(query).for_each(|(g, q)| *g += by * q);
            }
            let gradient = unit(DIM, &gradient);
            x.iter_mut().zip(&gradient).for_each(|(x, g)| *x += 0.1 * g);
            x = unit(DIM, &x);
        }
        x
    }

    fn scan(&self, planted: &[Vec<f32>]) -> Scan {
        let items: Vec<f32> = self.items.iter().copied().chain(planted.concat()).collect();
        let items = Embeddings::new("items", items.len() / DIM, DIM, &items).unwrap();
        Scan::new(self.queries(), items, 10).unwrap()
    }

    fn queries(&self) -> Embeddings<'_> {
        Embeddings::new("queries", QUERIES, DIM, &self.bank).unwrap()
    }
}

const WORLDS: u64 = 8;

/// Each attack alone in each of some worlds: how often the scan finds it, how often the gate refuses it, and alerts for natural items.
fn attacked(attack: impl Fn(&World) -> Vec<f32>) -> [usize; 3] {
    let of_world = |seed| {
        let world = World::new(seed);
        let planted = attack(&world);
        let alerts = world.scan(std::slice::from_ref(&planted)).alerts(BUDGET).unwrap();
        let found = alerts.iter().filter(|alert| alert.item == ITEMS).count();
        let new = Embeddings::new("new", 1, DIM, &planted).unwrap();
        let refused = world.scan(&[]).admit(world.queries(), new, BUDGET).unwrap()[0].refused;
        [found, usize::from(refused), alerts.len() - found]
    };
    let add = |a: [usize; 3], b: [usize; 3]| [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
    (0..WORLDS).map(of_world).fold([0; 3], add)
}

#[test]
fn answers_to_everything_are_found() {
    let [found, refused, natural] = attacked(World::universal);
    assert_eq!([found, refused], [WORLDS as usize; 2]);
    assert!(natural <= 2, "{natural} natural items");
}

#[test]
fn answers_to_all_queries_of_a_topic_are_found() {
    let [found, refused, natural] = attacked(|world| world.targeted(3));
    assert_eq!([found, refused], [WORLDS as usize; 2]);
    assert!(natural <= 2, "{natural} natural items");
}

/// After 20 steps an item is an answer to a tenth of the queries or more; after 5 it is often a natural hub yet.
#[test]
fn items_that_climb_are_found_before_they_are_high() {
    let [early, late] = [5, 20].map(|steps| attacked(|world| world.climbed(6, steps)));
    assert_eq!(late[..2], [WORLDS as usize; 2], "{early:?} {late:?}");
    assert!(early[0] >= 1 && early[0] < WORLDS as usize, "{early:?}: the attack grows");
    assert!(early[2].max(late[2]) <= 2, "{early:?} {late:?}");
}

/// The budget is 0.1 for each world.
#[test]
fn natural_hubs_are_seldom_alerts() {
    let alerts = |seed| World::new(seed).scan(&[]).alerts(BUDGET).unwrap().len();
    let all: usize = (0..2 * WORLDS).map(alerts).sum();
    assert!(all <= 5, "{all} alerts in {} worlds", 2 * WORLDS);
}

/// Many planted at once hide each other's distance, but never their order.
#[test]
fn many_at_once_are_the_first_of_a_fixed_number() {
    let world = World::new(1);
    let mut planted: Vec<_> = (0..10).map(|topic| world.targeted(topic)).collect();
    planted.extend((10..20).map(|from| world.climbed(from, 20)));
    let alerts = world.scan(&planted).alerts(Budget::Items(20)).unwrap();
    let found = alerts.iter().filter(|alert| alert.item >= ITEMS).count();
    assert!(found >= 17, "{found} of 20");
    assert!(alerts.windows(2).all(|two| two[0].evidence.score >= two[1].evidence.score));
}

/// The gate gives a new item the evidence that the scan of the collection with the item gives, up to what the item itself moves.
#[test]
fn the_gate_counts_as_the_scan_does() {
    let world = World::new(2);
    let planted = world.climbed(3, 20);
    let new = Embeddings::new("new", 1, DIM, &planted).unwrap();
    let gate = world.scan(&[]).admit(world.queries(), new, BUDGET).unwrap()[0].evidence;
    let scan = world.scan(std::slice::from_ref(&planted));
    let alerts = scan.alerts(BUDGET).unwrap();
    let own = alerts.iter().find(|alert| alert.item == ITEMS).unwrap().evidence;
    assert_eq!((gate.count, gate.first), (own.count, own.first));
    assert_eq!((gate.clusters, gate.capture), (own.clusters, own.capture));
    // A copy of a present item comes behind the item: it is never first, even where the item is.
    let clean = world.scan(&[]);
    let Alert { item, evidence } = clean.alerts(Budget::Items(1)).unwrap()[0];
    let copy = Embeddings::new("new", 1, DIM, &world.items[item * DIM..][..DIM]).unwrap();
    let copy = clean.admit(world.queries(), copy, BUDGET).unwrap()[0];
    assert!(evidence.first > 0 && copy.evidence.first == 0);
    assert!(copy.evidence.count <= evidence.count);
    let line = world.scan(&[]).sentence(&copy);
    assert!(line.starts_with("item 0 would be the first answer of 0 of 1500 queries"), "{line}");
    assert!(line.ends_with(": admitted"), "{line}");
}
