//! Any bytes get an answer, and the contents of valid files from other writers come back unchanged.

pub(super) mod files;

use itm_core::Result;
use proptest::collection::vec;
use proptest::prelude::*;
use safetensors::tensor::Dtype;

use super::{Array, NameFormat, PairFormat, PairList, Qrels, Run, parse_names, run_text};
use files::{le, npy, npy_f16, tensors};

const PAIR_FORMATS: [PairFormat<'_>; 4] =
    [PairFormat::Lines, PairFormat::Csv, PairFormat::Jsonl(Some("f")), PairFormat::Qrels];

/// An error is one line that begins with the place.
fn answered<T>(result: Result<T>) -> Option<T> {
    result
        .inspect_err(|error| {
            let line = error.to_string();
            assert!(line.starts_with("PLACE") && !line.contains(['\n', '\r']), "{line}");
        })
        .ok()
}

/// Gives the bytes to every reader. No reader returns more than the bytes can hold.
fn all_readers(bytes: &[u8]) {
    for part in [None, Some("x")] {
        let Some(array) = answered(Array::parse("PLACE", part, bytes.to_vec())) else { continue };
        assert!(array.rows() * array.row_bytes(0).len() <= bytes.len());
        let mut row = vec![0.0; array.dim()];
        (0..array.rows()).for_each(|at| array.row_into(at, &mut row));
    }
    if let Some(run) = answered(Run::parse("PLACE", bytes)) {
        let entries: usize = run.lists.iter().map(Vec::len).sum();
        assert!(11 * entries <= bytes.len() + 1, "a line has six fields");
        assert!(run.lists.len() == run.queries.len() && run.docs.len() <= entries);
        assert!(run.lists.iter().flatten().all(|(_, score)| score.is_finite()));
    }
    if let Some(qrels) = answered(Qrels::parse("PLACE", bytes)) {
        assert!(7 * qrels.judged.len() <= bytes.len() + 1);
    }
    for format in PAIR_FORMATS {
        match answered(PairList::parse("PLACE", format, bytes.to_vec().into())) {
            Some(PairList::Rows(rows)) => assert!(rows.len() <= bytes.len()),
            Some(PairList::Words(words)) => assert!(words.len() <= bytes.len()),
            Some(PairList::Lists(lists)) => assert!(lists.concat().len() <= bytes.len()),
            Some(PairList::Qrels(_)) | None => {}
        }
    }
    for format in [NameFormat::Lines, NameFormat::Jsonl(None), NameFormat::Jsonl(Some("f"))] {
        if let Some(names) = answered(parse_names("PLACE", format, bytes)) {
            assert!(!names.is_empty() && names.len() <= bytes.len());
        }
    }
}

fn valid(which: usize) -> Vec<u8> {
    let v = [0.5f32, -2.0, 3.0, 0.0, 1.0, -1.0];
    match which {
        0 => npy(&[2, 3], &v),
        1 => npy(&[6], &[0i64, 1, 2, 0, 1, 2]),
        2 => npy_f16([3, 2], &v),
        3 => tensors(&[("x", Dtype::F32, &[3, 2], &le(&v))]),
        4 => tensors(&[("x", Dtype::BF16, &[2, 1], &[1; 4]), ("y", Dtype::F64, &[1], &[1; 8])]),
        5 => b"q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 -1e-3 t\nq2 Q0 d1 1 7 t\n".to_vec(),
        6 => b"q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 2\n".to_vec(),
        7 => b"[0, 1, 1, 2]".to_vec(),
        10 => b"[[0, 2], [], [1]]".to_vec(),
        11 => b"{\"d1\": [\"q1\", \"q2\"]}".to_vec(),
        12 => npy(&[2, 3], &[1i8, -2, 3, 0, 127, -128]),
        8 => b"{\"f\": \"a\"}\n{\"f\": 3}\n".to_vec(),
        _ => b"0\n1\n\"2\"\n".to_vec(),
    }
}

#[test]
fn valid_files_are_valid() {
    (0..13).for_each(|which| all_readers(&valid(which)));
    let array = |which| Array::parse("PLACE", None, valid(which)).unwrap();
    assert_eq!([0, 2, 3, 4].map(|which| array(which).dim()), [3, 2, 2, 1]);
    assert!(Run::parse("PLACE", &valid(5)).is_ok() && Qrels::parse("PLACE", &valid(6)).is_ok());
}

#[test]
fn a_json_list_is_of_one_kind() {
    let line = |text: &str| {
        let bytes = text.as_bytes().to_vec();
        PairList::parse("p.json", PairFormat::Lines, bytes.into()).unwrap_err().to_string()
    };
    for (text, want) in [
        ("[0, -1]", "p.json entry 1: expected an image row, got \"-1\""),
        ("[\"a\", 1]", "p.json entry 1: expected an image name, got \"1\""),
        ("[[0], 1]", "p.json entry 1: expected a list of text rows, got \"1\""),
        ("[[0], [1, -7]]", "p.json entry 1: expected a list of text rows, got \"-7\""),
        ("[[0, 187.0], [1]]", "p.json entry 0: expected a list of text rows, got \"187.0\""),
        ("[0, 1", "p.json: expected a JSON list, got EOF while parsing a list at line 1 column 5"),
    ] {
        assert_eq!(line(text), want);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_bytes_get_an_answer(bytes in vec(any::<u8>(), 0..200)) {
        all_readers(&bytes);
    }

    #[test]
    fn any_text_gets_an_answer(text in "[qQ0d19 .\t\r\n\"\\[\\],{}:efna-]{0,120}") {
        all_readers(text.as_bytes());
    }

    #[test]
    fn a_changed_file_gets_an_answer(
        which in 0..13usize, changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(), whole: bool,
    ) {
        let mut bytes = valid(which);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if !whole {
            bytes.truncate(cut.index(bytes.len()));
        }
        all_readers(&bytes);
    }

    #[test]
    fn a_cut_array_is_refused(which in prop::sample::select(vec![0usize, 2, 3, 4, 12]), at in any::<prop::sample::Index>()) {
        let bytes = valid(which);
        prop_assert!(Array::parse("PLACE", None, bytes[..at.index(bytes.len())].to_vec()).is_err());
    }

    #[test]
    fn any_safetensors_header_gets_an_answer(
        shape in vec(any::<u64>(), 0..4), from: u64, to: u64, small: bool,
        dtype in prop::sample::select(vec!["F16", "BF16", "F32", "F64", "I64", "F4", "?"]),
    ) {
        let shape: Vec<_> = shape.into_iter().map(|n| if small { n % 5 } else { n }).collect();
        let (from, to) = if small { (0, to % 129) } else { (from, to) };
        let header = format!(r#"{{"x":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[{from},{to}]}}}}"#);
        let data = vec![1; if small { to as usize } else { 16 }];
        all_readers(&[&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat());
    }

    /// The files are written by `npyz` and by `safetensors`.
    #[test]
    fn arrays_come_back(dim in 1..5usize, values in vec(any::<f32>(), 5..40)) {
        let rows = values.len() / dim;
        let values = &values[..rows * dim];
        let double: Vec<_> = values.iter().map(|&v| f64::from(v)).collect();
        for bytes in [
            npy(&[rows, dim], values),
            npy(&[rows, dim], &double),
            tensors(&[("x", Dtype::F32, &[rows, dim], &le(values)), ("y", Dtype::I8, &[1], &[7])]),
        ] {
            let array = Array::parse("PLACE", None, bytes).unwrap();
            prop_assert_eq!((array.rows(), array.dim()), (rows, dim));
            let mut row = vec![0.0; dim];
            for (at, want) in double.chunks_exact(dim).enumerate() {
                array.row_into(at, &mut row);
                let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
                prop_assert!(row.iter().zip(want).all(same));
            }
        }
    }

    #[test]
    fn pairs_come_back(rows in vec(0..50usize, 1..30)) {
        let long: Vec<_> = rows.iter().map(|&row| row as i64).collect();
        let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
        let parse = |bytes: Vec<u8>| PairList::parse("PLACE", PairFormat::Lines, bytes.into()).unwrap();
        prop_assert_eq!(parse(npy(&[rows.len()], &long)), PairList::Rows(rows.clone()));
        prop_assert_eq!(parse(format!("{rows:?}").into()), PairList::Rows(rows.clone()));
        let words = rows.iter().map(usize::to_string).collect();
        prop_assert_eq!(parse(lines.into()), PairList::Words(words));
    }

    #[test]
    fn runs_come_back(queries in 1..5usize, k in 1..4usize, scores in vec(-1e9..1e9f64, 12)) {
        let names = |prefix: &str, n| (0..n).map(|at| format!("{prefix}{at}")).collect::<Vec<_>>();
        let (asked, docs) = (names("q", queries), names("d", k));
        let items = (0..queries).flat_map(|_| 0..k as u32);
        let scores: Vec<_> = scores.iter().cycle().take(queries * k).copied().collect();
        let entries: Vec<_> = items.zip(scores).collect();
        let lists: Vec<_> = entries.chunks(k).map(<[_]>::to_vec).collect();
        let text = run_text(&asked, &docs, &lists, "tag").unwrap();
        let run = Run::parse("PLACE", text.as_bytes()).unwrap();
        prop_assert_eq!((&run.queries, &run.docs), (&asked, &docs));
        prop_assert_eq!(run.lists, lists);
    }
}
