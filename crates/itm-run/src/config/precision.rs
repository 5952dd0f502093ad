//! The precision of products from the command line, as if it were a key of the file.

use itm_core::Result;
use itm_kernels::Precision;
use toml::{Table, Value};

use super::Config;
use super::read::parse;

impl Config {
    /// The same target with `train.precision` set in the rows of these names. The key is also in the text, and therefore in the hash
    /// and in the copy in the run directory.
    ///
    /// # Errors
    /// The errors of a file with this key.
    pub(crate) fn with_precision(self, rows: &[String], precision: Precision) -> Result<Self> {
        if rows.is_empty() {
            return Ok(self);
        }
        let mut root = parse(&self.path, &self.text)?;
        let value = Value::try_from(precision).expect("a name");
        for row in rows {
            let train = inner(inner(inner(&mut root, "row"), row), "train");
            train.insert("precision".into(), value.clone());
        }
        let text = toml::to_string(&root).expect("the tables were TOML");
        Self::new(&self.name, self.path, text, root)
    }
}

/// The section of this name; a missing section is added.
fn inner<'a>(table: &'a mut Table, key: &str) -> &'a mut Table {
    let section = table.entry(key).or_insert_with(|| Value::Table(Table::new()));
    section.as_table_mut().expect("the file was read: sections are tables")
}
