//! What padding and the other rows of a batch must not change.

use itm_core::data::Bounds;

use super::*;

/// The outputs of one text of the golden without the other texts: its logit, and the states of its row.
fn alone(model: &Uniter, row: usize) -> (Vec<f32>, Vec<f32>) {
    let g = golden();
    let (image, n) = (IMAGES[row], REGIONS[IMAGES[row]]);
    let from = REGIONS[..image].iter().sum::<usize>();
    let cut = |name: &str, width: usize| g[name][from * width..][..n * width].to_vec();
    let one = RegionBatch::new(6, vec![n], cut("features", 6), cut("boxes", 7)).unwrap();
    let texts = TokenBatch::new(&[TEXTS[row]]);
    let joint = model.join(&texts, &model.embed_regions(&one), &[0], Noise::Off);
    (host(model.match_logits(&joint)), host(joint.states))
}

// Trap 5: a row has the same outputs alone and in a batch of several lengths.
#[test]
fn a_row_does_not_depend_on_its_batch() {
    let model = open("full.safetensors", &Device::flex());
    let batch = joint(&model, Noise::Off);
    let (width, together) = (batch.states.dims()[1], host(model.match_logits(&batch)));
    let states = host(batch.states);
    for row in 0..3 {
        let (logit, own) = alone(&model, row);
        assert!(off(&together[row..][..1], &logit) < 1e-6, "row {row}");
        assert!(off(&states[row * width * 16..][..own.len()], &own) < 1e-5, "row {row}");
        assert_eq!(own.len(), batch.keys[row] * 16);
    }
}

// Trap 7: token outputs come from a row's first positions, however long the longest text is. Regions change neither their number
// nor their order.
#[test]
fn token_outputs_end_where_the_text_ends() {
    let model = open("full.safetensors", &Device::flex());
    let batch = joint(&model, Noise::Off);
    let got = host(model.discrimination_logits(&batch, &batch.every_token()));
    assert_eq!(got.len(), 2 * TEXTS.iter().map(|text| text.len()).sum::<usize>());
    // The second text alone: in the batch its outputs come after the outputs of the first text.
    let g = golden();
    let second =
        RegionBatch::new(6, vec![5], g["features"][18..].to_vec(), g["boxes"][21..].to_vec());
    let regions = model.embed_regions(&second.unwrap());
    let one = model.join(&TokenBatch::new(&[TEXTS[1]]), &regions, &[0], Noise::Off);
    let own = host(model.discrimination_logits(&one, &one.every_token()));
    assert!(off(&got[2 * 7..][..own.len()], &own) < 1e-5);
}

// Trap 7 again: a region's position is refused where the call wants a token.
#[test]
#[should_panic(expected = "position 4 of a text of 4")]
fn a_region_is_no_token() {
    let model = open("full.safetensors", &Device::flex());
    let batch = joint(&model, Noise::Off);
    model.word_logits(&batch, &[At { row: 1, position: 4 }]);
}

// Trap 8: padded positions stay finite, and so do gradients through a batch with padding.
#[test]
fn padded_positions_are_finite() {
    let model = open("full.safetensors", &Device::flex().autodiff());
    let batch = joint(&model, Noise::Off);
    assert!(batch.keys.iter().any(|&n| n < batch.states.dims()[1]), "nothing was padded");
    assert!(values(batch.states.clone()).iter().all(|x| x.is_finite()));
    let grads = model.match_logits(&batch).sum().backward();
    let d = host(model.bert.words.val().grad(&grads).unwrap());
    assert!(d.iter().all(|d| d.is_finite()) && d.iter().any(|d| *d != 0.0));
}

// Trap 23: no number is added to the scores of padding, so nothing can overflow in f16 and nothing leaks where scores are
// larger than such a number. Here the scores are in the tens of thousands.
#[test]
fn padding_is_no_key_whatever_the_scores() {
    let mut model = open("full.safetensors", &Device::flex());
    for block in &mut model.bert.blocks {
        block.attention.qkv.weight = block.attention.qkv.weight.clone().map(|w| w * 300.0);
    }
    let together = logits(&model);
    assert!(together.iter().all(|x| x.is_finite()), "{together:?}");
    for row in 0..3 {
        assert!(off(&together[row..][..1], &alone(&model, row).0) < 1e-3, "row {row}");
    }
}

/// One image for several texts: the regions are embedded once, and their gradient is the sum over the texts.
#[test]
fn regions_are_shared_by_the_texts_of_an_image() {
    let device = Device::flex().autodiff();
    let model = open("full.safetensors", &device);
    let gradient = |images: &[usize], texts: &[&[u32]]| {
        let regions = model.embed_regions(&regions());
        let joint = model.join(&TokenBatch::new(texts), &regions, images, Noise::Off);
        let grads = model.match_logits(&joint).sum().backward();
        host(model.regions.features.weight.val().grad(&grads).unwrap())
    };
    let parts = [0, 1, 2].map(|row| gradient(&IMAGES[row..][..1], &TEXTS[row..][..1]));
    let sum: Vec<f32> = (0..parts[0].len()).map(|k| parts.iter().map(|p| p[k]).sum()).collect();
    assert!(off(&gradient(&IMAGES, &TEXTS), &sum) < 1e-5);
}

/// Each text of an image draws its own mask, and the mask is a function of the seed.
#[test]
fn dropout_is_drawn_for_each_text() {
    let model = open("full.safetensors", &Device::flex());
    let regions = model.embed_regions(&regions());
    let scores = |noise| {
        let texts = TokenBatch::new(&[TEXTS[1], TEXTS[1]]);
        host(model.match_logits(&model.join(&texts, &regions, &[1, 1], noise)))
    };
    let [off, one, two] = [Noise::Off, Noise::Seeded(1), Noise::Seeded(2)].map(scores);
    assert_eq!(off[0], off[1]);
    assert_ne!(one[0], one[1]);
    assert_ne!(one, two);
    assert_eq!(one, scores(Noise::Seeded(1)));
}

#[test]
fn regions_come_with_their_boxes() {
    let own = itm_core::data::Regions::new(6, vec![3, 5], golden()["features"].clone()).unwrap();
    assert!(RegionBatch::of(&own, &[0]).is_err());
    let half = Bounds { x1: 0.0, y1: 0.0, x2: 0.5, y2: 0.5 };
    assert_eq!(box_numbers(&half), [0.0, 0.0, 0.5, 0.5, 0.5, 0.5, 0.25]);
}
