use super::super::tests::files::Folder;
use super::super::{InputArgs, InputData, InputScores};
use super::*;

const NONE: f32 = f32::NEG_INFINITY;

fn request(
    folder: &Folder,
    i2t: Option<&str>,
    t2i: Option<&str>,
    pairs: Option<&str>,
) -> InputArgs {
    let at = |name: Option<&str>| name.map(|name| folder.at(name));
    let mut request = InputArgs { run_i2t: at(i2t), run_t2i: at(t2i), ..InputArgs::default() };
    request.pairs = at(pairs);
    request
}

fn scores(loaded: &InputData) -> [Option<&ScoreMatrix>; 2] {
    match &loaded.scores {
        InputScores::Runs(runs) => Direction::BOTH.map(|direction| runs.get(direction)),
        other => panic!("runs, not {other:?}"),
    }
}

#[test]
fn a_run_of_texts_has_images_as_rows() {
    let folder = Folder::with(&[
        ("r", b"t1 Q0 z 1 0.9 x\nt1 Q0 b 2 0.4 x\nt0 Q0 z 1 0.5 x\nt0 Q0 far 2 0.1 x\nt0 Q0 away 3 0 x\n"),
        ("qrels", b"t0 0 b 1\nt1 0 z 1\n"),
    ]);
    let loaded = folder.loaded(&request(&folder, None, Some("r"), Some("qrels")));
    assert_eq!(loaded.names.images.as_ref().unwrap()[..], ["b", "z", "away", "far"]);
    assert_eq!(loaded.names.texts.as_ref().unwrap()[..], ["t0", "t1"]);
    let pairs = loaded.pairs.as_ref().unwrap();
    assert_eq!([0, 1].map(|text| pairs.image_of(text)), [0, 1]);
    let [None, Some(run)] = scores(&loaded) else { panic!("one run, of texts") };
    assert_eq!(run.values(), [NONE, 0.4, 0.5, 0.9, 0.0, NONE, 0.1, NONE]);
    assert_eq!(
        folder.notes(&loaded),
        [
            "order of images, for ties and in matrices: as in the judgements, then 2 others sorted",
            "order of texts, for ties and in matrices: as in the judgements",
        ]
    );
    assert_eq!(
        folder.warnings(&loaded),
        [
            "2 images without a text, kept as items: away, far",
            "r: 1 true pair not in the run: misses at every K"
        ]
    );
}

#[test]
fn two_runs_share_rows_and_judgements() {
    let folder = Folder::with(&[
        ("a", b"i0 Q0 t1 1 3 x\ni1 Q0 t0 1 2 x\n"),
        ("b", b"t0 Q0 i1 1 5 x\nt1 Q0 i0 1 4 x\nother Q0 i0 1 4 x\n"),
        ("i2t.qrels", b"i1 0 t0 1\ni0 0 t1 1\n"),
        ("t2i.qrels", b"t0 0 i1 1\nt1 0 i0 1\n"),
    ]);
    for qrels in ["i2t.qrels", "t2i.qrels"] {
        let loaded = folder.loaded(&request(&folder, Some("a"), Some("b"), Some(qrels)));
        let want = "1 text without an image, left out of recalls but not of hubs and corrections, kept as items: other";
        assert_eq!(folder.warnings(&loaded)[0], want);
    }
    std::fs::write(folder.path("b"), "t0 Q0 i1 1 5 x\nt1 Q0 i0 1 4 x\n").unwrap();
    for qrels in ["i2t.qrels", "t2i.qrels"] {
        let loaded = folder.loaded(&request(&folder, Some("a"), Some("b"), Some(qrels)));
        let [Some(a), Some(b)] = scores(&loaded) else { panic!("two runs") };
        let order = loaded.names.images.as_ref().unwrap();
        let turned = order[..] == ["i1", "i0"];
        assert_eq!(turned, loaded.names.texts.as_ref().unwrap()[..] == ["t0", "t1"]);
        assert!(turned, "{qrels}: {order:?}");
        assert_eq!(a.values(), [2.0, NONE, NONE, 3.0]);
        assert_eq!(b.values(), [5.0, NONE, NONE, 4.0]);
        assert_eq!(loaded.pairs.as_ref().unwrap().image_of_text(), [0, 1]);
        assert!(folder.warnings(&loaded).is_empty());
    }
    // Judgements of both directions in one file, where the lines of one were taken for other images and texts.
    let of_both = "i1 0 t0 1\ni0 0 t1 1\nt0 0 i1 1\n";
    std::fs::write(folder.path("i2t.qrels"), of_both).unwrap();
    let want = "i2t.qrels: expected queries of one side, images or texts, got queries of both";
    for runs in [[Some("a"), Some("b")], [Some("a"), None], [None, Some("b")]] {
        let request = request(&folder, runs[0], runs[1], Some("i2t.qrels"));
        assert_eq!(folder.refused(&request), want);
    }
}

#[test]
fn without_judgements_names_are_sorted() {
    let folder = Folder::with(&[
        ("r", b"q2 Q0 d 1 1 x\nq1 Q0 c 1 2 x\n"),
        ("names", b"c\nd\ne\n"),
        ("other", b"c\ne\n"),
        ("twice", b"c\nc\n"),
    ]);
    let mut request = request(&folder, Some("r"), None, None);
    let loaded = folder.loaded(&request);
    assert_eq!(loaded.names.images.as_ref().unwrap()[..], ["q1", "q2"]);
    assert_eq!(loaded.names.texts.as_ref().unwrap()[..], ["c", "d"]);
    assert_eq!(loaded.pairs, None);
    assert_eq!(folder.notes(&loaded)[1], "order of texts, for ties and in matrices: sorted names");
    request.text_names = Some(folder.at("names"));
    let loaded = folder.loaded(&request);
    assert_eq!(loaded.test_scores().shape().1, 3);
    assert_eq!(
        folder.notes(&loaded)[1],
        "order of texts, for ties and in matrices: as the names are given"
    );
    request.text_names = Some(folder.at("other"));
    let want = "r: expected only the given names, got 1 other: d";
    assert_eq!(folder.refused(&request), want);
    request.text_names = Some(folder.at("twice"));
    let want = "twice line 2: expected each name once, got \"c\" again (first in line 1)";
    assert_eq!(folder.refused(&request), want);
}

#[test]
fn what_a_run_lacks_is_warned_of() {
    let folder = Folder::with(&[
        ("r", b"i0 Q0 t0 1 1.00000000001 x\ni0 Q0 t1 2 1 x\ni9 Q0 t1 1 1 x\n"),
        ("qrels", b"i0 0 t0 1\ni1 0 t1 1\n"),
        ("big", b"i0 Q0 t0 1 1e300 x\n"),
        ("names", b"i0\ni1\n"),
    ]);
    let loaded = folder.loaded(&request(&folder, Some("r"), None, Some("qrels")));
    assert_eq!(
        folder.warnings(&loaded),
        [
            "1 image without a text, left out of recalls but not of hubs and corrections, kept as items: i9",
            "r: 1 pair of neighbouring scores differ in f64 but not in f32: ties",
            "r: 1 query without an entry: i1",
            "r: 1 true pair not in the run: misses at every K",
        ]
    );
    assert_eq!(loaded.names.images.as_ref().unwrap()[..], ["i0", "i1", "i9"]);
    let mut request_names = request(&folder, Some("r"), None, Some("qrels"));
    request_names.image_names = Some(folder.at("names"));
    let want = "r: expected only the given names, got 1 other: i9";
    assert_eq!(folder.refused(&request_names), want);
    let line = folder.refused(&request(&folder, Some("big"), None, Some("qrels")));
    assert!(
        line.starts_with("big: expected scores that are finite in f32, got 1000000000"),
        "{line}"
    );
}

#[test]
fn a_query_without_a_true_item_is_named() {
    let folder = Folder::with(&[("r", b"i0 Q0 t0 1 1 x\n"), ("qrels", b"i0 0 t0 1\ni1 0 t0 0\n")]);
    let loaded = folder.loaded(&request(&folder, Some("r"), None, Some("qrels")));
    let want = "1 image without a text, left out of recalls but not of hubs and corrections, kept as items: i1";
    assert_eq!(folder.warnings(&loaded)[0], want);
}
