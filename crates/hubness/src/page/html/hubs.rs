//! The sections of the page about hubs.

use itm_report::figure::{Key, Shape};
use itm_report::format::{count, counted, decimals, n_of, score};
use itm_report::html::{details, grid, legend, listing, table};
use itm_report::plot::{GREY, Ink};
use maud::{Markup, html};

use super::super::plots;
use super::super::table::{hubs, items, measures, name, queries};
use crate::Direction;
use crate::report::{Hub, HubSide, Report};

/// Measures and distributions of N_k, by direction.
pub(super) fn counts(report: &Report) -> Markup {
    let keys = [("before: NNS", GREY), ("after the method", 0)];
    let keys = keys.map(|(label, series)| Key::new(label, Shape::Line, Ink::solid(series)));
    html! {
        @for (direction, side) in sides(report) {
            @let lists = direction.queries(report.data.images, report.data.texts);
            @let ([_, things], [one, many]) = (items(direction), queries(direction));
            @let figures = plots::counts(report, side, direction, 10);
            h3 { (name(direction)) ": " (things) " in the lists of " (counted(lists, one, many)) }
            (table(&measures(report, direction, 10)))
            p.note { "At k = 10, over all items, including items in no list." }
            @if !figures.is_empty() {
                @let k = n_of(10);
                p.note { "Share of the items per value of " (k) " (vertical) by " (k) " (horizontal), both axes logarithmic." }
                (legend(&keys))
                (grid("small", &figures))
            }
            @for k in side.measures.iter().map(|m| m.k).filter(|&k| k != 10) {
                (details(&format!("Measures at k = {k}"), html! {
                    (table(&measures(report, direction, k)))
                    (grid("small", &plots::counts(report, side, direction, k)))
                }))
            }
        }
        @if sides(report).count() == 0 { p { "Not measured." } }
        @if let Some(sum) = report.hubs.hs_sum.filter(|v| v.is_finite()) {
            p.note {
                "Sum of NNS’s skewness over k = 1, 5, 10 and the directions measured: " (decimals(sum, 2)) "."
            }
        }
    }
}

/// The worst hubs by name, by direction.
pub(super) fn worst(report: &Report) -> Markup {
    let listed = || sides(report).filter(|(_, side)| !side.worst.is_empty());
    html! {
        @for (direction, side) in listed() {
            h3 { (name(direction)) ": " (items(direction)[1]) }
            (worst_of(report, direction, side))
            p.note {
                "First: for how many queries it comes first. Wrong: in how many of these lists it is a wrong answer."
                @if side.worst.iter().any(|h| h.deserved.is_some()) {
                    " Deserved: the share of these wrong answers that are right but not annotated."
                }
            }
        }
        @if listed().count() == 0 { p { "None were listed." } }
    }
}

fn worst_of(report: &Report, direction: Direction, side: &HubSide) -> Markup {
    let methods: Vec<&str> = report.rows.iter().map(|r| r.method.as_str()).collect();
    let mut hubs = hubs(side, direction, usize::MAX, &methods);
    hubs.columns[0].label = n_of(10);
    let noun = items(direction)[0];
    let named = |i: usize| called(side.worst[i].name.as_deref(), noun, side.worst[i].item);
    let columns = hubs.columns.len() + 1;
    listing(&hubs, "worst", named, |i| victims(&side.worst[i], direction, columns))
}

fn victims(hub: &Hub, direction: Direction, columns: usize) -> Markup {
    let [one, many] = queries(direction);
    let n = counted(hub.victims.len() as u64, one, many);
    let list = html! {
        ul {
            @for v in &hub.victims {
                li {
                    (called(v.name.as_deref(), one, v.query))
                    span.by {
                        ": " (score(v.hub_score)) " over " (score(v.true_score)) "; the right one is at rank "
                        (count(v.true_rank))
                    }
                }
            }
        }
    };
    html! {
        @if !hub.victims.is_empty() {
            tr.victims {
                td colspan=(columns) { (details(&format!("for example {n} that it wrongly wins"), list)) }
            }
        }
    }
}

/// A name with its index, or `text 17`.
fn called(name: Option<&str>, noun: &str, index: u64) -> Markup {
    html! {
        @match name {
            Some(name) => { q { bdi { (name) } } " " span.by { (noun) "\u{a0}" (index) } },
            None => (format!("{noun} {index}")),
        }
    }
}

fn sides(report: &Report) -> impl Iterator<Item = (Direction, &HubSide)> {
    Direction::BOTH.into_iter().filter_map(|d| Some((d, report.hubs.sides.get(d)?)))
}
