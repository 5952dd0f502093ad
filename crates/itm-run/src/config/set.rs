//! `--set key=value` and `--precision`: a command line replaces keys of a target.

use itm_core::{Error, Result};
use itm_kernels::Precision;
use toml::{Table, Value};

use super::read::is_same_kind;
use super::{Config, check_seed, override_with};

impl Config {
    /// The target with other values at some keys, each written `train.epochs=2` or `row."w/o FNE".train.epochs=1`. A value is written
    /// as in TOML; a word needs no quotation marks.
    ///
    /// # Errors
    /// If a text is no key and value, a row does not exist, or the target refuses the key or the value.
    pub(crate) fn with(self, set: &[String]) -> Result<Self> {
        if set.is_empty() {
            return Ok(self);
        }
        let mut root: Table = toml::from_str(&self.text).expect("it was read before");
        for text in set {
            let keys = keys(text)?;
            check_seed(&format!("--set {text}"), &keys)?;
            let rows = keys.get("row").and_then(Value::as_table);
            let is_new = |row: &&String| self.rows().all(|known| known != *row);
            if let Some(row) = rows.into_iter().flat_map(Table::keys).find(is_new) {
                let known = self.rows().collect::<Vec<_>>().join(", ");
                let place = format!("--set {text}");
                return Err(Error::invalid(place, format!("a row of {known}"), format!("`{row}`")));
            }
            override_with(&mut root, &keys);
        }
        Ok(Self { set: set.to_vec(), ..self.changed(root)? })
    }

    /// Refuses a `--set` that no row of the run takes, because each has a value of its own there: the report would name a value that
    /// nothing was trained with.
    ///
    /// # Errors
    /// Names the key, and the key of the first row.
    pub(crate) fn check_set(&self, rows: &[String]) -> Result<()> {
        let file: Table = toml::from_str(&self.text).expect("it was read before");
        for text in &self.set {
            let key = keys(text)?;
            let changes = |row: &String| self.rows.get(row).into_iter().flatten();
            let has_own = |row: &String| changes(row).any(|own| has(own, Some(&file), &key));
            if let Some(row) = rows.first().filter(|_| rows.iter().all(has_own)) {
                let expected = "a key that a row of this run takes from the target";
                let got = format!("one that has a value in every row: --set row.\"{row}\".{text}");
                return Err(Error::invalid(format!("--set {text}"), expected, got));
            }
        }
        Ok(())
    }

    /// The same target with `train.precision` set in the rows of these names. The key is also in the text, and therefore in the hash
    /// and in the copy in the run directory.
    ///
    /// # Errors
    /// The errors of a file with this key.
    pub(crate) fn with_precision(self, rows: &[String], precision: Precision) -> Result<Self> {
        if rows.is_empty() {
            return Ok(self);
        }
        let mut root = toml::from_str(&self.text).expect("it was read before");
        let value = Value::try_from(precision).expect("a name");
        let inside = |value, key: &str| Value::Table(Table::from_iter([(key.to_owned(), value)]));
        for row in rows {
            let row = ["precision", "train", row].into_iter().fold(value.clone(), inside);
            override_with(&mut root, &Table::from_iter([("row".to_owned(), row)]));
        }
        self.changed(root)
    }

    /// The target of changed tables, with the same `--set`.
    fn changed(self, root: Table) -> Result<Self> {
        let text = toml::to_string(&root).expect("the tables were TOML");
        Ok(Self { set: self.set, ..Self::new(&self.name, self.path, text, root)? })
    }
}

/// `a.b=c` as tables.
fn keys(text: &str) -> Result<Table> {
    let quoted = || {
        let (key, value) = text.split_once('=')?;
        toml::from_str(&format!("{key}={}", Value::from(value.trim()))).ok()
    };
    let keys = toml::from_str(text).ok().or_else(quoted);
    keys.filter(|keys: &Table| keys.len() == 1).ok_or_else(|| {
        let expected = "a key of the target and its value, such as train.epochs=2";
        Error::invalid("--set", expected, format!("`{text}`"))
    })
}

/// Whether a row's changes have a value at the one key of `path`, or a section of another kind than the file's around it.
fn has(changes: &Table, file: Option<&Table>, path: &Table) -> bool {
    path.iter().all(|(key, inner)| match (changes.get(key), inner) {
        (Some(Value::Table(changes)), Value::Table(inner)) => {
            let file = file.and_then(|file| file.get(key)?.as_table());
            let is_other = file.is_some_and(|file| !is_same_kind(key, file, changes));
            is_other || has(changes, file, inner)
        }
        (own, _) => own.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use itm_core::eval::Protocol;
    use itm_kernels::Precision;

    use crate::config::Config;
    use crate::tests::configs;

    fn with(set: &[&str]) -> Result<Config, String> {
        let set: Vec<_> = set.iter().map(|&text| text.to_owned()).collect();
        let config = Config::load(&configs(), "fne-scenes").unwrap();
        config.with(&set).map_err(|error| error.to_string())
    }

    #[test]
    fn keys_of_target_method_and_row_take_other_values() {
        let plain = with(&[]).unwrap();
        let set = ["train.epochs=2", "target.protocol=full", "row.\"w/o FNE\".train.epochs = 3"];
        let config = with(&set).unwrap();
        assert_eq!((plain.set.len(), &config.set[..]), (0, &set.map(String::from)[..]));
        assert_ne!(plain.sha256, config.sha256);
        assert_eq!(config.target.protocol, Protocol::Full);
        let epochs = |row: &str| config.number(row, "train.epochs").unwrap();
        assert_eq!((epochs("Full"), epochs("w/o FNE")), (2.0, 3.0));
        let again = Config::parse("fne-scenes", plain.path, config.text.clone()).unwrap();
        assert_eq!(again.sha256, config.sha256, "the copy in the run's folder is whole");
    }

    /// A report with both options names both, because both are needed to repeat it.
    #[test]
    fn a_precision_keeps_what_was_set() {
        let set = "train.epochs=2";
        let config = with(&[set]).unwrap();
        let rounded = config.with_precision(&["Full".to_owned()], Precision::Bf16).unwrap();
        assert_eq!(rounded.set, [set]);
        let table = rounded.text.parse::<toml::Table>().unwrap();
        assert_eq!(table["row"]["Full"]["train"]["precision"].as_str(), Some("bf16"));
        assert_eq!(rounded.number("Full", "train.epochs").unwrap(), 2.0);
    }

    /// Most rows have a rate of their own: another rate of the target would be named in the report and train nothing.
    #[test]
    fn what_no_row_takes_is_refused() {
        let check = |set: &str, rows: &[&str]| {
            let rows: Vec<_> = rows.iter().map(|&row| row.to_owned()).collect();
            with(&[set]).unwrap().check_set(&rows).map_err(|error| error.to_string())
        };
        let rate = "train.learning_rate=0.5";
        assert_eq!(
            check(rate, &["Full"]).unwrap_err(),
            "--set train.learning_rate=0.5: expected a key that a row of this run takes from the target, got one that has a value in \
             every row: --set row.\"Full\".train.learning_rate=0.5"
        );
        for set in ["row.Full.train.learning_rate=0.5", "train.epochs=2", "target.protocol=full"] {
            check(set, &["Full"]).unwrap();
        }
        // Its text encoder is of another kind: nothing pools stems there.
        let pool = "model.text.pooling=mean";
        check(pool, &["Full, scratch"]).unwrap_err();
        check(pool, &["Full, scratch", "Full"]).unwrap();
        let takes = |row: &&str| check(rate, &[row]).is_ok();
        let config = with(&[]).unwrap();
        let taking = config.rows().find(takes).unwrap();
        check(rate, &["Full", taking]).unwrap();
    }

    #[test]
    fn what_no_target_has_is_one_line() {
        for (set, want) in [
            ("train.epochs", "--set: expected a key of the target and its value"),
            ("train.epochs=2\nx=1", "--set: expected a key of the target and its value"),
            ("row.Ful.train.epochs=2", "got `Ful`"),
            ("target.protocl=full", "protocl"),
            ("target.max_words=0", "target.max_words"),
            ("train.seed=7", "train.seed: expected 0: `--seeds` counts from it, got 7"),
            ("row.Full.train.seed=7", "train.seed: expected 0: `--seeds`"),
        ] {
            let line = with(&[set]).unwrap_err();
            assert!(line.contains(want) && !line.contains('\n'), "{set}: {line}");
        }
        let unknown = with(&["train.epoch=2"]).unwrap();
        let line = unknown.row::<fne::FneConfig>("Full").unwrap_err().to_string();
        assert!(line.contains("row.Full") && line.contains("epoch"), "{line}");
    }
}
