//! Tables as lines, no wider than the terminal.

use comfy_table::{Attribute, Cell, CellAlignment, Color, Table, TableComponent, presets};

use super::super::format::{NONE, clean, count, share};
use super::super::methods::title;
use super::super::model::Hub;
use super::super::table::{Column, Side};
use super::text::{fit, width_of};
use super::{Palette, called};

/// Between columns: a blank of padding and the one that stands where a vertical line would.
const GAP: usize = 2;

/// A table whose columns of least rank stay; those that do not fit are left out.
pub(super) fn lines(columns: &[Column], width: usize, palette: Palette) -> Vec<String> {
    let mut columns = columns.to_vec();
    for column in columns.iter_mut().filter(|c| c.side == Side::Left) {
        for cell in &mut column.cells {
            cell.text = fit(&clean(&cell.text), (width / 4).max(12));
        }
    }
    let total = |columns: &[Column]| -> usize {
        columns.iter().map(|c| own_width(c) + GAP).sum::<usize>().saturating_sub(GAP)
    };
    while total(&columns) > width {
        let Some(last) = columns.iter().map(|c| c.rank).max().filter(|&rank| rank > 0) else {
            break;
        };
        columns.retain(|c| c.rank < last);
    }
    let grouped = columns.iter().any(|c| !c.group.is_empty());
    let head = |i: usize| {
        let column = &columns[i];
        let again = i > 0 && columns[i - 1].group == column.group;
        let group = if again { "" } else { short(column.group) };
        let head = if grouped { format!("{group}\n{}", column.head) } else { column.head.clone() };
        Cell::new(head).add_attribute(Attribute::Dim)
    };
    let mut table = empty(palette);
    table.set_header((0..columns.len()).map(head));
    let rows = columns.first().map_or(0, |c| c.cells.len());
    for row in 0..rows {
        table.add_row(columns.iter().map(|c| {
            let cell = Cell::new(&c.cells[row].text);
            match c.cells[row].best {
                true => cell.add_attribute(Attribute::Bold).fg(Color::Cyan),
                false => cell,
            }
        }));
    }
    finish(table, columns.iter().map(|c| c.side))
}

/// The worst hubs, one line each; the name takes what room is left.
pub(super) fn hubs_grid(
    hubs: &[&Hub],
    noun: &str,
    shown: Option<&str>,
    width: usize,
    palette: Palette,
) -> Vec<String> {
    let number = |n: Option<u64>| n.map_or_else(|| NONE.into(), count);
    let mut columns: Vec<(String, Vec<String>)> = vec![
        ("N10".into(), hubs.iter().map(|h| count(h.count)).collect()),
        ("first".into(), hubs.iter().map(|h| count(h.first)).collect()),
        ("wrong".into(), hubs.iter().map(|h| count(h.wrong)).collect()),
    ];
    if hubs.iter().any(|h| h.deserved.is_some()) {
        let shares = hubs.iter().map(|h| h.deserved.map_or_else(|| NONE.into(), share));
        columns.push(("deserved".into(), shares.collect()));
    }
    if let Some(method) = shown.filter(|m| hubs.iter().any(|h| h.after.contains_key(*m))) {
        let after = hubs.iter().map(|h| number(h.after.get(method).copied()));
        columns.push((fit(&format!("N10 {}", title(method)), 18), after.collect()));
    }
    let wide = |(head, cells): &(String, Vec<String>)| {
        cells.iter().map(|c| width_of(c)).chain([width_of(head)]).max().unwrap_or(0)
    };
    let taken: usize = columns.iter().map(|c| wide(c) + GAP).sum();
    let names =
        hubs.iter().map(|h| called(h.name.as_deref(), noun, h.item, width.saturating_sub(taken)));

    let mut table = empty(palette);
    let heads = [noun.to_owned()].into_iter().chain(columns.iter().map(|c| c.0.clone()));
    table.set_header(heads.map(|h| Cell::new(h).add_attribute(Attribute::Dim)));
    for (row, name) in names.enumerate() {
        let cells = columns.iter().map(|c| Cell::new(&c.1[row]));
        table.add_row([Cell::new(name)].into_iter().chain(cells));
    }
    let sides = [Side::Left].into_iter().chain(columns.iter().map(|_| Side::Right));
    finish(table, sides)
}

/// A direction's heading where a column is narrow.
fn short(group: &str) -> &str {
    match group {
        "image -> text" => "i2t",
        "text -> image" => "t2i",
        other => other,
    }
}

fn own_width(column: &Column) -> usize {
    let cells = column.cells.iter().map(|c| width_of(&c.text));
    cells.chain([width_of(&column.head), short(column.group).len()]).max().unwrap_or(0)
}

fn empty(palette: Palette) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_style(TableComponent::HeaderLines, '─');
    table.set_style(TableComponent::MiddleHeaderIntersections, '─');
    match palette {
        Palette::Plain => table.force_no_tty(),
        Palette::Ansi => table.enforce_styling(),
    };
    table
}

fn finish(mut table: Table, sides: impl Iterator<Item = Side>) -> Vec<String> {
    let sides: Vec<_> = sides.collect();
    for (i, side) in sides.iter().enumerate() {
        if let Some(column) = table.column_mut(i) {
            let gap = if i + 1 < sides.len() { GAP as u16 - 1 } else { 0 };
            column.set_padding((0, gap));
            column.set_cell_alignment(match side {
                Side::Left => CellAlignment::Left,
                Side::Right => CellAlignment::Right,
            });
        }
    }
    table.lines().map(|l| l.trim_end().to_owned()).collect()
}
