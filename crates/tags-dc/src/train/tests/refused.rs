//! What a model and a step refuse.

use super::*;

#[test]
fn what_cannot_be_trained_on_is_refused_in_one_line() {
    let (split, mut model) = (Split::new(), model(&config()));
    let rows = Rows::of(&split.items(), &[0]);
    let regions = split.regions.rows(&[0]).unwrap();
    let batch = rows.with_images((&regions).into());
    let line = |model: &mut TagsDc, batch: &Batch| {
        model.step(batch, 1, Observe::Off).unwrap_err().to_string()
    };
    let alone = Batch { train: None, ..batch };
    assert!(line(&mut model, &alone).contains("the training split behind it"));
    let other: &[u32] = &[2; 5];
    let line_of_other = line(&mut model, &Batch { texts: &[other], ..batch });
    let want = "texts of the batch: expected the words of caption 0 of the split, got others";
    assert_eq!(line_of_other, want);
    let features = Batch { images: Images::Features(&[0.5; 9]), ..batch };
    let want = "images of the batch: expected regions, as in the split, got others";
    assert_eq!(line(&mut model, &features), want);
    let long: &[u32] = &[2; 9];
    let texts = [long];
    let line = line(&mut model, &Batch { texts: &texts, ..batch });
    assert_eq!(line, "caption 0 of the batch: expected at most 8 word pieces, got 9");
    let none: itm_core::Result<_> =
        { TagsDc::new(&config(), WIDTH, Marks::of_words(2).unwrap(), 1, &Device::flex()) };
    assert!(none.unwrap_err().to_string().contains("at least one token"), "no word");
    assert_eq!(
        Marks::of_words(u32::MAX as usize).unwrap_err().to_string(),
        "vocabulary: expected at most 4294967292 words, got 4294967295"
    );
    let mut bad = config();
    bad.model.heads = 3;
    assert_eq!(bad.check().unwrap_err().to_string(), "model.heads: expected a divisor of 8, got 3");
}

/// Negatives come from the whole split, so an error can name a caption that is not in the batch.
#[test]
fn a_caption_that_does_not_fit_is_named_where_it_is_drawn() {
    let mut whole = config();
    whole.retrieval = RetrievalConfig { sampled: 100, kept: 100, ..whole.retrieval };
    let line = |split: &Split, caption: usize| {
        step(&mut model(&whole), split, &[caption], 1).unwrap_err().to_string()
    };
    let mut split = Split::new();
    split.texts[9] = vec![2; 9];
    let want = "caption 9: expected 1 to 10 tokens, [CLS] and [SEP] included, got 11";
    assert_eq!(line(&split, 0), want);
    split.texts[9] = vec![2, 15];
    assert_eq!(line(&split, 0), "caption 9: expected tokens below 15, got 15");
    assert_eq!(line(&split, 9), "caption 9: expected tokens below 15, got 15");
}

#[test]
fn marks_are_among_the_tokens() {
    let line = |special, words| {
        let marks = Marks::of_pieces(special, words, 20);
        TagsDc::new(&config(), WIDTH, marks, 1, &Device::flex()).unwrap_err().to_string()
    };
    let below = "expected a number below 20, the number of tokens";
    assert_eq!(line([0, 1, 2, 3, 20], 5..20), format!("[MASK]: {below}, got 20"));
    let end = format!("the end of the words: {below}, or that number, got 21");
    assert_eq!(line([0, 1, 2, 3, 4], 5..21), end);
    let most = u32::MAX as usize - 3;
    assert_eq!(Marks::of_words(most).unwrap().mask(), u32::MAX - 1);
    assert!(Marks::of_words(most + 1).is_err());
}

#[test]
fn judging_what_is_not_there_is_an_error() {
    let (split, model) = (Split::new(), model(&config()));
    let items = split.items();
    let line =
        |image, sentence: &[u32]| model.assess(&items, image, &[sentence]).unwrap_err().to_string();
    assert_eq!(line(5, &[12, 2, 13]), "image: expected a number below 5, got 5");
    assert_eq!(line(0, &[12, 15, 13]), "sentence 0: expected tokens below 15, got 15");
    let want = "sentence 0: expected 1 to 10 tokens, [CLS] and [SEP] included, got";
    assert_eq!(line(0, &[]), format!("{want} 0"));
    assert_eq!(line(0, &[2; 11]), format!("{want} 11"));
    assert_eq!(model.assess(&items, 0, &[]).unwrap(), []);
    let none = model.negatives(&items, 10, &[], 1).unwrap_err().to_string();
    assert_eq!(none, "text: expected a number below 10, got 10");
}

/// A step on a box that is not finite is refused. It changes no bit of the state that the next step depends on.
#[test]
fn a_refused_step_changes_nothing() {
    let state = |model: &TagsDc| {
        let mut files = vec![];
        let write = &mut |name: &str, contents: &[u8]| {
            files.push((name.to_owned(), contents.to_vec()));
            Ok(())
        };
        model.save(write).unwrap();
        files
    };
    let losses: [fn(&mut LossConfig); 4] = [
        |loss| loss.mlm = 0.0,
        |loss| loss.itm = 0.0,
        |loss| (loss.itm, loss.mlm, loss.istm) = (0.0, 0.0, 1.0),
        |loss| (loss.itm, loss.mlm, loss.wod, loss.woc) = (0.0, 0.0, 1.0, 1.0),
    ];
    for (number, change) in losses.into_iter().enumerate() {
        for bad in [f32::NAN, f32::INFINITY] {
            let (split, mut config) = (Split::new(), config());
            change(&mut config.loss);
            let mut model = model(&config);
            step(&mut model, &split, &[0, 4], 1).unwrap();
            let before = state(&model);
            let spoilt = Split::with_first_box(bad);
            let line = step(&mut model, &spoilt, &[0, 4], 2).unwrap_err().to_string();
            assert!(!line.contains('\n'), "{line}");
            assert!(state(&model) == before, "{number}: {line}");
            let next = step(&mut model, &split, &[0, 4], 3).unwrap();
            assert!(next.loss.is_finite());
        }
    }
}
