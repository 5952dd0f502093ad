//! Which files of the published sets go where, and what a person must sign for them.
//!
//! Nothing is downloaded: the photographs belong to their authors, and two of the sets require a form.

/// The advice for all sets, and how to check the result.
pub fn all() -> String {
    [FLICKR30K, FLICKR8K, COCO, CHECK].join("\n")
}

const FLICKR30K: &str = "\
Flickr30K: 31,783 photographs (31,014 in Karpathy's split), 5 captions each
  sign      the request form \"Flickr 30k\" of the Department of Computer Science, University of Illinois at
            Urbana-Champaign: non-commercial research and education only; the photographs stay under Flickr's
            terms of use. A person fills it in; the answer names the archive.
  place     DIR/images/*.jpg                  the archive flickr30k-images, unpacked without its folder
            DIR/dataset_flickr30k.json        Karpathy's split: 29,000 train, 1,014 val, 1,000 test images. Its
                                              page at Stanford is gone; the file goes on in caption_datasets.zip
  or        DIR/results_20130124.token        the captions as the university gives them, or
            DIR/results.csv                   as they go around (image_name| comment_number| comment),
            DIR/flickr30k_images/*.jpg        pictures, here or in images/,
            DIR/train.txt, val.txt, test.txt  and the splits: a file name (or number) on each line
  features  DIR/precomp/train_ims.npy         [29000, dim], or regions [29000, 36, 2048] (8.6 GB in f32)
            DIR/precomp/train_caps.txt        145,000 lines, five per image, in the same order
            DIR/precomp/train_ids.txt         29,000 file names
            DIR/precomp/val_*, test_*         the same; SCAN's folder f30k_precomp (dev_*, images repeated five
                                              times or not) is read as it is
            DIR/precomp/*_regions.npy         regions beside them, with *_boxes.npy; or *_grid.npy, as
                                              `itm embed --patches` writes grid.npy: for models that see regions
  computed  global features as the mean over regions where a file holds regions; nothing else
";

const FLICKR8K: &str = "\
Flickr8k: 8,091 photographs (8,000 in its own split), 5 captions each
  sign      the request form \"Flickr 8k\" of the Department of Computer Science, University of Illinois at
            Urbana-Champaign: non-commercial research and education only; Flickr's terms of use for the
            photographs.
  place     DIR/images/*.jpg                  the archive Flickr8k_Dataset, unpacked without its folder
            DIR/dataset_flickr8k.json         Karpathy's split: 6,000 train, 1,000 val, 1,000 test images; in
                                              caption_datasets.zip
  or        DIR/Flickr8k.token.txt            the archive Flickr8k_text: captions, and the splits
            DIR/Flickr_8k.trainImages.txt     with …devImages.txt and …testImages.txt beside it
            DIR/Flicker8k_Dataset/*.jpg       pictures, here or in images/ or Images/
  or        DIR/captions.txt                  as it goes around (image,caption), with the three lists above
  features  DIR/precomp/train_ims.npy         [6000, dim]; or part of them, the rest as train_extra_ims.npy
            DIR/precomp/train_caps.txt        five lines per image, in the same order
            DIR/precomp/train_ids.txt         file names
            DIR/precomp/val_*, test_*         the same
            DIR/precomp/*_regions.npy         regions beside them, with *_boxes.npy; or *_grid.npy, as
                                              `itm embed --patches` writes grid.npy: for models that see regions
  more      DIR/minilm, DIR/dinov2            rows of published encoders, for fne-flickr8k-real, hal-flickr8k-real:
    cat DIR/precomp/*_caps.txt > captions.txt
    cargo xtask embed --model sentence-transformers/all-MiniLM-L6-v2 --captions captions.txt --out DIR/minilm
    cargo xtask embed --model facebook/dinov2-small --images DIR/images --out DIR/dinov2
                                              --model takes a folder too. all-MiniLM-L6-v2 (Apache-2.0) was trained
                                              on text pairs that include Flickr30K's and COCO's captions
  computed  global features as the mean over regions where a file holds regions; nothing else
";

const COCO: &str = "\
MS-COCO 2014: 123,287 photographs with captions, at least 5 each (the first five count; `protocol` full: all)
  sign      no form. Accept the terms of the COCO Consortium: annotations under CC BY 4.0, each photograph under
            the Creative Commons licence named in its entry, and Flickr's terms of use.
  place     DIR/train2014/*.jpg               82,783 photographs, 13 GB
            DIR/val2014/*.jpg                 40,504 photographs, 6 GB
            DIR/dataset_coco.json             Karpathy's split: 113,287 train (30,504 of them restval), 5,000 val,
                                              5,000 test images; in caption_datasets.zip
  or        DIR/annotations/captions_*.json   COCO's own captions, with train.txt, val.txt and test.txt: a file
                                              name on each line
  more      DIR/judgements/eccv_*.json        ECCV Caption's eccv_image_to_caption.json and
                                              eccv_caption_to_image.json, likewise cxc_… and pm_…: their tables
                                              stand beside R@K; needs dataset_coco.json, whose ids they use
  features  DIR/precomp/train_ims.npy         [113287, dim], or regions [113287, 36, 2048] (33 GB in f32)
            DIR/precomp/train_caps.txt        566,435 lines, five per image, in the same order
            DIR/precomp/train_ids.txt         file names, or COCO's numbers
            DIR/precomp/dev_*, test_*         5,000 images; 1,000 of the test split
            DIR/precomp/testall_*             all 5,000; SCAN's folder coco_precomp is read as it is
            DIR/precomp/*_regions.npy         regions beside them, with *_boxes.npy; or *_grid.npy, as
                                              `itm embed --patches` writes grid.npy: for models that see regions
  computed  global features as the mean over regions where a file holds regions; nothing else
";

const CHECK: &str = "\
DIR is data/flickr30k, data/flickr8k or data/coco below the working folder, or any folder given by `--data`. Then:
  cargo xtask data check DIR                         names the layout, counts images and captions, hashes every
                                                     file, gives each mismatch a line (of a list, the first)
  cargo xtask reproduce fne-flickr8k --data DIR      trains on it; `cargo xtask list` names the targets
";

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums of Karpathy's splits.
    #[test]
    fn counts_add_up() {
        for (text, count, sum) in [
            (FLICKR30K, "31,014", 29_000 + 1_014 + 1_000),
            (FLICKR30K, "145,000 lines", 5 * 29_000),
            (FLICKR8K, "8,000", 6_000 + 1_000 + 1_000),
            (COCO, "113,287 train", 82_783 + 30_504),
            (COCO, "123,287", 113_287 + 5_000 + 5_000),
            (COCO, "566,435 lines", 5 * 113_287),
        ] {
            let number: String = count.chars().filter(char::is_ascii_digit).collect();
            assert_eq!(number.parse(), Ok(sum), "{count}");
            assert!(text.contains(count), "{count}");
        }
    }

    #[test]
    fn every_set_says_sign_place_and_features() {
        for (name, text) in [("Flickr30K", FLICKR30K), ("Flickr8k", FLICKR8K), ("MS-COCO", COCO)] {
            assert!(text.starts_with(name), "{name}");
            for word in ["\n  sign ", "\n  place ", "\n  features ", "\n  computed "] {
                assert!(text.contains(word), "{name}: {word}");
            }
            assert!(text.lines().all(|line| line.len() <= 115), "{name}");
            assert!(all().contains(text));
        }
    }
}
