//! Folders that clip-retrieval wrote: `img_emb` and `text_emb` hold embeddings, `metadata` holds tables with a row for each of their rows.

use std::fs;

use super::args::InputArgs;
use super::location::Location;
use super::{BUILD_WITH_TABLES, READS_TABLES};

impl InputArgs {
    /// Takes the names that no option gives from clip-retrieval's tables: paths of images, captions of texts. Returns notes.
    ///
    /// Only a report may take them: a caption can come twice, so it cannot name a document of a run.
    pub(crate) fn with_tables(mut self) -> (Self, Vec<String>) {
        let mut notes = vec![];
        for (rows, folder, column, names) in [
            (&self.images, "img_emb", "image_path", &mut self.image_names),
            (&self.texts, "text_emb", "caption", &mut self.text_names),
        ] {
            let tables = beside(rows.as_ref(), folder, column).filter(|_| names.is_none());
            let Some(tables) = tables else { continue };
            if READS_TABLES {
                notes.push(format!("{tables}: the column {column} names the rows of {folder}"));
                *names = Some(tables);
            } else {
                notes.push(format!("{tables}: not read, which needs {BUILD_WITH_TABLES}"));
            }
        }
        (self, notes)
    }
}

/// The tables beside the rows, if the rows are in this folder of clip-retrieval.
fn beside(rows: Option<&Location>, folder: &str, column: &str) -> Option<Location> {
    let rows = rows?.path.as_ref()?;
    let tables = rows.with_file_name("metadata");
    let is_ours = rows.is_dir() && rows.file_name()? == folder;
    let is_table = |file: fs::DirEntry| file.path().extension().is_some_and(|e| e == "parquet");
    let has_tables = is_ours && fs::read_dir(&tables).ok()?.flatten().any(is_table);
    has_tables.then(|| Location { path: Some(tables), part: Some(column.into()) })
}

#[cfg(test)]
mod tests {
    use super::super::tests::files::{Folder, rows};
    use super::*;

    const ROWS: [[f32; 2]; 4] = [[3.0, 4.0], [0.0, -2.0], [1.0, 0.0], [1.0, 1.0]];

    /// A folder of clip-retrieval: two files of embeddings a side, with the tables of `tests/golden/parquet`.
    fn written(images: [[f32; 2]; 4]) -> Folder {
        let folder = Folder::with(&[]);
        for (name, rows_of) in [("img_emb", images), ("text_emb", ROWS)] {
            fs::create_dir(folder.path(name)).unwrap();
            let file = |number| folder.path(&format!("{name}/{name}_{number}.npy"));
            fs::write(file(0), rows([rows_of[0], rows_of[1], rows_of[2]])).unwrap();
            fs::write(file(1), rows([rows_of[3]])).unwrap();
        }
        fs::create_dir(folder.path("metadata")).unwrap();
        let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/parquet");
        for name in ["metadata_0.parquet", "metadata_1.parquet"] {
            fs::copy(golden.join(name), folder.path("metadata").join(name)).unwrap();
        }
        folder
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn tables_name_the_rows_of_a_report() {
        let folder = written(ROWS);
        let (mut input, notes) = folder.embeddings("img_emb", "text_emb/").with_tables();
        assert!(notes[0].ends_with("metadata: the column image_path names the rows of img_emb"));
        let loaded = folder.loaded(&input);
        let names = |names: &[&str]| Some(names.iter().map(ToString::to_string).collect());
        assert_eq!(loaded.names.images, names(&["in/a.jpg", "in/b.jpg", "in/c.jpg", "in/d.jpg"]));
        assert_eq!(loaded.names.texts, names(&["a dog", "a dog", "a cat", "a bird"]));
        assert_eq!(loaded.pairs.as_ref().unwrap().image_of_text(), [0, 1, 2, 3]);
        assert_eq!(loaded.messages.files.len(), 6, "each file has its hash");
        // Names that an option gives stay, and a column can be named.
        input.image_names = Some(folder.at("metadata:key"));
        let (input, notes) = input.with_tables();
        assert_eq!(notes, [""; 0]);
        assert_eq!(folder.loaded(&input).names.images, names(&["k0", "k1", "k2", "k3"]));
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn an_image_stored_for_each_caption_has_the_name_of_its_first_row() {
        let folder = written([ROWS[0], ROWS[0], ROWS[1], ROWS[1]]);
        let (input, _) = folder.embeddings("img_emb", "text_emb").with_tables();
        let loaded = folder.loaded(&input);
        assert_eq!(loaded.pairs.as_ref().unwrap().texts_of(1), [2, 3]);
        assert_eq!(loaded.names.images, Some(vec!["in/a.jpg".into(), "in/c.jpg".into()]));
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn tables_that_do_not_fit_are_one_line() {
        let folder = written(ROWS);
        let refused = |folder: &Folder| {
            folder.refused(&folder.embeddings("img_emb", "text_emb").with_tables().0)
        };
        let table = |name: &str| folder.path("metadata").join(name);
        fs::remove_file(table("metadata_1.parquet")).unwrap();
        assert_eq!(refused(&folder), "metadata: expected a name for each of 4 texts, got 3 names");
        fs::write(table("metadata_1.parquet"), "PAR1").unwrap();
        let line = refused(&folder);
        assert!(
            line.starts_with("metadata/metadata_1.parquet: expected a whole Parquet"),
            "{line}"
        );
        fs::rename(table("metadata_0.parquet"), table("metadata_2.parquet")).unwrap();
        fs::rename(table("metadata_1.parquet"), table("metadata_0.parquet")).unwrap();
        assert_eq!(refused(&folder), "metadata: expected a file with the number 1, got none");
    }

    #[cfg(not(feature = "parquet"))]
    #[test]
    fn a_build_without_tables_says_what_it_leaves_out() {
        let folder = written(ROWS);
        let (input, notes) = folder.embeddings("img_emb", "text_emb").with_tables();
        assert!(notes[0].ends_with(
            "metadata: not read, which needs a build with the feature `parquet`: cargo install --features cli,parquet"
        ));
        assert_eq!(folder.loaded(&input).names.images, None);
    }

    /// Another program's folders of these names have no tables, and other folders are not clip-retrieval's.
    #[test]
    fn other_folders_stay_as_they_are() {
        let folder = written(ROWS);
        let swapped = folder.embeddings("text_emb", "img_emb");
        assert_eq!(swapped.clone().with_tables(), (swapped, vec![]));
        fs::remove_dir_all(folder.path("metadata")).unwrap();
        fs::create_dir(folder.path("metadata")).unwrap();
        let plain = folder.embeddings("img_emb", "text_emb");
        assert_eq!(plain.clone().with_tables(), (plain, vec![]));
        let line = folder.refused(&folder.embeddings("img_emb:x", "text_emb"));
        assert_eq!(line, "img_emb: expected a file, got a folder");
    }
}
