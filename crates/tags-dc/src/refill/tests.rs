use super::*;
use crate::Purpose;

fn row(targets: &[usize]) -> Masking {
    let mut row = Masking { ids: vec![1, 2, 3, 4, 5], labels: vec![None; 5] };
    for &at in targets {
        row.labels[at] = Some(row.ids[at]);
    }
    row
}

fn refill(draws: usize, temperature: f64) -> Refill {
    Refill { draws, temperature, forbid: Vec::new() }
}

fn draw(refill: &Refill, rows: &[Masking], logits: &[f32], v: usize) -> Result<Vec<Vec<u32>>> {
    refill.draw(rows, logits, v, &mut Purpose::Refills.stream(3, 0))
}

/// Logits that give all the weight to one token.
fn only(token: usize, v: usize) -> Vec<f32> {
    (0..v).map(|j| if j == token { 0.0 } else { f32::NEG_INFINITY }).collect()
}

fn assert_near(what: &str, hits: usize, n: usize, p: f64) {
    let (share, bound) = (hits as f64 / n as f64, 5.0 * (p * (1.0 - p) / n as f64).sqrt());
    assert!((share - p).abs() <= bound, "{what}: {share} of {n}, probability {p}");
}

/// Refill l of masking k is row k·L + l. Logits are in the order of the rows, and of the positions within a row.
#[test]
fn refills_stand_in_order_at_the_targets_only() {
    let logits = [only(6, 9), only(7, 9), only(8, 9)].concat();
    let rows = draw(&refill(2, 1.5), &[row(&[1, 3]), row(&[2])], &logits, 9).unwrap();
    let (first, second) = (vec![1, 6, 3, 7, 5], vec![1, 2, 8, 4, 5]);
    assert_eq!(rows, [first.clone(), first, second.clone(), second]);
}

/// By hand: two targets of the first row and one of the second, three tokens each. A wrong number of tokens is named.
#[test]
fn golden_given_tokens_are_filled_in() {
    let rows = [row(&[1, 3]), row(&[2])];
    let fill = |tokens: &[u32]| refill(3, 1.5).fill(&rows, tokens);
    let got = fill(&[20, 21, 22, 30, 31, 32, 40, 41, 42]).unwrap();
    let first = [[1, 20, 3, 30, 5], [1, 21, 3, 31, 5], [1, 22, 3, 32, 5]];
    let second = [[1, 2, 40, 4, 5], [1, 2, 41, 4, 5], [1, 2, 42, 4, 5]];
    assert_eq!(got, [first, second].concat());
    let line = fill(&[20; 8]).unwrap_err().to_string();
    assert_eq!(line, "refill: expected 3 × 3 tokens, got 8");
    assert!(refill(0, 1.5).fill(&rows, &[]).unwrap_err().to_string().contains("refill.draws"));
}

// Trap 11
#[test]
fn a_target_that_kept_its_token_is_refilled() {
    let kept = row(&[2]); // ids[2] is the original token, not [MASK]
    assert_eq!(draw(&refill(1, 1.5), &[kept], &only(8, 9), 9).unwrap(), [[1, 2, 8, 4, 5]]);
}

/// By hand: weights 1 and 4 at τ = 1 are 1 and 2 at τ = 2.
#[test]
fn temperature_changes_the_shares() {
    let logits = [0.0, 4.0f32.ln()];
    for (tau, p) in [(1.0, 0.8), (2.0, 2.0 / 3.0), (0.5, 16.0 / 17.0)] {
        let n = 100_000;
        let rows = draw(&refill(n, tau), &[row(&[0])], &logits, 2).unwrap();
        assert_near("token 1", rows.iter().filter(|row| row[0] == 1).count(), n, p);
    }
}

/// The first token has half of the weight; the other 28,995 tokens share the rest. A sum in f32 loses part of each term of
/// 1.7e-5 beside 0.5, and steps of the draw in f32 (6e-8) favour some tokens by 0.3 %.
#[test]
fn the_tail_of_a_whole_vocabulary_is_not_biased() {
    let v = 28_996;
    let mut logits = vec![0.0f32; v];
    logits[0] = ((v - 1) as f32).ln();
    let n = 400_000;
    let rows = draw(&refill(n, 1.0), &[row(&[0])], &logits, v).unwrap();
    let share = |from: usize, to: usize| {
        rows.iter().filter(|row| (from..to).contains(&(row[0] as usize))).count()
    };
    assert_near("head", share(0, 1), n, 0.5);
    for part in 0..10 {
        let (from, to) = (1 + part * 2899, 1 + (part + 1) * 2899);
        assert_near(&format!("part {part}"), share(from, to), n, 0.5 * 2899.0 / (v - 1) as f64);
    }
}

/// The cumulative sum itself, where many small terms follow a large one. 28,995 additions in f64 err by at most 4e-12.
#[test]
fn small_terms_after_a_large_one_are_all_counted() {
    let mut logits = vec![-20.0f32; 28_996];
    logits[0] = 0.0;
    let sums = refill(1, 1.0).cumulative(&logits, 0, 0).unwrap();
    let wanted = 1.0 + 28_995.0 * (-20.0f64).exp();
    assert!((sums[28_995] - wanted).abs() < 4e-12, "{} {wanted}", sums[28_995]);
    assert!(sums.windows(2).all(|pair| pair[0] < pair[1]), "every token has its share");
}

#[test]
fn forbidden_tokens_are_never_drawn() {
    let forbid = Refill { forbid: vec![0, 3], ..refill(1000, 1.5) };
    let rows = draw(&forbid, &[row(&[0])], &[9.0, 0.0, 0.0, 9.0], 4).unwrap();
    assert!(rows.iter().all(|row| row[0] == 1 || row[0] == 2));
    let free = draw(&refill(1000, 1.5), &[row(&[0])], &[9.0, 0.0, 0.0, 9.0], 4).unwrap();
    assert!(free.iter().any(|row| row[0] == 0), "the option changes the result");
}

#[test]
fn the_ends_of_the_draw_are_tokens_with_weight() {
    let sums = [0.0, 0.0, 1.0, 1.0, 3.0, 3.0]; // tokens 2 and 4 have weight
    assert_eq!([0.0, 0.33, 0.34, 1.0 - f64::EPSILON / 2.0].map(|u| token(&sums, u)), [2, 2, 4, 4]);
    assert_eq!(token(&sums, 1.0), 4, "rounding may reach the total");
}

#[test]
fn bad_logits_and_settings_are_named() {
    let refused = |refill: &Refill, logits: &[f32]| {
        draw(refill, &[row(&[1])], logits, 3).unwrap_err().to_string()
    };
    let plain = refill(1, 1.5);
    assert_eq!(
        refused(&plain, &[0.0, f32::NAN, 0.0]),
        "row 0, position 1: expected finite logits, got NaN for token 1"
    );
    assert!(refused(&plain, &[0.0, f32::INFINITY, 0.0]).contains("inf for token 1"));
    assert!(refused(&plain, &[0.0; 4]).contains("1 × 3 logits"));
    assert!(refused(&plain, &[f32::NEG_INFINITY; 3]).contains("a token that can be drawn"));
    let all = Refill { forbid: vec![0, 1, 2], ..plain.clone() };
    assert!(refused(&all, &[0.0; 3]).contains("a token that can be drawn"));
    assert!(refused(&Refill { forbid: vec![3], ..plain }, &[0.0; 3]).contains("below 3"));
    assert!(refused(&refill(1, 0.0), &[0.0; 3]).contains("refill.temperature"));
    assert!(refused(&refill(1, f64::NAN), &[0.0; 3]).contains("refill.temperature"));
}

#[test]
fn labels_and_tokens_are_as_many() {
    let short = Masking { labels: vec![None, Some(2), None, None, None, Some(6)], ..row(&[]) };
    let line = draw(&refill(1, 1.5), &[row(&[1]), short], &[0.0; 9], 3).unwrap_err();
    assert_eq!(line.to_string(), "row 1: expected 5 labels, one per token, got 6");
}

/// A generator that predicts the original token plus one at each target.
struct Next;

impl Generator for Next {
    fn vocabulary(&self) -> usize {
        9
    }

    fn logits(&mut self, rows: &[Masking]) -> Result<Vec<f32>> {
        let labels = rows.iter().flat_map(|row| row.labels.iter().flatten());
        Ok(labels.flat_map(|&label| only(label as usize + 1, 9)).collect())
    }
}

#[test]
fn draws_follow_the_logits_of_each_target() {
    let mut rng = Purpose::Refills.stream(3, 0);
    let rows = [row(&[0, 4]), row(&[2])];
    let logits = Next.logits(&rows).unwrap();
    let rows = refill(1, 1.5).draw(&rows, &logits, Next.vocabulary(), &mut rng).unwrap();
    assert_eq!(rows, [[2, 2, 3, 4, 6], [1, 2, 4, 4, 5]]);
}
