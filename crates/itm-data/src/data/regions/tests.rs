use super::*;
use crate::Pairs;
use crate::data::tests::{npy, npy_of};
use crate::data::{Dataset, Features, RegionTransform, SplitData as SplitPart};

fn bounds(x2: f32) -> Bounds {
    Bounds { x1: 0.0, y1: 0.0, x2, y2: 1.0 }
}

fn error<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn held_regions_are_refused_where_they_do_not_fit() {
    let new = |counts: &[usize], values: &[f32]| Regions::new(2, counts.to_vec(), values.to_vec());
    assert_eq!(error(new(&[1, 0], &[0.0; 2])), "image 1: expected at least 1 region, got 0");
    assert!(error(new(&[1, 2], &[0.0; 5])).starts_with("regions: expected 3 × 2 values"));
    assert!(error(Regions::new(0, vec![], vec![])).contains("at least 1 wide"));
    let nan = [0.0, 0.0, 1.0, 1.0, f32::NAN, 1.0];
    assert_eq!(error(new(&[1, 2], &nan)), "image 1, region 1: expected finite values, got NaN");
}

/// Two images of two regions of width 3, by hand: bytes × (0.5, 1, 2).
#[test]
fn a_mapped_file_gives_the_rows_that_are_asked_for() {
    let bytes = [2i8, 1, -1, 0, 0, 0, 4, 5, 6, -2, 3, 1].map(|x| x as u8);
    let file = Npy::from_bytes("grid.npy", npy_of("|i1", &[2, 2, 3], bytes)).unwrap();
    let regions = Regions::mapped(file.with_scale(vec![0.5, 1.0, 2.0]).unwrap(), 1);
    assert_eq!((regions.len(), regions.dim(), regions.counts()), (2, 3, &[2, 2][..]));
    let rows = regions.rows(&[1, 0, 1]).unwrap();
    let (first, second) = ([1.0, 1.0, -2.0, 0.0, 0.0, 0.0], [2.0, 5.0, 12.0, -1.0, 3.0, 2.0]);
    assert_eq!(rows.values, [second, first, second].concat());
    assert_eq!(rows.counts, [2, 2, 2]);
    assert!(regions.mapped_bytes() > 12);

    let half = |x: f32| half::f16::from_f32(x).to_le_bytes();
    let file = npy_of("<f2", &[1, 2, 1], [0.1, -3.0].map(half).concat());
    let regions = Regions::mapped(Npy::from_bytes("x", file).unwrap(), 1);
    assert_eq!(regions.rows(&[0]).unwrap().values, [0.099975586, -3.0]);
}

#[test]
fn a_value_that_is_not_finite_is_found_by_image_and_region() {
    let mut values = vec![0.5; 12];
    values[7] = f32::INFINITY;
    let file = Npy::from_bytes("x_grid.npy", npy(&[2, 3, 2], values)).unwrap();
    let regions = Regions::mapped(file, 1);
    regions.rows(&[0]).unwrap();
    let line = "x_grid.npy row 1, region 0: expected finite values, got inf";
    assert_eq!(error(regions.rows(&[0, 1])), line);
    assert_eq!(error(regions.check()), line);
}

/// Regions in memory, with varying counts, joined with regions of a file; then without the last image.
#[test]
fn joined_regions_keep_their_rows_and_boxes() {
    let held = Regions::new(1, vec![2, 1], vec![1.0, 2.0, 3.0]).unwrap();
    let held = held.with_boxes([0.1, 0.2, 0.3].map(bounds).to_vec()).unwrap();
    let file = Npy::from_bytes("x", npy(&[2, 2, 1], [4.0, 5.0, 6.0, 7.0])).unwrap();
    let mapped = Regions::mapped(file, 1);
    let shared = mapped.clone().with_boxes(vec![bounds(0.8), bounds(0.9)]).unwrap();
    let all = held.clone().joined(shared).unwrap();
    assert_eq!(all.counts(), [2, 1, 2, 2]);
    assert_eq!(all.rows(&[3, 1, 0, 2]).unwrap().values, [6.0, 7.0, 3.0, 1.0, 2.0, 4.0, 5.0]);
    assert_eq!(all.boxes(1).unwrap(), [bounds(0.3)]);
    assert_eq!(all.boxes(3).unwrap(), [bounds(0.8), bounds(0.9)]);
    assert_eq!(all.describe(), "1 to 2 regions per image, 1 wide, with boxes");
    let each = (0..7).map(|k| bounds(k as f32 / 10.0)).collect();
    let again = all.clone().with_boxes(each).unwrap();
    assert_eq!(again.boxes(1).unwrap(), [bounds(0.2)]);
    assert_eq!(again.boxes(3).unwrap(), [bounds(0.5), bounds(0.6)]);
    let some = held.clone().joined(mapped).unwrap().first(3);
    assert_eq!((some.len(), some.rows(&[2]).unwrap().values), (3, vec![4.0, 5.0]));
    assert_eq!((some.boxes(0).unwrap().len(), some.boxes(2)), (2, None));
    let wide = Regions::new(2, vec![1], vec![0.0; 2]).unwrap();
    assert_eq!(error(held.clone().joined(wide)), "regions: expected the width 1, got 2");
    let line = error(held.with_boxes(vec![bounds(0.5); 2]));
    assert_eq!(line, "boxes of regions: expected 3, one per region, got 2");
}

#[test]
#[should_panic(expected = "image 3 of 3")]
fn an_image_that_is_cut_off_is_not_there() {
    let file = Npy::from_bytes("x", npy(&[4, 1, 1], [0.0; 4])).unwrap();
    Regions::mapped(file, 1).first(3).boxes(3);
}

fn dataset(train: &[f32], test: &[f32]) -> Dataset {
    let part = |values: &[f32]| SplitPart {
        features: Features { dim: 0, values: vec![] },
        embeddings: Default::default(),
        regions: Some(Regions::new(2, vec![values.len() / 2], values.to_vec()).unwrap()),
        images: vec!["0.jpg".into()],
        captions: vec!["a".into()],
        pairs: Pairs::uniform(1, 1),
    };
    let (train, val, test) = (part(train), part(test), part(test));
    Dataset { name: "x".into(), train, val, test, sha256: String::new() }
}

fn transformed(transform: RegionTransform, train: &[f32], test: &[f32]) -> [Vec<f32>; 2] {
    let mut data = dataset(train, test);
    data.transform_regions(transform).unwrap();
    [data.train, data.test].map(|part| part.regions.unwrap().rows(&[0]).unwrap().values)
}

fn near(got: &[f32], want: &[f32]) {
    assert_eq!(got.len(), want.len());
    assert!(got.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-6), "{got:?}, want {want:?}");
}

/// By hand: (.6, .8) and (0, 1), mean (.3, .9); a test region (−1, 0) and one of zeros.
#[test]
fn golden_unit_centred() {
    let train = [3.0, 4.0, 0.0, 5.0];
    let [train, test] = transformed(RegionTransform::UnitCentred, &train, &[-7.0, 0.0, 0.0, 0.0]);
    near(&train, &[0.3, -0.1, -0.3, 0.1]);
    near(&test, &[-1.3, -0.9, -0.3, -0.9]);
}

/// By hand: roots (4, 3) and (0, 2), so (.8, .6) and (0, 1), mean (.4, .8).
#[test]
fn golden_centred_roots() {
    let train = [16.0, 9.0, -5.0, 4.0];
    let [train, test] = transformed(RegionTransform::CentredRoots, &train, &[9.0, -1.0]);
    near(&train, &[0.4, -0.2, -0.4, 0.2]);
    near(&test, &[0.6, -0.8]);
}

#[test]
fn given_regions_stay_and_missing_ones_are_named() {
    let values = [3.0, 4.0, 0.0, 5.0];
    assert_eq!(transformed(RegionTransform::Given, &values, &values)[0], values);
    let mut data = dataset(&values, &values);
    data.train.regions = None;
    data.transform_regions(RegionTransform::Given).unwrap();
    let line = error(data.transform_regions(RegionTransform::UnitCentred));
    assert_eq!(line, "x: expected regions for UnitCentred, got none");
}
