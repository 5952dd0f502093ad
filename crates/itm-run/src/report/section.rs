//! A section of the reports: what one measure found over all rows.

use itm_core::{Error, Result};
use itm_report::figure::Figure;
use itm_report::table::Table;
use maud::Markup;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::json::{Numbers, Place, Report};

/// What one measure found. Every report shows the tables, the page also figures and pictures, and `report.json` has the numbers.
#[derive(Debug, Default)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) figures: Vec<Figure>,
    pub(crate) pictures: Markup,
    /// A table with the section's title stands before the figures.
    pub(crate) tables: Vec<Table>,
    pub(crate) numbers: Vec<(Place, Numbers)>,
}

impl Section {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// The section without lines of tables that have no value.
    #[must_use]
    pub(crate) fn filled(self) -> Self {
        Self { tables: self.tables.into_iter().map(Table::filled).collect(), ..self }
    }

    /// Adds the numbers of the rows of a report that have any, as [`add`](Self::add) does.
    ///
    /// # Errors
    /// If a number is not finite.
    pub(crate) fn add_rows<T>(
        &mut self,
        report: &Report,
        place: fn(String) -> Place,
        rows: &[Option<T>],
    ) -> Result<()>
    where
        T: Serialize + DeserializeOwned + PartialEq,
    {
        let known = report.rows.iter().zip(rows);
        let known = known.filter_map(|(row, numbers)| Some((&row.name, numbers.as_ref()?)));
        for (name, numbers) in known {
            self.add(place(name.clone()), numbers)?;
        }
        Ok(())
    }

    /// Adds every key of `numbers`, which must serialise as an object.
    ///
    /// # Errors
    /// If a number is not finite: JSON has no such numbers, and `null` would mean "not measured".
    pub(crate) fn add<T>(&mut self, place: Place, numbers: &T) -> Result<()>
    where
        T: Serialize + DeserializeOwned + PartialEq,
    {
        let value = serde_json::to_value(numbers).ok();
        let same = value.as_ref().and_then(|value| T::deserialize(value).ok());
        match (value, same) {
            (Some(serde_json::Value::Object(keys)), Some(same)) if same == *numbers => {
                self.numbers.push((place, keys.into_iter().collect()));
                Ok(())
            }
            _ => {
                let place = format!("report.json, {}", self.title);
                Err(Error::invalid(place, "finite numbers", "NaN or an infinity"))
            }
        }
    }
}
