//! Rows before pooling, compared with `tests/reference/fne_maps.py`, and with the embeddings, which are their means.

use itm_core::encoders::{Places, word_patches};
use itm_core::learn::{PictureItems, Word, WordPairs};
use itm_core::vision::PictureBatch;
use serde_json::Value;

use super::pictures::{CAPTIONS, bert, new, pictures, small, vit};
use super::reference::{ids, pictures as reference_pictures, start, training};
use super::*;
use crate::{ImagePool, PiecePool};

/// The goldens are from PyTorch in double precision, with and without projections.
#[test]
fn golden_maps() {
    let golden: Vec<Value> =
        serde_json::from_str(include_str!("../../../tests/golden/maps.json")).unwrap();
    assert_eq!(golden.len(), 3);
    for (variant, name) in [("drawn", "plain"), ("paper", "projected")] {
        let fne = start(variant, &training());
        let states = fne.states().unwrap();
        assert_eq!((states.grid.side, states.grid.patch, states.grid.size), (4, 8, 32));
        let captions: Vec<_> = golden.iter().map(|pair| ids(&pair["caption"])).collect();
        let pieces = states.pieces(&captions).unwrap(); // in one batch: the shorter is padded
        for (pair, pieces) in golden.iter().zip(pieces) {
            let image = pair["image"].as_i64().unwrap();
            let patches = states.patches(&reference_pictures(&[5, image])).unwrap();
            let patches = &patches[patches.len() / 2..];
            let words: Vec<_> = pair["words"].as_array().unwrap().iter().map(ids).collect();
            let words: Vec<_> = words.iter().map(|w| w[0] as usize..w[1] as usize).collect();
            let got = word_patches(patches, &pieces, &words, fne.config.model.embed_dim);
            let want = floats(&pair[name]);
            assert_eq!(got.len(), want.len());
            let error =
                got.iter().zip(&want).map(|(g, w)| (g - w).abs()).max_by(f32::total_cmp).unwrap();
            assert!(error < 1e-5, "{name}, image {image}: off by {error:e}");
        }
    }
}

/// An embedding is the normalised mean of the rows in the joint space, with and without a projection.
#[test]
fn embeddings_are_means_of_the_rows() {
    for preset in [Preset::Default, Preset::Paper] {
        let mut config = small(preset, 0.0);
        vit(&mut config).pool = ImagePool::Patches;
        bert(&mut config).pool = PiecePool::Masked;
        let fne = new(&config);
        let (states, d) = (fne.states().unwrap(), config.model.embed_dim);
        let seen = pictures(&[0, 3], 16);
        let patches = states.patches(&seen).unwrap();
        assert_eq!(patches.len(), 2 * states.grid.len() * d);
        let images: Vec<f32> =
            patches.chunks_exact(patches.len() / 2).flat_map(|rows| mean(rows, d)).collect();
        near(&images, &fne.embed_pictures(seen).unwrap());
        let texts: Vec<f32> =
            states.pieces(&CAPTIONS).unwrap().iter().flat_map(|rows| mean(rows, d)).collect();
        near(&texts, &fne.embed_texts(&CAPTIONS).unwrap());
        assert_eq!(states.pieces(&CAPTIONS).unwrap()[7].len(), 6 * d, "cut as in evaluation");
    }
}

/// Four pictures of this size, two per batch.
struct Album(usize);

impl PictureItems for Album {
    fn len(&self) -> usize {
        4
    }

    fn batch(&self) -> usize {
        2
    }

    fn some(&self, images: &[usize]) -> Box<dyn Iterator<Item = Result<PictureBatch>> + '_> {
        let batches: Vec<_> = images.chunks(2).map(|some| Ok(album(some, self.0))).collect();
        Box::new(batches.into_iter())
    }
}

fn album(images: &[usize], size: usize) -> PictureBatch {
    pictures(&images.iter().map(|i| 2 * i).collect::<Vec<_>>(), size)
}

/// Every piece between `[CLS]` and `[SEP]` is a word. The pairs are in no order, and one image occurs twice. In a cut caption,
/// words whose pieces were cut have no map.
#[test]
fn maps_are_those_of_each_pair_alone() {
    let config = small(Preset::Paper, 0.0);
    let fne = new(&config);
    let (states, d) = (fne.states().unwrap(), config.model.embed_dim);
    let texts: Vec<Vec<u32>> = CAPTIONS.iter().map(|c| c.to_vec()).collect();
    let (all, pairs) = (Pairs::uniform(4, 2), [(3, 7), (0, 0), (3, 2), (1, 1)]);
    let items = Items { images: ImageItems::Pictures(&Album(16)), texts: &texts, pairs: &all };
    let words = |text: usize| {
        let word = |k: usize| Word { text: format!("{text}.{k}"), pieces: k..k + 1 };
        Ok((1..CAPTIONS[text].len() - 1).map(word).collect())
    };
    let asked = WordPairs { items, pairs: &pairs, words: &words };
    let maps = fne.word_maps(asked).unwrap().unwrap();
    assert_eq!(maps.len(), 4);
    for (maps, (image, text)) in maps.iter().zip(pairs) {
        let (patches, pieces) =
            (states.patches(&album(&[image], 16)).unwrap(), states.pieces(&[CAPTIONS[text]]));
        let kept = CAPTIONS[text].len().min(6) - 2; // `max_length` without `[CLS]` and `[SEP]`
        assert_eq!(maps.places, Places::Patches(states.grid));
        assert_eq!(maps.words.len(), kept);
        let ranges: Vec<_> = (1..1 + kept).map(|k| k..k + 1).collect();
        let want = word_patches(&patches, &pieces.unwrap()[0], &ranges, d);
        near(&maps.words.iter().flat_map(|map| map.values.clone()).collect::<Vec<_>>(), &want);
        assert_eq!(maps.words[0].word, format!("{text}.1"));
    }
}

/// Pictures of another size and unknown words are errors.
#[test]
fn maps_of_what_the_encoders_cannot_read_are_refused() {
    let fne = new(&small(Preset::Paper, 0.0));
    let (all, words) = (Pairs::uniform(4, 1), |_| Ok(vec![]));
    let line = |size, texts: &[Vec<u32>]| {
        let album = Album(size);
        let items = Items { images: ImageItems::Pictures(&album), texts, pairs: &all };
        let asked = WordPairs { items, pairs: &[(1, 0)], words: &words };
        fne.word_maps(asked).unwrap_err().to_string()
    };
    let known = vec![vec![2, 7, 3]; 4];
    assert_eq!(line(24, &known), "images: expected pictures of 16 px, got 24 px");
    let unknown = line(16, &[vec![2, 30, 3]]);
    assert!(unknown.ends_with("words below 30, the vocabulary, got 30"), "{unknown}");
}

/// Maps explain an embedding that is a mean of their rows, and no other.
#[test]
fn other_pools_than_means_have_no_maps() {
    type Change = fn(&mut FneConfig);
    let others: [Change; 3] = [
        |c| vit(c).pool = ImagePool::Class,
        |c| bert(c).pool = PiecePool::Class,
        |c| bert(c).pool = PiecePool::Max,
    ];
    for change in others {
        let mut config = small(Preset::Paper, 0.0);
        change(&mut config);
        assert!(new(&config).states().is_none());
    }
}

#[test]
fn features_and_words_have_no_patches() {
    let fne = fne(&tiny(Preset::Default));
    assert!(fne.states().is_none());
    let (features, pairs) = (Features { dim: DIM, values: vec![] }, Pairs::uniform(0, 1));
    let items = Items { images: ImageItems::Features(&features), texts: &[], pairs: &pairs };
    let asked = WordPairs { items, pairs: &[], words: &|_| Ok(vec![]) };
    assert_eq!(fne.word_maps(asked).unwrap(), None);
}

fn mean(rows: &[f32], d: usize) -> Vec<f32> {
    let sum = |k: usize| rows.chunks_exact(d).map(|row| f64::from(row[k])).sum::<f64>();
    let sums: Vec<f64> = (0..d).map(sum).collect();
    let norm = sums.iter().map(|x| x * x).sum::<f64>().sqrt();
    sums.iter().map(|x| (x / norm) as f32).collect()
}

fn near(got: &[f32], want: &[f32]) {
    assert_eq!(got.len(), want.len());
    assert!(got.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-5), "{got:?}, want {want:?}");
}
