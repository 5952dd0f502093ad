//! A table as text: built once, formatted by `html`, `markdown` and `terminal`.

use crate::format::{NONE, or_none};

/// Named lines, and the columns beside their names.
#[derive(Clone, Debug)]
pub struct Table {
    /// The title of the table.
    pub title: String,
    /// A note that a reader needs to read the table; may be empty.
    pub note: String,
    /// The head of the names of the lines.
    pub stub: String,
    /// Name and role of each line.
    pub lines: Vec<(String, Role)>,
    /// The columns, each with one cell per line.
    pub columns: Vec<Column>,
}

/// The role of a line among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The line with which the others are compared.
    Baseline,
    /// A bound that no other line can pass. It is never marked as the best.
    Bound,
    /// The subject of the report.
    Method,
    /// Any other line.
    Other,
}

/// A column. Neighbours with the same non-empty `group` share a head above their own heads.
#[derive(Clone, Debug)]
pub struct Column {
    /// The shared head, if there is room for two lines.
    pub group: &'static str,
    /// The shared head in front of `label`, if a head is one text.
    pub short: &'static str,
    /// The head of this column.
    pub label: String,
    /// A narrow terminal leaves out the columns of the highest rank first; rank 0 always stays.
    pub rank: u8,
    /// Whether the column holds words, which are aligned left, or numbers.
    pub side: Alignment,
    /// One cell per line.
    pub cells: Vec<Cell>,
}

/// The alignment of a column's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Text of a line in a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The text. On a page a `*` at the end of the text hangs, and words may have several lines.
    pub text: String,
    /// Whether no line has a better value in this column, by the printed digits.
    pub best: bool,
}

impl Table {
    /// A table without columns.
    pub fn new<N: Into<String>>(
        title: impl Into<String>,
        stub: impl Into<String>,
        lines: impl IntoIterator<Item = (N, Role)>,
    ) -> Self {
        let lines = lines.into_iter().map(|(name, role)| (name.into(), role)).collect();
        Self { title: title.into(), note: String::new(), stub: stub.into(), lines, columns: vec![] }
    }

    /// This table with a note.
    #[must_use]
    pub fn noted(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    /// The table without the lines that have no value in any column, and without the columns that have no value in any line.
    #[must_use]
    pub fn filled(mut self) -> Self {
        self.columns.retain(|column| column.cells.iter().any(|cell| cell.text != NONE));
        let filled = |k: usize| self.columns.iter().any(|column| column.cells[k].text != NONE);
        let filled: Vec<bool> = (0..self.lines.len()).map(filled).collect();
        retain(&mut self.lines, &filled);
        self.columns.iter_mut().for_each(|column| retain(&mut column.cells, &filled));
        self
    }

    /// Adds a column of text, with one cell for each line in order.
    ///
    /// # Panics
    /// If there are more or fewer cells than lines.
    pub fn column(
        &mut self,
        label: impl Into<String>,
        cells: impl IntoIterator<Item = impl Into<String>>,
    ) -> &mut Column {
        let label = label.into();
        let cells: Vec<_> =
            cells.into_iter().map(|text| Cell { text: text.into(), best: false }).collect();
        let (got, want) = (cells.len(), self.lines.len());
        assert_eq!(got, want, "{got} cells under {label:?} of {want} lines");
        let column = Column { group: "", short: "", label, rank: 0, side: Alignment::Right, cells };
        self.columns.push_mut(column)
    }

    /// Adds a column of numbers, formatted by `text`.
    ///
    /// # Panics
    /// As [`Table::column`].
    pub fn numbers<T>(
        &mut self,
        label: impl Into<String>,
        values: impl IntoIterator<Item = Option<T>>,
        text: impl Fn(T) -> String,
    ) -> &mut Column {
        self.column(label, values.into_iter().map(|x| or_none(x, &text)))
    }

    /// Adds a column of numbers and marks the largest, and all that print the same. A single number is not marked.
    ///
    /// # Panics
    /// As [`Table::column`].
    pub fn best(
        &mut self,
        label: impl Into<String>,
        values: impl IntoIterator<Item = Option<f64>>,
        text: impl Fn(f64) -> String,
    ) -> &mut Column {
        let values: Vec<_> = values.into_iter().collect();
        let within: Vec<bool> = self.lines.iter().map(|line| line.1 != Role::Bound).collect();
        let column = self.numbers(label, values.iter().copied(), &text);
        let finite = || {
            let known = values.iter().zip(&within).filter(|(_, within)| **within);
            known.filter_map(|(x, _)| *x).filter(|x| x.is_finite())
        };
        let top = finite().reduce(f64::max).filter(|_| finite().count() > 1).map(text);
        for (cell, within) in column.cells.iter_mut().zip(within) {
            cell.best = within && Some(&cell.text) == top.as_ref();
        }
        column
    }
}

/// Keeps the items at the places of `kept`.
fn retain<T>(items: &mut Vec<T>, kept: &[bool]) {
    let mut kept = kept.iter();
    items.retain(|_| kept.next().is_some_and(|&kept| kept));
}

impl Column {
    /// Puts the column under a head shared with its neighbours; `short` is this head if a head is one text.
    pub fn under(&mut self, group: &'static str, short: &'static str) -> &mut Self {
        (self.group, self.short) = (group, short);
        self
    }

    /// Lets a narrow terminal leave the column out. Columns of the highest rank go first.
    pub fn ranked(&mut self, rank: u8) -> &mut Self {
        self.rank = rank;
        self
    }

    /// Aligns the column left.
    pub fn words(&mut self) -> &mut Self {
        self.side = Alignment::Left;
        self
    }

    /// The head of the column as one text.
    pub fn head(&self) -> String {
        format!("{}{}", self.short, self.label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::points;

    fn marked(values: [Option<f64>; 3]) -> Vec<usize> {
        let mut table = Table::new("", "", ["a", "b", "c"].map(|name| (name, Role::Other)));
        let column = table.best("x", values, points);
        (0..3).filter(|&k| column.cells[k].best).collect()
    }

    #[test]
    fn lines_and_columns_without_a_value_go() {
        let mut table = Table::new("", "", ["a", "b", "c"].map(|name| (name, Role::Other)));
        table.best("x", [None, None, Some(2.0)], points);
        table.best("none", [None; 3], points);
        table.best("y", [Some(1.0), None, Some(3.0)], points);
        let table = table.filled();
        assert_eq!(table.columns.len(), 2);
        assert_eq!(table.lines.iter().map(|(name, _)| &name[..]).collect::<Vec<_>>(), ["a", "c"]);
        let column =
            |k: usize| table.columns[k].cells.iter().map(|cell| (&cell.text[..], cell.best));
        assert_eq!(column(0).collect::<Vec<_>>(), [(NONE, false), ("2.0", false)]);
        assert_eq!(column(1).collect::<Vec<_>>(), [("1.0", false), ("3.0", true)]);
    }

    #[test]
    fn the_best_of_a_column_are_all_that_print_the_same() {
        assert_eq!(marked([Some(1.04), Some(0.96), Some(0.94)]), [0, 1]);
        assert_eq!(marked([Some(1.0), None, Some(3.0)]), [2]);
        assert_eq!(marked([Some(f64::NAN), Some(1.0), Some(f64::INFINITY)]), []);
        assert_eq!(marked([Some(1.0), None, None]), []);
        assert_eq!(marked([None; 3]), []);
    }

    /// A bound that prints the same as the best is not marked.
    #[test]
    fn a_bound_is_never_the_best() {
        let roles = [Role::Bound, Role::Other, Role::Bound, Role::Baseline];
        let mut table = Table::new("", "", roles.map(|role| ("row", role)));
        let column = table.best("x", [Some(9.0), Some(3.0), Some(3.0), Some(1.0)], points);
        assert_eq!((0..4).filter(|&k| column.cells[k].best).collect::<Vec<_>>(), [1]);
    }

    #[test]
    #[should_panic = "2 cells under \"x\" of 1 lines"]
    fn a_column_has_a_cell_for_each_line() {
        Table::new("", "", [("a", Role::Other)]).column("x", ["1", "2"]);
    }
}
