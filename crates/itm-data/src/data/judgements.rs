//! Judgements of a test split beyond its annotated pairs: ECCV Caption, CxC, plausible matches (PMRP).

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

use super::SplitData;
use super::json::{self, ByName};
use super::karpathy::{Id, RawFile, RawImage, karpathy_file};
use crate::files::{self, Manifest, excerpt, file_name};
use crate::{Error, Relevance, Result};

/// How the files of a set of judgements end.
const ENDS: [&str; 2] = ["_image_to_caption.json", "_caption_to_image.json"];

/// Which captions are true of which images of a test split, by one set of judgements.
///
/// Each direction has judgements of its own: not every image that is judged as an item is judged as a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgements {
    /// `ECCV Caption`, `CxC`, `plausible matches`, or the beginning of the files' names.
    pub name: String,
    /// The true texts of the images that are queries.
    pub i2t: Relevance,
    /// The true images of the texts that are queries.
    pub t2i: Relevance,
    /// Judged pairs with an image or a caption that the split does not have; they are left out.
    pub unknown: usize,
}

impl Judgements {
    /// Every set of judgements of a data folder, or of `judgements` below it, by name.
    ///
    /// ```text
    /// DIR/judgements/eccv_image_to_caption.json     {"image id": [caption ids]}
    /// DIR/judgements/eccv_caption_to_image.json     {"caption id": [image ids]}; cxc_… and pm_… likewise
    /// DIR/dataset_coco.json                         Karpathy's JSON, whose cocoid and sentid are these ids
    /// ```
    ///
    /// # Errors
    /// If a file is malformed, has no partner, or judges no image or caption of the split, if nothing names the captions, or if
    /// the JSON has two images of one file name.
    pub fn of_folder(dir: &Path, test: &SplitData, manifest: &mut Manifest) -> Result<Vec<Self>> {
        let below = dir.join("judgements");
        let folders = [Some(dir.to_path_buf()), below.is_dir().then_some(below)];
        let mut found = vec![];
        for folder in folders.into_iter().flatten() {
            let paths = files::entries(&folder)?;
            let names = paths.iter().map(|path| file_name(&path.to_string_lossy()).to_owned());
            let of = |name: String| {
                ENDS.iter().find_map(|end| name.strip_suffix(end).map(str::to_owned))
            };
            let sets: BTreeSet<_> = names.filter_map(of).collect();
            let files_of = |set: String| ENDS.map(|end| folder.join(format!("{set}{end}")));
            found.extend(sets.into_iter().map(files_of));
        }
        if found.is_empty() {
            return Ok(vec![]);
        }
        let ids = Ids::of_test(dir, test)?;
        found.into_iter().map(|paths| ids.read(dir, paths, manifest)).collect()
    }
}

impl fmt::Display for Judgements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, i2t, t2i, unknown } = self;
        let (i2t, t2i) = (i2t.len(), t2i.len());
        write!(f, "{name}: {i2t} true pairs image to text, {t2i} text to image")?;
        if *unknown > 0 {
            write!(f, ", {unknown} of images or captions that are not in the test split left out")?;
        }
        Ok(())
    }
}

/// The numbers of images and texts of a test split, by the ids that judgements use.
struct Ids {
    images: HashMap<String, usize>,
    texts: HashMap<String, usize>,
    /// Images and texts of the split.
    size: [usize; 2],
}

impl Ids {
    fn of_test(dir: &Path, test: &SplitData) -> Result<Self> {
        let Some(path) = karpathy_file(dir)? else {
            let expected = "a dataset_*.json, whose sentids name the captions that are judged";
            return Err(Error::invalid(dir.display(), expected, "none"));
        };
        let RawFile { images, .. } = files::read_json(&path, "Karpathy's JSON with sentids")?;
        let number: HashMap<&str, usize> =
            test.images.iter().enumerate().map(|(i, name)| (file_name(name), i)).collect();
        let size = [test.pairs.images(), test.pairs.texts()];
        let mut ids = Self { images: HashMap::new(), texts: HashMap::new(), size };
        let mut seen = HashSet::new();
        for RawImage { filename, cocoid, imgid, sentences, .. } in images.0 {
            let Some(&image) = number.get(file_name(&filename)) else { continue };
            let expected = "another file name for each image, because judgements go by it";
            Error::unless(seen.insert(image), path.display(), expected, excerpt(&filename))?;
            if let Some(id) = cocoid.or(imgid) {
                ids.images.insert(id.into(), image);
            }
            // The loaders keep the first captions of an image, in order.
            for (sentence, &text) in sentences.0.into_iter().zip(test.pairs.texts_of(image)) {
                ids.texts.extend(sentence.sentid.map(|id| (String::from(id), text)));
            }
        }
        Ok(ids)
    }

    /// A set of judgements from its two files.
    fn read(
        &self,
        dir: &Path,
        [i2t, t2i]: [PathBuf; 2],
        manifest: &mut Manifest,
    ) -> Result<Judgements> {
        let name = file_name(&i2t.to_string_lossy()).trim_end_matches(ENDS[0]).to_owned();
        let mut unknown = 0;
        let mut read =
            |path: &Path, queries: &HashMap<String, usize>, items: &HashMap<String, usize>| {
                let place = path.display().to_string();
                let bytes = manifest.read(dir, path)?;
                let what = "lists of ids by the id of a query, {\"id\": [ids]}";
                let ByName(lists): ByName<Vec<Id>> = json::parse(&place, what, &bytes)?;
                let mut pairs = vec![];
                for (query, of_query) in lists {
                    let query = queries.get(&query);
                    for item in of_query {
                        match (query, items.get(&String::from(item))) {
                            (Some(&query), Some(&item)) => pairs.push((query, item)),
                            _ => unknown += 1,
                        }
                    }
                }
                let expected = "ids of the test split (cocoid and sentid of the JSON)";
                Error::unless(!pairs.is_empty(), place, expected, "none")?;
                Ok(pairs)
            };
        let i2t = read(&i2t, &self.images, &self.texts)?;
        let t2i = read(&t2i, &self.texts, &self.images)?;
        let turned = t2i.into_iter().map(|(text, image)| (image, text)).collect();
        Ok(Judgements {
            name: match name.as_str() {
                "eccv" => "ECCV Caption".into(),
                "cxc" => "CxC".into(),
                "pm" => "plausible matches".into(),
                _ => name,
            },
            i2t: relevance(self.size, i2t),
            t2i: relevance(self.size, turned),
            unknown,
        })
    }
}

fn relevance([images, texts]: [usize; 2], pairs: Vec<(usize, usize)>) -> Relevance {
    let mut texts_of_image = vec![vec![]; images];
    pairs.into_iter().for_each(|(image, text)| texts_of_image[image].push(text as u32));
    Relevance::new(texts, texts_of_image)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::Pairs;

    const JSON: &str = r#"{"images": [
        {"filename": "a.jpg", "cocoid": 7, "split": "test", "sentences": [{"raw": "One", "sentid": 70}, {"raw": "Two", "sentid": 71}, {"raw": "Three", "sentid": 72}]},
        {"filename": "b.jpg", "cocoid": 9, "split": "test", "sentences": [{"raw": "Four", "sentid": 90}, {"raw": "Five", "sentid": 91}]},
        {"filename": "t.jpg", "cocoid": 5, "split": "train", "sentences": [{"raw": "Six", "sentid": 50}]}]}"#;

    fn test_part() -> SplitData {
        SplitData {
            images: vec!["a.jpg".into(), "b.jpg".into()],
            captions: ["One", "Two", "Four", "Five"].map(String::from).to_vec(),
            pairs: Pairs::uniform(2, 2),
            ..SplitData::default()
        }
    }

    fn read(files: &[(&str, &str)]) -> Result<Vec<Judgements>, String> {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("judgements")).unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let found = Judgements::of_folder(dir.path(), &test_part(), &mut Manifest::default());
        let place = format!("{}/", dir.path().display());
        found.map_err(|e| e.to_string().replace(&place, ""))
    }

    /// The first two captions of each image are in the split; the third of a.jpg, and t.jpg, are not.
    #[test]
    fn ids_are_found_in_the_json() {
        let [i2t, t2i] = [r#"{"7": [70, "91", 72], "5": [50]}"#, r#"{"91": [9, 7]}"#];
        let found = read(&[
            ("dataset_x.json", JSON),
            ("judgements/eccv_image_to_caption.json", i2t),
            ("judgements/eccv_caption_to_image.json", t2i),
            ("own_image_to_caption.json", i2t),
            ("own_caption_to_image.json", t2i),
        ]);
        let found = found.unwrap();
        let names: Vec<_> = found.iter().map(|set| &set.name[..]).collect();
        assert_eq!(names, ["own", "ECCV Caption"]);
        for set in found {
            assert_eq!(set.i2t, Relevance::new(4, vec![vec![0, 3], vec![]]));
            assert_eq!(set.t2i, Relevance::new(4, vec![vec![3], vec![3]]));
            assert_eq!(set.unknown, 2);
        }
        assert_eq!(read(&[]).unwrap(), []);
    }

    /// The files of "own_coco" stand between the two files of "own".
    #[test]
    fn a_set_is_read_once() {
        let [i2t, t2i] = [r#"{"7": [70]}"#, r#"{"70": [7]}"#];
        let found = read(&[
            ("dataset_x.json", JSON),
            ("own_image_to_caption.json", i2t),
            ("own_caption_to_image.json", t2i),
            ("own_coco_image_to_caption.json", i2t),
            ("own_coco_caption_to_image.json", t2i),
        ]);
        let names: Vec<_> = found.unwrap().into_iter().map(|set| set.name).collect();
        assert_eq!(names, ["own", "own_coco"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let line = |files: &[(&str, &str)]| read(files).unwrap_err();
        let json = ("dataset_x.json", JSON);
        let half = ("cxc_image_to_caption.json", r#"{"7": [70]}"#);
        // A picture of the training with the file name of a test picture: its id would be the test picture's.
        let same = JSON.replace("t.jpg\"", "b.jpg\", \"filepath\": \"train\"");
        assert_eq!(
            line(&[("dataset_x.json", &same[..]), half]),
            "dataset_x.json: expected another file name for each image, because judgements go by it, got \"b.jpg\""
        );
        assert!(line(&[half]).ends_with(
            "expected a dataset_*.json, whose sentids name the captions that are judged, got none"
        ));
        let alone = line(&[json, half]);
        assert!(alone.starts_with("cxc_caption_to_image.json: No such file"), "{alone}");
        for (text, want) in [
            (
                r#"{"1": [70]}"#,
                "expected ids of the test split (cocoid and sentid of the JSON), got none",
            ),
            (
                "[1]",
                "expected lists of ids by the id of a query, {\"id\": [ids]}, got invalid type",
            ),
            (
                r#"{"7": 70}"#,
                "expected lists of ids by the id of a query, {\"id\": [ids]}, got invalid type",
            ),
        ] {
            let got = line(&[
                json,
                ("cxc_image_to_caption.json", text),
                ("cxc_caption_to_image.json", text),
            ]);
            assert!(got.starts_with(&format!("cxc_image_to_caption.json: {want}")), "{got}");
        }
    }
}
