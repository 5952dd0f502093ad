//! How close each word of a caption is to each patch of a picture.

use std::collections::BTreeSet;

use itm_core::Result;
use itm_core::encoders::{PatchGrid, Places, word_patches};
use itm_core::learn::{ImageItems, Word, WordMap, WordMaps, WordPairs};

use crate::step::Fne;

impl Fne {
    /// A map for each word of each pair; `None` unless images are pictures and captions word pieces.
    pub(crate) fn maps(
        &self,
        WordPairs { items, pairs, words }: WordPairs,
    ) -> Result<Option<Vec<WordMaps>>> {
        let (Some(states), ImageItems::Pictures(pictures)) = (self.states(), items.images) else {
            return Ok(None);
        };
        let (grid, d) = (states.grid, self.config.model.embed_dim);
        let images: BTreeSet<usize> = pairs.iter().map(|&(image, _)| image).collect();
        let images: Vec<usize> = images.into_iter().collect();
        let mut maps = vec![None; pairs.len()];
        for (images, batch) in images.chunks(pictures.batch()).zip(pictures.some(&images)) {
            let patches = states.patches(&batch?)?; // [images, n, d]
            let of_image = grid.len() * d;
            let here: Vec<usize> =
                (0..pairs.len()).filter(|&k| images.binary_search(&pairs[k].0).is_ok()).collect();
            let texts: Vec<_> = here.iter().map(|&k| items.texts[pairs[k].1].as_slice()).collect();
            for (&k, pieces) in here.iter().zip(states.pieces(&texts)?) {
                let (image, text) = pairs[k];
                let at = images.partition_point(|&i| i < image) * of_image;
                let patches = &patches[at..at + of_image];
                maps[k] = Some(of_pair(grid, patches, (&pieces, words(text)?), d));
            }
        }
        Ok(Some(maps.into_iter().flatten().collect()))
    }
}

/// The maps of one pair. If the caption was cut, words without all their pieces have no map.
fn of_pair(
    grid: PatchGrid,
    patches: &[f32],
    (pieces, mut words): (&[f32], Vec<Word>),
    d: usize,
) -> WordMaps {
    let end = pieces.len() / d - 1; // [SEP]
    words.retain(|word| word.pieces.end <= end);
    let ranges: Vec<_> = words.iter().map(|word| word.pieces.clone()).collect();
    let values = word_patches(patches, pieces, &ranges, d);
    let maps = values.chunks_exact(grid.len()).zip(words);
    let map = |(values, word): (&[f32], Word)| WordMap {
        word: word.text,
        values: values.to_vec(),
        effect: None,
    };
    WordMaps { places: Places::Patches(grid), score: None, words: maps.map(map).collect() }
}
