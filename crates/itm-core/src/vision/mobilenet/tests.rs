use serde::Deserialize;

use super::*;
use crate::vision::{GridPca, grid_boxes, quantise};

const GRAPH_JSON: &[u8] = include_bytes!("../../../tests/golden/mobilenet/graph.json");
const TENSORS: &[u8] = include_bytes!("../../../tests/golden/mobilenet/weights.safetensors");
const PCA: &[u8] = include_bytes!("../../../tests/golden/mobilenet/pca.safetensors");

/// A case from `tests/reference/mobilenet.py`, in double precision.
#[derive(Deserialize)]
struct Case {
    height: u32,
    width: u32,
    pixels: String,
    map: [usize; 2],
    values: Vec<f32>,
    pooled: Vec<f32>,
    logits: Vec<f32>,
    grid: Vec<f32>,
}

impl Case {
    fn all() -> Vec<Self> {
        serde_json::from_str(include_str!("../../../tests/golden/mobilenet/cases.json")).unwrap()
    }

    fn image(&self) -> RgbImage {
        let pairs = self.pixels.as_bytes().as_chunks::<2>().0.iter();
        let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        RgbImage::from_raw(self.width, self.height, pairs.map(byte).collect()).unwrap()
    }
}

fn tiny() -> MobileNet {
    MobileNet::new("graph.json", GRAPH_JSON, "weights", TENSORS).unwrap()
}

#[track_caller]
fn near(got: &[f32], want: &[f32]) {
    assert_eq!(got.len(), want.len());
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert!((got - want).abs() < 2e-5 * want.abs().max(1.0), "{i}: got {got}, want {want}");
    }
}

#[test]
fn golden_tiny_graph() {
    let (net, mut scratch) = (tiny(), Scratch::default());
    let pca = GridPca::new("pca", PCA, 11).unwrap();
    assert_eq!((net.channels(), pca.width()), (11, 4));
    for case in Case::all() {
        let image = case.image();
        let got = net.activations(&image, &mut scratch);
        assert_eq!(
            [got.map.height, got.map.width, got.map.channels],
            [case.map[0], case.map[1], 11]
        );
        let every_fifth: Vec<_> = got.map.values.iter().copied().step_by(5).collect();
        near(&every_fifth, &case.values);
        near(&got.pooled, &case.pooled);
        near(&net.logits(&image, &mut scratch), &case.logits);
        let grid: Vec<_> = pca.project(&got.map).into_iter().step_by(3).collect();
        near(&grid, &case.grid);
    }
}

/// Reused memory and the other images change no bit.
#[test]
fn an_image_has_one_result() {
    let net = tiny();
    let images: Vec<_> = Case::all().iter().map(Case::image).collect();
    let alone = |image| net.activations(image, &mut Scratch::default());
    let want: Vec<_> = images.iter().map(alone).collect();
    let mut scratch = Scratch::default();
    for _ in 0..2 {
        for (image, want) in images.iter().zip(&want).rev() {
            assert_eq!(&net.activations(image, &mut scratch), want);
            net.logits(image, &mut scratch);
        }
    }
    let first = net.features(&images[0], &mut scratch);
    assert_eq!((first.map.height, first.map.width), (56, 56)); // 224 / 4
    let resized = crate::vision::resize(&images[0], 224, 224);
    assert_eq!(first, net.features(&resized, &mut scratch));
}

#[test]
fn what_does_not_fit_is_refused_in_one_line() {
    let json = String::from_utf8(GRAPH_JSON.to_vec()).unwrap();
    let line = |json: &str| {
        let error = MobileNet::new("g.json", json.as_bytes(), "w.safetensors", TENSORS);
        let line = error.unwrap_err().to_string();
        assert_eq!(line.lines().count(), 1);
        line
    };
    for (from, to, want) in [
        (
            r#""inputs": ["conv.00"]"#,
            r#""inputs": ["conv.99"]"#,
            "an output of an earlier operation, got conv.99",
        ),
        (r#""inputs": ["conv.00"]"#, r#""inputs": []"#, "expected 1 inputs, got 0"),
        (r#""op": "dw""#, r#""op": "pool""#, "expected conv, dw, add or mean, got pool"),
        ("[8, 3, 3, 3]", "[8, 4, 3, 3]", "expected a shape that begins [8, 3], got [8, 4, 3, 3]"),
        ("[8, 3, 3, 3]", "[8, 3, 3, 1]", "a square kernel"),
        (r#""stride": 2"#, r#""stride": 0"#, "a stride of 1 to 8"),
        (r#", "stride": 2"#, "", "expected `stride`, got none"),
        (
            r#""weights": "conv.03""#,
            r#""weights": "conv.77""#,
            "w.safetensors conv.77.weight: expected a tensor",
        ),
        (
            r#""weights": "conv.03""#,
            r#""weights": "conv.01""#,
            "conv.01.weight: expected shape [19, 5, 1, 1]",
        ),
        (
            r#"["conv.02", "conv.05"]"#,
            r#"["conv.02", "conv.03"]"#,
            "two inputs of the same width and stride",
        ),
        (r#""output": "conv.01""#, r#""output": "conv.00""#, "expected a unique name, got conv.00"),
        (
            r#""output": "global_pool"}, "#,
            r#""output": "global_pool"}, {"op": "mean", "inputs": ["global_pool"], "output": "x"}, "#,
            "a feature map to pool",
        ),
    ] {
        let changed = json.replacen(from, to, 1);
        assert_ne!(changed, json, "{from}");
        let line = line(&changed);
        assert!(line.contains(want), "{line}");
    }
    assert!(line("[]").contains("expected operations, got none"));
    assert!(line("{").contains("a list of operations"));
    let error = MobileNet::new("g", GRAPH_JSON, "w", &TENSORS[..TENSORS.len() - 9]);
    assert!(error.unwrap_err().to_string().starts_with("w: expected a safetensors file"));
    let line = GridPca::new("pca", PCA, 12).unwrap_err().to_string();
    assert_eq!(line, "pca mean: expected shape [12], got [11]");
    assert!(MobileNet::open("no/such").unwrap_err().to_string().contains("graph.json: No such"));
}

/// By hand: the windows of a 7 × 7 map are two positions wide and begin at every position except the last.
#[test]
fn golden_boxes_and_quantisation() {
    let boxes = grid_boxes(7);
    let seventh = |n: usize| n as f32 / 7.0;
    assert_eq!(boxes.len(), 36);
    assert_eq!(boxes[0], [0.0, 0.0, seventh(2), seventh(2)]);
    assert_eq!(boxes[8], [seventh(2), seventh(1), seventh(4), seventh(3)]);
    assert_eq!(boxes[35], [seventh(5), seventh(5), 1.0, 1.0]);
    let values = [1.0, -0.26, 3.0, 400.0, 0.24, -3.0];
    assert_eq!(quantise(&values, &[2.0, 0.1, 0.0]), [1, -3, 0, 127, 2, 0]);
}

/// Two components of three channels, saved in the stated order and transposed, give the same projection. By hand: the
/// map has one position (3, 5, 8), the mean is (1, 1, 1). (2, 4, 7) · (0.6, 0, 0.8) = 6.8 and · (0, −1, 0) = −4.
#[test]
fn golden_projection_in_either_order() {
    use safetensors::tensor::{Dtype, TensorView};
    let map = FeatureMap { height: 1, width: 1, channels: 3, values: vec![3.0, 5.0, 8.0] };
    for components in [[0.6f32, 0.0, 0.8, 0.0, -1.0, 0.0], [0.6, 0.0, 0.0, -1.0, 0.8, 0.0]] {
        let bytes =
            |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>();
        let (mean, components) = (bytes(&[1.0; 3]), bytes(&components));
        let view =
            |shape: &[usize], data| TensorView::new(Dtype::F32, shape.to_vec(), data).unwrap();
        let tensors = [("mean", view(&[3], &mean)), ("components", view(&[2, 3], &components))];
        let file = safetensors::serialize(tensors, None).unwrap();
        let grid = GridPca::new("pca", &file, 3).unwrap().project(&map);
        assert_eq!(grid.len(), 72);
        near(&grid[..2], &[6.8, -4.0]);
    }
}
