use itm_core::data::PrecompSplit;
use itm_core::vision::Activations;

use super::*;

/// A network with made-up weights under the names of the published files: 3 → 4 channels at stride 32, a pool, and PCA to 2.
fn weights(folder: &Path) {
    let graph = r#"[
        {"op": "conv", "inputs": ["input"], "weights": "c", "shape": [4, 3, 1, 1], "stride": 8, "relu6": true, "output": "a"},
        {"op": "dw", "inputs": ["a"], "weights": "d", "shape": [4, 1, 1, 1], "stride": 4, "relu6": false, "output": "b"},
        {"op": "mean", "inputs": ["b"], "output": "p"}]"#;
    fs::write(folder.join("mobilenet_v2_1.0_224.graph.json"), graph).unwrap();
    let file = |name: &str, tensors: &[(&str, &[usize])]| {
        let (mut header, mut data) = (String::new(), Vec::new());
        for (k, (name, shape)) in tensors.iter().enumerate() {
            let n: usize = shape.iter().product();
            let value = |i: usize| ((i * 5 + k) % 7) as f32 * 0.3 - 0.5;
            let from = data.len();
            data.extend((0..n).flat_map(|i| value(i).to_le_bytes()));
            let comma = if k > 0 { "," } else { "" };
            header += &format!(
                r#"{comma}"{name}":{{"dtype":"F32","shape":{shape:?},"data_offsets":[{from},{}]}}"#,
                data.len()
            );
        }
        let header = format!("{{{header}}}");
        let length = (header.len() as u64).to_le_bytes();
        let bytes = [length.as_slice(), header.as_bytes(), &data].concat();
        fs::write(folder.join(name), bytes).unwrap();
    };
    let tensors: [(&str, &[usize]); 4] = [
        ("c.weight", &[4, 3, 1, 1]),
        ("c.bias", &[4]),
        ("d.weight", &[4, 1, 1, 1]),
        ("d.bias", &[4]),
    ];
    file("mobilenet_v2_1.0_224.safetensors", &tensors);
    file("grid_pca128.safetensors", &[("mean", &[4]), ("components", &[2, 4])]);
}

/// Three pictures of 96 × 96 pixels as PNG files, and a file that is no picture.
fn pictures(folder: &Path) {
    let sizes = scenes::Sizes { train: 3, val: 0, test: 0, pixels: 96 };
    let world = scenes::Scenes::generate(4, sizes);
    for (i, name) in ["c.png", "a.png", "b.PNG"].into_iter().enumerate() {
        fs::write(folder.join(name), world.train.png(i)).unwrap();
    }
    fs::write(folder.join("notes.txt"), "no picture").unwrap();
}

struct Run {
    dir: tempfile::TempDir,
}

impl Run {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for sub in ["images", "weights"] {
            fs::create_dir(dir.path().join(sub)).unwrap();
        }
        weights(&dir.path().join("weights"));
        pictures(&dir.path().join("images"));
        Self { dir }
    }

    fn args(&self) -> FeaturesArgs {
        FeaturesArgs {
            images: self.dir.path().join("images"),
            weights: self.dir.path().join("weights"),
            out: self.dir.path().join("out"),
            name: "val".into(),
            ids: None,
            grid: true,
            batch: 2,
            skip_bad: false,
        }
    }

    fn activations(&self, name: &str) -> Activations {
        let net = MobileNet::open(self.dir.path().join("weights")).unwrap();
        let image = decode_image(self.dir.path().join("images").join(name)).unwrap();
        net.features(&image, &mut Scratch::default())
    }

    fn out(&self, name: &str) -> PathBuf {
        self.dir.path().join("out").join(name)
    }
}

/// The loader of precomputed features reads the files; each row has the network's own numbers.
#[test]
fn a_folder_becomes_files_that_the_loader_reads() {
    let run = Run::new();
    features(&run.args()).unwrap();
    fs::write(run.out("val_caps.txt"), "a caption\n".repeat(15)).unwrap();
    let split = PrecompSplit::open(run.out(""), "val", 5).unwrap();
    assert_eq!(split.ids.as_deref().unwrap(), ["a.png", "b.PNG", "c.png"]);
    let global = split.global_features().unwrap();
    let scale = Npy::open(run.out("grid_scale.npy")).unwrap().to_vec().unwrap();
    let grid = Npy::open(run.out("val_grid.npy")).unwrap();
    assert_eq!(grid.shape(), [3, 36, 2]);
    let grid = grid.with_scale(scale.clone()).unwrap();
    let pca = GridPca::open(run.dir.path().join("weights"), 4).unwrap();
    for (i, name) in ["a.png", "b.PNG", "c.png"].into_iter().enumerate() {
        let want = run.activations(name);
        for (got, want) in global.row(i).iter().zip(&want.pooled) {
            assert_eq!(*got, f16::from_f32(*want).to_f32());
        }
        let mut got = vec![0.0; 72];
        grid.row_into(i, &mut got).unwrap();
        for (k, (got, want)) in got.iter().zip(pca.project(&want.map)).enumerate() {
            assert!((got - want).abs() <= 0.5001 * scale[k % 2], "{name} {k}: {got}, want {want}");
        }
    }
    // The greatest magnitude of a dimension is ±127.
    let values = Npy::open(run.out("val_grid.npy")).unwrap().to_vec().unwrap();
    for d in 0..2 {
        let most = values.iter().skip(d).step_by(2).fold(0.0f32, |m, v| m.max(v.abs()));
        assert_eq!(most, 127.0);
    }
    let boxes = Npy::open(run.out("grid_boxes.npy")).unwrap();
    assert_eq!((boxes.shape(), boxes.to_vec().unwrap()[2]), (&[36, 4][..], 2.0 / 7.0));
    let mut left: Vec<_> =
        fs::read_dir(run.out("")).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    let want = [
        "grid_boxes.npy",
        "grid_scale.npy",
        "val_caps.txt",
        "val_grid.npy",
        "val_ids.txt",
        "val_ims.npy",
    ];
    assert_eq!(left, want);
}

/// A second split takes the scale of the first; a list decides which pictures, in which order; the batch size changes nothing.
#[test]
fn splits_share_a_scale_and_a_list_decides_the_order() {
    let run = Run::new();
    features(&run.args()).unwrap();
    let [scale, ims] = ["grid_scale.npy", "val_ims.npy"].map(|f| fs::read(run.out(f)).unwrap());
    let list = run.dir.path().join("list.txt");
    fs::write(&list, "c.png\na.png\n").unwrap();
    let args =
        FeaturesArgs { name: "test".into(), ids: Some(list.clone()), batch: 64, ..run.args() };
    features(&args).unwrap();
    assert_eq!(fs::read(run.out("grid_scale.npy")).unwrap(), scale);
    assert_eq!(fs::read_to_string(run.out("test_ids.txt")).unwrap(), "c.png\na.png\n");
    let (val, test) = (&ims[128..], fs::read(run.out("test_ims.npy")).unwrap());
    assert_eq!((&test[128..136], &test[136..144]), (&val[16..24], &val[..8]));

    for (text, want) in [
        ("a.png\na.png\n", "line 2: expected each picture once, got a second a.png"),
        ("a.png\n\n", "line 2: expected a file name, got an empty line"),
        ("", "expected a file name on each line, got an empty file"),
        ("d.png\n", "d.png: No such file"),
    ] {
        fs::write(&list, text).unwrap();
        let line = features(&args).unwrap_err().to_string();
        assert!(line.contains(want), "{line}");
    }
}

/// By default nothing is written if a picture is bad; with `--skip-bad` the other pictures are written, with their names.
#[test]
fn bad_pictures_are_an_error_or_left_out() {
    let run = Run::new();
    let images = run.dir.path().join("images");
    let whole = fs::read(images.join("a.png")).unwrap();
    fs::write(images.join("a.png"), &whole[..whole.len() / 2]).unwrap();
    let line = features(&run.args()).unwrap_err().to_string();
    assert!(
        line.contains("a.png: expected a whole image, got a truncated or damaged file"),
        "{line}"
    );
    assert_eq!(fs::read_dir(run.out("")).unwrap().count(), 0);
    features(&FeaturesArgs { skip_bad: true, ..run.args() }).unwrap();
    assert_eq!(fs::read_to_string(run.out("val_ids.txt")).unwrap(), "b.PNG\nc.png\n");
    assert_eq!(Npy::open(run.out("val_ims.npy")).unwrap().shape(), [2, 4]);

    for name in ["b.PNG", "c.png"] {
        fs::write(images.join(name), "x").unwrap();
    }
    let line = features(&FeaturesArgs { skip_bad: true, ..run.args() }).unwrap_err().to_string();
    assert!(line.ends_with("expected pictures that can be read, got none"), "{line}");
    let empty = FeaturesArgs { images: run.dir.path().join("weights"), ..run.args() };
    let line = features(&empty).unwrap_err().to_string();
    assert!(line.ends_with("expected pictures (.jpg, .jpeg, .png, .webp), got none"), "{line}");
    let line = features(&FeaturesArgs { batch: 0, ..run.args() }).unwrap_err().to_string();
    assert_eq!(line, "--batch: expected 1 to 65536, got 0");
}

/// An error after the global features were whole left them under their final name.
#[test]
fn an_error_in_the_grid_leaves_nothing() {
    let run = Run::new();
    fs::create_dir(run.out("")).unwrap();
    let scale = array("<f4", &[3], [0.0f32; 3].iter().flat_map(|v| v.to_le_bytes()));
    fs::write(run.out("grid_scale.npy"), scale).unwrap();
    let line = features(&run.args()).unwrap_err().to_string();
    assert!(line.ends_with("grid_scale.npy: expected shape [2], got shape [3]"), "{line}");
    let left: Vec<_> = fs::read_dir(run.out("")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["grid_scale.npy"]);
}
