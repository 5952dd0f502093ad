//! NAAF's Figure 4: the words of a caption, coloured by what they do to its score with an image, and the regions that
//! they attend to.

use std::collections::BTreeSet;

use itm_core::encoders::Places;
use itm_core::learn::{Effect, WordMap};
use itm_report::format::decimals;
use itm_report::html::table;
use itm_report::table::{Role, Table};
use maud::{Markup, PreEscaped, html};

use super::word_patches::{kind, picture, rect, svg, tenths};
use super::{PairMaps, RowMaps};

/// Length of a picture's side, in units of the SVG.
const SIZE: usize = 1000;

/// Styles that only this part of a page needs.
const STYLE: &str = include_str!("word_effects.css");

/// Renders nothing if no pair has words with effects.
pub(super) fn render(pairs: &[PairMaps]) -> Markup {
    let has =
        |pair: &&PairMaps| pair.rows.iter().flat_map(|row| &row.maps).any(|m| m.effect.is_some());
    let pairs: Vec<_> = pairs.iter().filter(has).collect();
    html! {
        @if !pairs.is_empty() {
            style { (PreEscaped(STYLE)) }
            p.note {
                "What each word does to the score of the pair: " span.adds { "adds" } " (positive effect), "
                span.takes { "takes" } " (negative effect, a word without a region above the boundary). Strength: share of the \
                 largest effect of its kind in the row. Boxes: the region that a word attends to most, with its number; dashed: what the word is \
                 about, where that is known."
            }
            div.effects { @for pair in pairs { (one(pair)) } }
        }
    }
}

fn one(pair: &PairMaps) -> Markup {
    html! {
        article {
            p.by { (kind(pair.kind)) " · " (pair.picture.name) }
            p { q { (pair.caption) } }
            @for row in &pair.rows { (of_row(pair, row)) }
        }
    }
}

fn of_row(pair: &PairMaps, row: &RowMaps) -> Markup {
    let most = |of: fn(&Effect) -> f32| effects(row).map(|(_, e)| of(e)).fold(0.0, f32::max);
    let most = [most(added), most(taken)];
    html! {
        p.by { (row.name) @if let Some(score) = row.score { " · score " (decimals(f64::from(score), 3)) } }
        div.effect {
            (boxes(pair, row))
            div {
                p.caption { @for (map, effect) in effects(row) { (coloured(map, effect, most)) " " } }
                (table(&numbers(pair, row)))
            }
        }
    }
}

fn effects(row: &RowMaps) -> impl Iterator<Item = (&WordMap, &Effect)> {
    row.maps.iter().filter_map(|map| Some((map, map.effect.as_ref()?)))
}

fn added(effect: &Effect) -> f32 {
    effect.positive
}

fn taken(effect: &Effect) -> f32 {
    -effect.negative.unwrap_or(0.0)
}

/// A word in the colour of its negative effect if it has one, else of its positive effect.
fn coloured(map: &WordMap, effect: &Effect, [most_added, most_taken]: [f32; 2]) -> Markup {
    let (class, share) = match taken(effect) > 0.0 {
        true => ("takes", taken(effect) / most_taken),
        false => ("adds", added(effect).max(0.0) / most_added),
    };
    let percent = if share.is_finite() { (100.0 * share).round() } else { 0.0 };
    html! { span class=(class) style=(format!("--strength:{percent}%")) { (map.word) } }
}

fn numbers(pair: &PairMaps, row: &RowMaps) -> Table {
    let number = |x: f32| decimals(f64::from(x), 3);
    let lines = effects(row).map(|(map, _)| (map.word.clone(), Role::Other));
    let mut t = Table::new(format!("Effects of words, {}", row.name), "word", lines);
    t.numbers("negative", effects(row).map(|(_, e)| e.negative), number);
    t.column("positive", effects(row).map(|(_, e)| number(e.positive)));
    t.column("best cosine", effects(row).map(|(map, _)| number(map.best())));
    let region = |e: &Effect| e.place().map_or("none".to_owned(), |k| k.to_string());
    t.column("region", effects(row).map(|(_, e)| region(e)));
    t.numbers("weight", effects(row).map(|(_, e)| Some(e.weights[e.place()?])), number);
    let unknown = matches!(&pair.places, Places::Boxes(boxes) if boxes.is_empty());
    t.noted(if unknown { "The places of the regions are unknown." } else { "" })
}

/// The picture with two kinds of boxes: regions that words attend to, with their numbers in the table, and what words are about.
fn boxes(pair: &PairMaps, row: &RowMaps) -> Markup {
    let Places::Boxes(places) = &pair.places else { return html! {} };
    let matched = row.maps.iter().flat_map(|map| &map.effect).filter(|e| taken(e) <= 0.0);
    let regions: BTreeSet<usize> =
        matched.filter_map(Effect::place).filter(|&place| place < places.len()).collect();
    let content = html! {
        (picture(pair, SIZE))
        @for b in pair.boxes.iter().flatten() { (rect(b, "box", SIZE)) }
        @for k in regions {
            (rect(&places[k], "region", SIZE))
            @let [x, y] = [places[k].x1 + 0.01, places[k].y1 + 0.05].map(|at| tenths(at, SIZE));
            text x=(x) y=(y) { (k) }
        }
    };
    svg(SIZE, &row.name, content)
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    /// By hand: the first word takes most, the second adds most, the third adds half as much. The second and the third
    /// attend to region 1, whose box begins at (0, 0.55) and is half as wide as the picture.
    #[test]
    fn words_boxes_and_numbers_stand_together() {
        let out = render(&[sample::effects()]).into_string();
        for part in [
            "<span class=\"takes\" style=\"--strength:100%\">&lt;blue&gt;</span>",
            "<span class=\"adds\" style=\"--strength:100%\">ball</span>",
            "<span class=\"adds\" style=\"--strength:50%\">left</span>",
            "<td>−0.400</td><td>0.100</td><td>0.200</td><td>none</td><td>–</td>",
            "<td>0.000</td><td>1.200</td><td>0.600</td><td>1</td><td>0.750</td>",
            "<rect class=\"region\" x=\"0.0\" y=\"550.0\" width=\"500.0\" height=\"400.0\"></rect>",
            ">1</text>",
            "Full, seed 0 · score 0.500",
        ] {
            assert!(out.contains(part), "no {part} in {out}");
        }
        assert_eq!(out.matches("class=\"region\"").count(), 1, "the first word matches none");
        assert!(!out.contains("<blue>") && out.contains("not annotated"));
        assert!(render(&sample::pairs()).into_string().is_empty());
    }

    /// A method without a negative branch has no negative effects. If the regions' places are unknown, no region is
    /// drawn.
    #[test]
    fn what_is_not_known_is_not_drawn() {
        let mut pair = sample::effects();
        pair.rows[0]
            .maps
            .iter_mut()
            .flat_map(|map| &mut map.effect)
            .for_each(|e| e.negative = None);
        pair.places = Places::Boxes(vec![]);
        let out = render(&[pair]).into_string();
        assert!(out.contains("<td>–</td><td>0.100</td>") && !out.contains("class=\"takes\" style"));
        assert!(!out.contains("class=\"region\"") && out.contains("regions are unknown"));
    }
}
