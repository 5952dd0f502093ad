mod malformed;
mod scaled;

use half::bf16;
use itm_core::Pairs;
use safetensors::tensor::Dtype;

use super::super::tests::files::{Folder, le, npy, npy_f16, rows, tensors};
use super::super::{InputData, InputScores, load_from};

const UNIT: [[f32; 2]; 2] = [[1.0, 0.0], [0.0, 1.0]];

/// Images and texts.
fn shape(loaded: &InputData) -> (usize, usize) {
    loaded.test_scores().shape()
}

fn values(loaded: &InputData) -> (&[f32], &[f32]) {
    match &loaded.scores {
        InputScores::Embeddings(rows) => (&rows.images, &rows.texts),
        other => panic!("embeddings, not {other:?}"),
    }
}

#[test]
fn four_dtypes_two_formats_and_standard_input_give_the_same_rows() {
    let v = [3.0f32, 4.0, 0.0, -2.0]; // exact in every dtype; unit rows (.6, .8), (0, −1)
    let half: Vec<u8> = v.iter().flat_map(|&x| bf16::from_f32(x).to_le_bytes()).collect();
    let double = v.map(f64::from);
    let bytes = le(&v);
    let one = tensors(&[("a", Dtype::BF16, &[2, 2], &half), ("b", Dtype::F32, &[4], &bytes)]);
    let two =
        tensors(&[("a", Dtype::F32, &[2, 2], &le(&[9.; 4])), ("b", Dtype::F32, &[2, 2], &bytes)]);
    let f32s = npy(&[2, 2], &v);
    let folder = Folder::with(&[
        ("f16.npy", &npy_f16([2, 2], &v)),
        ("f32.npy", &f32s),
        ("f64.npy", &npy(&[2, 2], &double)),
        ("one.safetensors", &one),
        ("two.safetensors", &two),
    ]);
    let want = [0.6, 0.8, 0.0, -1.0];
    for name in [
        "f16.npy",
        "f32.npy",
        "f64.npy",
        "one.safetensors",
        "one.safetensors:a",
        "two.safetensors:b",
    ] {
        let loaded = folder.loaded(&folder.embeddings(name, "f32.npy"));
        assert_eq!(values(&loaded), (&want[..], &want[..]), "{name}");
        assert_eq!(loaded.messages.files.len(), if name == "f32.npy" { 1 } else { 2 });
    }
    for (stdin, at) in [(&f32s, "-"), (&one, "-"), (&two, "-:b")] {
        let request = folder.embeddings("f64.npy", at);
        let loaded = load_from(&request, &mut &stdin[..]).unwrap();
        assert_eq!(values(&loaded).1, want, "{at}");
    }
    let both = folder.refused(&folder.embeddings("-", "-"));
    assert_eq!(
        both,
        "standard input: expected a .npy, .npz or .safetensors file, got an empty file"
    );
}

#[test]
fn rows_become_unit_unless_raw() {
    // f16 of (0.6, 0.8) is (0.60009765625, 0.7998046875). Its norm 1 − 10⁻⁴ is within 1e-3 of 1: no note, but still divided.
    let folder =
        Folder::with(&[("a.npy", &npy_f16([1, 2], &[0.6, 0.8])), ("b.npy", &rows([[3.0, 4.0]]))]);
    let mut request = folder.embeddings("a.npy", "b.npy");
    let loaded = folder.loaded(&request);
    let (x, y) = (0.60009765625f64, 0.7998046875f64);
    let norm = (x * x + y * y).sqrt();
    assert_eq!(values(&loaded), (&[(x / norm) as f32, (y / norm) as f32][..], &[0.6, 0.8][..]));
    let notes = folder.notes(&loaded);
    assert_eq!(notes[1], "b.npy: rows scaled to unit length, norms were 5.0000 to 5.0000");
    assert_eq!(notes.len(), 2, "scaling of unit rows gives no note");
    request.raw = true;
    assert_eq!(values(&folder.loaded(&request)), (&[x as f32, y as f32][..], &[3.0, 4.0][..]));
}

#[test]
fn different_widths_are_refused() {
    let folder = Folder::with(&[("a.npy", &rows(UNIT)), ("b.npy", &rows([[1.0; 3]; 2]))]);
    let line = folder.refused(&folder.embeddings("a.npy", "b.npy"));
    assert_eq!(line, "b.npy: expected rows of 2 numbers as in a.npy, got 3");
    let mut request = folder.embeddings("a.npy", "a.npy");
    request.bank_texts = Some(folder.at("b.npy"));
    assert_eq!(folder.refused(&request), line);
}

#[test]
fn row_counts_that_fit_no_pairs_are_refused() {
    let folder = Folder::with(&[
        ("a.npy", &rows(UNIT)),
        ("b.npy", &rows([[1.0, 2.0], [2.0, 1.0], [3.0, 1.0]])),
        ("short.npy", &npy(&[2], &[0i64, 1])),
        ("far.npy", &npy(&[3], &[1i64, 2, 1])),
        ("below.npy", &npy(&[3], &[0i64, -1, 1])),
        ("real.npy", &npy(&[3], &[0.0f32, 1.0, 1.0])),
        ("alone.npy", &npy(&[3], &[0i64, 0, 0])),
        ("good.npy", &npy(&[3], &[1i64, 0, 1])),
    ]);
    let mut request = folder.embeddings("a.npy", "b.npy");
    let line = folder.refused(&request);
    assert_eq!(line, "b.npy: expected a multiple of 2 images (or --pairs), got 3 texts");
    for (name, want) in [
        ("short.npy", "short.npy: expected an image for each of 3 texts, got 2"),
        ("far.npy", "far.npy, text 1: expected an image row below 2, got 2 (rows count from 0)"),
        ("below.npy", "below.npy row 1: expected a row number, got -1"),
        ("real.npy", "real.npy: expected integers, got f32"),
    ] {
        request.pairs = Some(folder.at(name));
        assert_eq!(folder.refused(&request), want);
    }
    request.pairs = Some(folder.at("alone.npy"));
    let loaded = folder.loaded(&request);
    assert_eq!(loaded.pairs.as_ref().unwrap().texts_of(1), [] as [usize; 0]);
    let want = "1 image without a text, left out of recalls but not of hubs and corrections, kept as items: 1";
    assert_eq!(folder.warnings(&loaded), [want]);
    request.pairs = Some(folder.at("good.npy"));
    let loaded = folder.loaded(&request);
    assert_eq!(loaded.pairs.as_ref().unwrap().image_of_text(), [1, 0, 1]);
    assert_eq!(folder.notes(&loaded)[0], "pairs from good.npy (row numbers)");
}

#[test]
fn rows_that_are_not_finite_are_listed() {
    let mut many = [[1.0f32, 0.5]; 14];
    (2..14).for_each(|row| many[row][row % 2] = [f32::NAN, f32::INFINITY, -f32::INFINITY][row % 3]);
    let folder = Folder::with(&[
        ("a.npy", &rows([[0.0, 1.0], [f32::NAN, 1.0]])),
        ("b.npy", &rows(many)),
        ("c.npy", &rows(UNIT)),
        ("d.npy", &npy(&[2, 2], &[1e300, 0.0, 0.0, 1.0])),
    ]);
    let line = folder.refused(&folder.embeddings("a.npy", "b.npy"));
    assert_eq!(line, "a.npy: expected finite numbers (in f32), got NaN or infinity in 1 row: 1");
    let line = folder.refused(&folder.embeddings("c.npy", "b.npy"));
    let want = "b.npy: expected finite numbers (in f32), got NaN or infinity in 12 rows: 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …";
    assert_eq!(line, want);
    // 10³⁰⁰ can be scaled to unit length, but does not fit into f32.
    let mut request = folder.embeddings("d.npy", "c.npy");
    assert_eq!(values(&folder.loaded(&request)).0, UNIT.concat());
    request.raw = true;
    let want = "d.npy: expected finite numbers (in f32), got NaN or infinity in 1 row: 0";
    assert_eq!(folder.refused(&request), want);
    let matrix = folder.matrix("a.npy");
    assert_eq!(folder.refused(&matrix), line_of("a.npy", 1));
}

fn line_of(name: &str, row: usize) -> String {
    format!("{name}: expected finite numbers (in f32), got NaN or infinity in 1 row: {row}")
}

#[test]
fn zero_equal_and_collapsed_rows_are_warned_of_and_counted() {
    let near = [[1.0, 0.01], [1.0, 0.02], [2.0, 0.03]];
    let folder = Folder::with(&[
        // Row 3 differs from row 0 only in length, row 4 from row 1 only in the sign of zero.
        ("a.npy", &rows([[3.0, 4.0], [0.0, 1.0], [0.0, 0.0], [6.0, 8.0], [-0.0, 1.0], [0.0, 0.0]])),
        ("near.npy", &rows(near)),
        ("b.npy", &rows([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])),
    ]);
    let loaded = folder.loaded(&folder.embeddings("b.npy", "a.npy"));
    assert_eq!(
        folder.warnings(&loaded),
        [
            "a.npy: 2 rows of zeros only, kept as they are: 2, 5",
            "a.npy: 2 rows equal an earlier one: 3 = 0, 4 = 1",
        ]
    );
    assert_eq!(values(&loaded).1[4..6], [0.0, 0.0]);
    let loaded = folder.loaded(&folder.embeddings("near.npy", "b.npy"));
    // Angles .01, .02, .015 rad; resultant 1 − (.005² + 0 + .005²)/6 = .99999.
    let want =
        "near.npy: collapsed: all rows point nearly the same way (mean resultant length 0.99999)";
    assert_eq!(folder.warnings(&loaded), [want]);
    let mut raw = folder.embeddings("near.npy", "b.npy");
    raw.raw = true;
    assert_eq!(folder.warnings(&folder.loaded(&raw)), [want]);
}

#[test]
fn a_constant_matrix_is_warned_of() {
    let folder = Folder::with(&[("s.npy", &rows([[0.5; 4]; 2]))]);
    let loaded = folder.loaded(&folder.matrix("s.npy"));
    let want = ["s.npy: 1 row equals an earlier one: 1 = 0", "s.npy: all scores are 0.5"];
    assert_eq!(folder.warnings(&loaded), want);
    assert_eq!(shape(&loaded), (2, 4));
}

#[test]
fn a_matrix_stays_as_it_is_and_takes_no_bank() {
    let folder = Folder::with(&[("s.npy", &rows([[3.0, 4.0], [-1.0, 7.0]]))]);
    let mut request = folder.matrix("s.npy");
    let InputScores::Matrix(matrix) = folder.loaded(&request).scores else { panic!("a matrix") };
    assert_eq!(matrix.values(), [3.0, 4.0, -1.0, 7.0]);
    request.bank_texts = Some(folder.at("s.npy"));
    let want = "options: expected embeddings (--images and --texts) with --bank-images or --bank-texts, got a score matrix or run";
    assert_eq!(folder.refused(&request), want);
}

#[test]
fn one_query_only_is_said() {
    let folder = Folder::with(&[("one.npy", &rows([[3.0, 4.0]])), ("two.npy", &rows(UNIT))]);
    let loaded = folder.loaded(&folder.embeddings("one.npy", "one.npy"));
    let want = "pairs guessed from the shapes: 1 image, 1 text: 1 text per image, in order";
    assert_eq!(folder.notes(&loaded)[0], want);
    let loaded = folder.loaded(&folder.embeddings("one.npy", "two.npy"));
    assert_eq!(loaded.pairs.unwrap().texts_of(0), [0, 1]);
    let line = folder.refused(&folder.embeddings("two.npy", "one.npy"));
    assert_eq!(
        line,
        "one.npy: expected a multiple of 2 images (or --pairs), got 1 text (images and texts swapped?)"
    );
}

#[test]
fn shapes_say_how_many_texts_an_image_has() {
    let texts = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0], [2.0, 1.0], [1.0, 2.0]];
    let repeated = [[1.0, 0.0]; 3].into_iter().chain([[0.0, 1.0]; 3]).collect::<Vec<_>>();
    let folder = Folder::with(&[
        ("v.npy", &rows(UNIT)),
        ("w.npy", &rows(texts)),
        ("v3.npy", &npy(&[6, 2], &repeated.concat())),
        ("same.npy", &rows([[1.0, 0.0]; 6])),
        ("uneven.npy", &rows([texts[0], texts[0], texts[1], texts[2], texts[3], texts[4]])),
    ]);
    let load = |images| folder.loaded(&folder.embeddings(images, "w.npy"));
    let loaded = load("v.npy");
    let guessed = "pairs guessed from the shapes: 2 images, 6 texts: 3 texts per image, in order";
    assert_eq!(folder.notes(&loaded)[0], guessed);
    assert_eq!(loaded.pairs.unwrap().image_of_text(), [0, 0, 0, 1, 1, 1]);
    let loaded = load("v3.npy");
    let stored = "v3.npy: each image stored 3 times in a row (rows equal in every bit): 2 images kept of 6 rows";
    assert_eq!(folder.notes(&loaded)[..2], [stored, guessed]);
    assert_eq!(values(&loaded).0, UNIT.concat());
    assert!(folder.warnings(&loaded).is_empty());
    // All rows equal: collapsed, not one image with six texts. Two equal rows of six: one text per image.
    for name in ["same.npy", "uneven.npy"] {
        let loaded = load(name);
        assert_eq!(shape(&loaded).0, 6);
        assert!(folder.warnings(&loaded)[0].contains("an earlier one"), "{name}");
    }
}

#[test]
fn names_and_pairs_by_name() {
    let folder = Folder::with(&[
        ("v.npy", &rows(UNIT)),
        ("w.npy", &rows([[1.0, 2.0], [2.0, 1.0], [3.0, 1.0]])),
        ("v.txt", b"dog.jpg\ncat.jpg\n"),
        ("w.txt", b"a cat\na dog\nwoof\n"),
        ("short.txt", b"a cat\n"),
        ("p.txt", b"cat.jpg\ndog.jpg\ndog.jpg\n"),
        ("p.json", b"[\"cat.jpg\", \"dog.jpg\", \"dog.jpg\"]"),
        ("p.csv", b"\"cat.jpg\"\n\"dog.jpg\"\ndog.jpg\n"),
        ("rows.jsonl", b"{\"f\": \"cat.jpg\"}\n{\"f\": \"dog.jpg\"}\n{\"f\": \"dog.jpg\"}\n"),
        ("bad.txt", b"cat.jpg\nhen.jpg\ndog.jpg\n"),
        ("two.tsv", b"0\t1\n1\t1\n0\t0\n"),
        ("numbers.txt", b"1\n0\n"),
        ("n.json", b"[1, 0, 0]"),
    ]);
    let mut request = folder.embeddings("v.npy", "w.npy");
    request.image_names = Some(folder.at("v.txt"));
    request.text_names = Some(folder.at("w.txt"));
    for name in ["p.txt", "p.json", "p.csv", "rows.jsonl:f", "n.json"] {
        request.pairs = Some(folder.at(name));
        let loaded = folder.loaded(&request);
        assert_eq!(loaded.pairs.as_ref().unwrap().image_of_text(), [1, 0, 0], "{name}");
        assert_eq!(
            (loaded.names.image(1), loaded.names.text(2)),
            ("cat.jpg".into(), "woof".into())
        );
    }
    request.pairs = Some(folder.at("bad.txt"));
    let want = "bad.txt line 2: expected a name of --image-names, got \"hen.jpg\"";
    assert_eq!(folder.refused(&request), want);
    request.pairs = Some(folder.at("two.tsv"));
    let want = "two.tsv line 1: expected one image (row or name), got 2 fields";
    assert_eq!(folder.refused(&request), want);
    // One name per text also names the images, once the pairs are known.
    request.pairs = Some(folder.at("n.json"));
    request.image_names = Some(folder.at("rows.jsonl:f"));
    let names = folder.loaded(&request).names;
    assert_eq!(names.images.unwrap(), ["dog.jpg", "cat.jpg"]);
    request.text_names = Some(folder.at("short.txt"));
    let want = "short.txt: expected a name for each of 3 texts, got 1 name";
    assert_eq!(folder.refused(&request), want);
    // Images are named 1 and 0: line `1` may be a name or a row number.
    request.text_names = None;
    request.image_names = Some(folder.at("numbers.txt"));
    request.pairs = Some(folder.at("p.txt"));
    let want = "p.txt line 1: expected a name of --image-names, got \"cat.jpg\"";
    assert_eq!(folder.refused(&request), want);
    std::fs::write(folder.path("p.txt"), "1\n0\n0\n").unwrap();
    let want = "p.txt line 1: expected image names or row numbers, got \"1\", which may be either";
    assert_eq!(folder.refused(&request), want);
    request.image_names = None;
    std::fs::write(folder.path("p.txt"), "1\nx\n0\n").unwrap();
    let want = "p.txt line 2: expected a row number (names need --image-names with a name for each of 2 images), got \"x\"";
    assert_eq!(folder.refused(&request), want);
    request.image_names = Some(folder.at("bad.txt")); // three names
    assert_eq!(folder.refused(&request), want);
}

#[test]
fn judged_pairs_need_names_of_both_sides() {
    let folder = Folder::with(&[
        ("v.npy", &rows(UNIT)),
        ("w.npy", &rows([[1.0, 2.0], [2.0, 1.0]])),
        ("v.txt", b"i0\ni1\n"),
        ("w.txt", b"t0\nt1\n"),
        ("t2i.qrels", b"t0 0 i1 1\nt1 0 i0 1\nt1 0 i1 0\n"),
        ("i2t.qrels", b"i1 0 t0 1\ni0 0 t1 1\n"),
        ("half.qrels", b"i1 0 t0 1\n"),
        ("odd.json", br#"{"i1": ["t0"], "typo.jpg": ["t1"]}"#),
    ]);
    let mut request = folder.embeddings("v.npy", "w.npy");
    request.pairs = Some(folder.at("t2i.qrels"));
    let want = "t2i.qrels: expected --image-names with a name for each of 2 images, and --text-names, for judged pairs of names, got at most one of them";
    assert_eq!(folder.refused(&request), want);
    request.image_names = Some(folder.at("v.txt"));
    request.text_names = Some(folder.at("w.txt"));
    for name in ["t2i.qrels", "i2t.qrels"] {
        request.pairs = Some(folder.at(name));
        assert_eq!(folder.loaded(&request).pairs.unwrap().image_of_text(), [1, 0], "{name}");
    }
    // One unknown image made the texts "images", and the error named t0.
    request.pairs = Some(folder.at("odd.json"));
    let want = "odd.json: expected an image among the given names, got \"typo.jpg\"";
    assert_eq!(folder.refused(&request), want);
    request.pairs = Some(folder.at("half.qrels"));
    let loaded = folder.loaded(&request);
    let want = [
        "1 image without a text, left out of recalls but not of hubs and corrections, kept as items: i0",
        "1 text without an image, left out of recalls but not of hubs and corrections, kept as items: t1",
    ];
    assert_eq!(folder.warnings(&loaded), want);
    let judged = Pairs::judged(2, vec![vec![1], vec![]]).unwrap();
    assert_eq!(loaded.pairs.unwrap(), judged);
}

#[test]
fn texts_may_be_true_of_several_images() {
    let folder = Folder::with(&[
        ("v.npy", &rows(UNIT)),
        ("w.npy", &rows([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0]])),
        ("v.txt", b"i0\ni1\n"),
        ("w.txt", b"t0\nt1\nt2\n"),
        ("many.qrels", b"t0 0 i1 1\nt0 0 i0 2\nt1 0 i0 1\nt2 0 i1 1\n"),
        ("lists.json", b" [[0, 1], [2, 0]]"),
        ("names.json", b"{\"i0\": [\"t1\", \"t0\"], \"i1\": [\"t0\", \"t2\"]}"),
        ("texts.json", b"{\"t0\": [\"i0\", \"i1\"], \"t1\": [\"i0\"], \"t2\": [\"i1\"]}"),
        ("short.json", b"[[0]]"),
        ("far.json", b"[[0], [3]]"),
        ("odd.json", b"{\"i0\": \"t0\"}"),
    ]);
    let mut request = folder.embeddings("v.npy", "w.npy");
    let judged = Pairs::judged(2, vec![vec![0, 1], vec![0], vec![1]]).unwrap();
    request.pairs = Some(folder.at("lists.json"));
    assert_eq!(folder.loaded(&request).pairs.unwrap(), judged);
    request.image_names = Some(folder.at("v.txt"));
    request.text_names = Some(folder.at("w.txt"));
    for name in ["many.qrels", "lists.json", "names.json", "texts.json"] {
        request.pairs = Some(folder.at(name));
        let loaded = folder.loaded(&request);
        assert!(folder.warnings(&loaded).is_empty(), "{name}");
        assert_eq!(loaded.pairs.unwrap(), judged, "{name}");
    }
    for (name, want) in [
        ("short.json", "short.json: expected a list of text rows for each of 2 images, got 1"),
        ("far.json", "far.json, image 1: expected a text row below 3, got 3"),
        ("odd.json", "odd.json: expected an object of lists of names, got invalid type"),
    ] {
        request.pairs = Some(folder.at(name));
        let line = folder.refused(&request);
        assert!(line.starts_with(want), "{line}");
    }
}

#[test]
fn a_folder_of_numbered_files_is_one_array() {
    let folder = Folder::with(&[("w.npy", &rows([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0]]))]);
    let shards = folder.path("img_emb");
    std::fs::create_dir(&shards).unwrap();
    let write = |name: &str, bytes: Vec<u8>| std::fs::write(shards.join(name), bytes).unwrap();
    write("img_emb_10.npy", rows([[0.0, 1.0]]));
    write("img_emb_9.npy", rows([[1.0, 0.0], [0.6, 0.8]]));
    // As `itm embed --shard` writes it where no picture of the shard has a caption.
    write("img_emb_8.npy", npy::<f32>(&[0, 2], &[]));
    let request = folder.embeddings("img_emb", "w.npy");
    let InputScores::Embeddings(found) = folder.loaded(&request).scores else { panic!("rows") };
    assert_eq!(found.images, [1.0, 0.0, 0.6, 0.8, 0.0, 1.0], "9 stands before 10");
    write("img_emb_12.npy", rows([[1.0, 1.0]]));
    let line = folder.refused(&request);
    assert!(line.ends_with("img_emb: expected a file with the number 11, got none"), "{line}");
    write("img_emb_11.npy", rows([[1.0, 1.0, 1.0]]));
    let line = folder.refused(&request);
    assert!(line.contains("img_emb_11.npy: expected 2 columns of F32 as in "), "{line}");
    write("other.npy", rows([[1.0, 1.0]]));
    assert!(
        folder.refused(&request).contains("other.npy: expected a name that ends in its number")
    );
}

#[test]
fn bytes_are_taken_as_they_are() {
    let folder = Folder::with(&[
        ("v.npy", &npy(&[2, 2], &[3i8, 4, -4, 3])),
        ("w.npy", &rows([[1.0, 2.0], [2.0, 1.0]])),
        ("i32.npy", &npy(&[2, 2], &[3i32, 4, -4, 3])),
    ]);
    let loaded = folder.loaded(&folder.embeddings("v.npy", "w.npy"));
    let want = "v.npy: bytes are taken as they are, so one scale must serve all columns";
    assert_eq!(folder.notes(&loaded)[0], want);
    let InputScores::Embeddings(found) = loaded.scores else { panic!("rows") };
    assert_eq!(found.images, [0.6, 0.8, -0.8, 0.6]);
    let line = folder.refused(&folder.embeddings("i32.npy", "w.npy"));
    assert!(
        line.starts_with("i32.npy: expected real numbers of f16, f32 or f64, or bytes, got "),
        "{line}"
    );
}

#[test]
fn a_bank_is_read_like_the_test() {
    let folder = Folder::with(&[("v.npy", &rows(UNIT)), ("b.npy", &rows([[3.0, 4.0]]))]);
    let mut request = folder.embeddings("v.npy", "v.npy");
    request.bank_images = Some(folder.at("b.npy"));
    let bank = folder.loaded(&request).bank;
    assert_eq!((bank.i2t.unwrap().values, bank.t2i), (vec![0.6, 0.8], None));
    request.bank_texts = Some(folder.at("v.npy"));
    let loaded = folder.loaded(&request);
    assert_eq!(folder.warnings(&loaded), ["v.npy: the bank is the test set itself"]);
}
