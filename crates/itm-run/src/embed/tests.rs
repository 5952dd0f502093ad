use std::collections::BTreeMap;
use std::fs;

use burn::tensor::Device;
use itm_core::data::{Npy, decode_image, sha256_hex};
use itm_core::encoders::{DualEncoder, DualLayout, DualShape};
use itm_kernels::Precision;

use super::*;
use crate::cli::Shard;

/// A model of CLIP's files with made-up weights: 8 pixels, patches of 4, a vocabulary of bytes.
pub(crate) fn model(folder: &Path) {
    let mut shape = DualShape::clip_base_32();
    (shape.image.image, shape.image.patch) = ([8, 8], 4);
    (shape.image.width, shape.image.heads, shape.image.layers, shape.image.mlp) = (16, 2, 2, 32);
    (shape.text.width, shape.text.heads, shape.text.layers, shape.text.mlp) = (16, 2, 2, 32);
    (shape.text.vocabulary, shape.text.positions, shape.joint) = (514, 10, 12);
    shape.text.end = Some(513);
    let model = DualEncoder::seeded(&shape, 3, &Device::flex());
    model.save(folder, DualLayout::Transformers).unwrap();
    // CLIP's bytes: printable ones stand for themselves, the others for the letters from U+0100 on.
    let printable = |b: &u8| matches!(b, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let (mut letters, mut next) = (vec![], 256);
    for byte in 0..=255u8 {
        let letter = match printable(&byte) {
            true => u32::from(byte),
            false => {
                next += 1;
                next - 1
            }
        };
        letters.push(char::from_u32(letter).unwrap().to_string());
    }
    let ends = letters.iter().map(|letter| format!("{letter}</w>"));
    let specials = ["<|startoftext|>".into(), "<|endoftext|>".into()];
    let pieces = letters.iter().cloned().chain(ends).chain(specials);
    let pieces: BTreeMap<String, usize> = pieces.zip(0..).collect();
    fs::write(folder.join("vocab.json"), serde_json::to_string(&pieces).unwrap()).unwrap();
    fs::write(folder.join("merges.txt"), "#version: 0.2\n").unwrap();
    let pictures = r#"{"size": {"shortest_edge": 8}, "crop_size": {"height": 8, "width": 8}}"#;
    fs::write(folder.join("preprocessor_config.json"), pictures).unwrap();
}

struct World {
    dir: tempfile::TempDir,
}

impl World {
    /// Seven pictures, two captions for each.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for sub in ["images", "model"] {
            fs::create_dir(dir.path().join(sub)).unwrap();
        }
        model(&dir.path().join("model"));
        let sizes = scenes::Sizes { train: 7, val: 0, test: 0, pixels: 24 };
        let world = scenes::Scenes::generate(4, sizes);
        let mut captions = String::new();
        for i in 0..7 {
            fs::write(dir.path().join(format!("images/{i}.png")), world.train.png(i)).unwrap();
            captions += &format!("{i}.png#0\ta {i}\n{}.png#1\tthe dog of {i} runs\n", 6 - i);
        }
        fs::write(dir.path().join("captions.txt"), captions).unwrap();
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn args(&self, out: &str) -> EmbedArgs {
        EmbedArgs {
            model: self.path("model").display().to_string(),
            adapter: None,
            images: Some(self.path("images")),
            captions: Some(self.path("captions.txt")),
            out: self.path(out),
            shard: None,
            precision: Precision::F32,
            backend: "cpu".into(),
            batch: 3,
            patches: true,
            upright: false,
            skip_bad: false,
        }
    }

    fn line(&self, args: &EmbedArgs) -> String {
        let line = embed(args).unwrap_err().to_string();
        line.replace(&*self.dir.path().display().to_string(), "DIR")
    }
}

fn values(path: PathBuf) -> Vec<f32> {
    Npy::open(path).unwrap().to_vec().unwrap()
}

/// The bytes of every file of a folder, by name.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.is_file());
    files
        .map(|p| (p.file_name().unwrap().to_string_lossy().into_owned(), fs::read(p).unwrap()))
        .collect()
}

/// The rows are those of the model, unit rows in the order of the names; the manifest has the hash of each file.
#[test]
fn a_folder_becomes_two_files_of_embeddings() {
    let world = World::new();
    embed(&world.args("out")).unwrap();
    let model =
        Embedder::open(&world.path("model"), None, Precision::F32, &Device::flex()).unwrap();
    let transform = model.transform("--images").unwrap();
    let got = values(world.path("out/image.npy"));
    for (i, row) in got.chunks_exact(12).enumerate() {
        let image = decode_image(world.path(&format!("images/{i}.png"))).unwrap();
        let mut pixels = vec![0.0; transform.len()];
        transform.apply(&image, &mut pixels);
        let [want, _] = model.images(pixels.clone(), 8, false);
        let [_, patches] = model.images(pixels, 8, true);
        let grid = &values(world.path("out/grid.npy"))[i * 4 * 16..(i + 1) * 4 * 16];
        assert!(grid.iter().zip(&patches).all(|(g, w)| (g - w).abs() < 1e-5));
        assert!(row.iter().zip(&want).all(|(g, w)| (g - w).abs() < 1e-6));
        assert!((row.iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-5);
    }
    let captions = CaptionList::read(&world.path("captions.txt")).unwrap();
    let texts = values(world.path("out/text.npy"));
    assert_eq!(texts.len(), 14 * 12);
    for (row, caption) in texts.chunks_exact(12).zip(&captions.texts) {
        let (want, _) = model.captions(&[caption], 1, |_| ()).unwrap();
        assert!(row.iter().zip(&want).all(|(g, w)| (g - w).abs() < 1e-6));
    }
    let pairs = Npy::open(world.path("out/text_to_image.npy")).unwrap().to_vec().unwrap();
    assert_eq!(pairs[..4], [0.0, 6.0, 1.0, 5.0]);
    let written = files(&world.path("out"));
    let names: Vec<_> = written.keys().map(String::as_str).collect();
    let arrays = ["image.npy", "image_ids.txt", "text.npy", "text_to_image.npy"];
    let others = ["captions.txt", "embed.json", "embed.lock", "grid.npy"];
    assert_eq!(names, [&others[..], &arrays].concat());
    let texts = String::from_utf8(written["captions.txt"].clone()).unwrap();
    assert_eq!(texts.lines().collect::<Vec<_>>(), captions.texts);
    let manifest: Value = serde_json::from_slice(&written["embed.json"]).unwrap();
    assert_eq!(manifest["files"]["image.npy"], json!(sha256_hex(&written["image.npy"])));
    assert_eq!(manifest["text"], json!({ "rows": 14, "width": 12, "cut": 14 - 7 }));
    // Once more: nothing to do, and nothing changes but what a kill after the manifest left. Another model or batch is refused.
    for left in ["embed.json.part", "image.done.part", "text.done.part"] {
        fs::write(world.path("out").join(left), "{}").unwrap();
    }
    embed(&world.args("out")).unwrap();
    assert_eq!(files(&world.path("out")), written);
    let other = EmbedArgs { batch: 4, ..world.args("out") };
    let want =
        "DIR/out/embed.json: batch: expected 4, as this command has it, or another --out, got 3";
    assert_eq!(world.line(&other), want);
}

/// Stopped after every batch in turn, the command goes on to the same bytes.
#[test]
fn a_command_that_was_killed_goes_on_to_the_same_bytes() {
    let world = World::new();
    embed(&world.args("whole")).unwrap();
    let want = files(&world.path("whole"));
    for kept in 0..3 {
        let (out, args) = (world.path(&format!("{kept}")), world.args(&format!("{kept}")));
        // A picture that cannot be read ends the command as a kill would: its rows so far are there.
        let damaged = world.path(&format!("images/{}.png", kept * 3));
        let whole = fs::read(&damaged).unwrap();
        // As long as before, so that the work is the same.
        fs::write(&damaged, vec![0; whole.len()]).unwrap();
        assert!(world.line(&args).contains("expected a JPEG, PNG or WebP image"));
        fs::write(&damaged, &whole).unwrap();
        assert!(!out.join("image.npy").exists() && !out.join("embed.json").exists());
        assert_eq!(fs::read(out.join("image.npy.part")).unwrap().len(), 128 + 4 * 12 * 3 * kept);
        embed(&args).unwrap();
        let got = files(&out);
        assert!(got == want, "stopped in batch {kept}");
    }
}

/// The command's own list of captions was replaced by the captions without their pictures.
#[test]
fn files_of_others_are_not_replaced() {
    let world = World::new();
    let read = || fs::read(world.path("captions.txt")).unwrap();
    let before = read();
    let want = "DIR/captions.txt: expected a folder without files of that name, or with a manifest, got a file";
    assert_eq!(world.line(&world.args("")), want);
    assert_eq!(read(), before);
    embed(&EmbedArgs { captions: None, ..world.args("") }).unwrap();
}

/// A damaged picture is left out, with its captions, and named.
#[test]
fn damaged_pictures_are_left_out_where_that_is_asked() {
    let world = World::new();
    embed(&world.args("whole")).unwrap();
    fs::write(world.path("images/2.png"), "no picture").unwrap();
    assert!(world.line(&world.args("out")).contains("expected a JPEG, PNG or WebP image"));
    // A command that stopped at the picture goes on without it, but not the reverse.
    embed(&EmbedArgs { skip_bad: true, ..world.args("out") }).unwrap();
    let want = "DIR/out/embed.json: skip_bad: expected false, as this command has it, or another --out, got true";
    assert_eq!(world.line(&world.args("out")), want);
    let [whole, left] = ["whole", "out"].map(|out| values(world.path(&format!("{out}/image.npy"))));
    let want: Vec<f32> = [&whole[..24], &whole[36..]].concat();
    assert!(left.iter().zip(&want).all(|(g, w)| (g - w).abs() < 1e-6) && left.len() == want.len());
    let ids = fs::read_to_string(world.path("out/image_ids.txt")).unwrap();
    assert_eq!(ids, "0.png\n1.png\n3.png\n4.png\n5.png\n6.png\n");
    assert_eq!(values(world.path("out/text.npy")).len(), 12 * 12);
    let pairs = values(world.path("out/text_to_image.npy"));
    assert!(pairs.len() == 12 && pairs.iter().all(|&i| i < 6.0));
    let manifest: Value =
        serde_json::from_slice(&fs::read(world.path("out/embed.json")).unwrap()).unwrap();
    assert_eq!(manifest["image"]["left_out"], json!(["2.png"]));
}

/// No list of names could say such a name.
#[cfg(unix)]
#[test]
fn a_picture_whose_name_is_no_line_is_a_bad_one() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let world = World::new();
    for name in [&b"2\n.png"[..], b"2\xff.png"] {
        let path = world.path("images").join(OsStr::from_bytes(name));
        fs::copy(world.path("images/2.png"), path).unwrap();
    }
    let want = "DIR/images/2\\n.png: expected a name of one line in UTF-8, got another";
    assert_eq!(world.line(&world.args("out")), want);
    embed(&EmbedArgs { skip_bad: true, ..world.args("out") }).unwrap();
    let manifest: Value =
        serde_json::from_slice(&fs::read(world.path("out/embed.json")).unwrap()).unwrap();
    assert_eq!(manifest["image"]["left_out"], json!(["2\\n.png", "2\u{fffd}.png"]));
    assert_eq!(manifest["image"]["rows"], json!(7));
}

/// The parts of a list, one after the other, are the list. A folder is made only for files that are written.
#[test]
fn shards_are_parts_of_the_whole() {
    let world = World::new();
    let whole = EmbedArgs { batch: 1, ..world.args("whole") };
    embed(&whole).unwrap();
    for number in 1..=3 {
        let shard = Some(Shard { number, of: 3 });
        embed(&EmbedArgs { shard, batch: 1, ..world.args("out") }).unwrap();
    }
    for name in ["image", "text"] {
        let mut parts = vec![];
        for i in 1..=3 {
            parts.extend(values(world.path(&format!("out/{name}/0000{i}.npy"))));
        }
        let whole = values(world.path(&format!("whole/{name}.npy")));
        assert_eq!(parts.len(), whole.len());
        if name == "image" {
            assert_eq!(parts, whole);
        }
    }
    // The folder is read as one file: a fourth of other parts would be there twice.
    let other = EmbedArgs { shard: Some(Shard { number: 4, of: 4 }), ..world.args("out") };
    let want =
        "DIR/out/embed/00001.json: shard: expected one of 4 parts, or another --out, got \"1/3\"";
    assert_eq!(world.line(&other), want);
    assert!(!world.path("out/image/00004.npy").exists());
    let shard = Some(Shard { number: 2, of: 3 });
    embed(&EmbedArgs { shard, patches: false, ..world.args("plain") }).unwrap();
    let entries = fs::read_dir(world.path("plain")).unwrap().map(|e| e.unwrap().file_name());
    let mut folders: Vec<_> = entries.collect();
    folders.sort();
    assert_eq!(folders, ["captions", "embed", "image", "image_ids", "text", "text_to_image"]);
    // Captions stand in the shard of their picture, and their numbers count within the shard.
    let pairs = values(world.path("plain/text_to_image/00002.npy"));
    assert_eq!(pairs, [0.0, 1.0, 1.0, 0.0]);
    let items: Vec<usize> = (1..=3).flat_map(|number| Shard { number, of: 3 }.part(7)).collect();
    assert_eq!(items, (0..7).collect::<Vec<_>>());
}

#[test]
fn what_cannot_be_embedded_is_named() {
    let world = World::new();
    let none = EmbedArgs { images: None, captions: None, ..world.args("out") };
    assert_eq!(world.line(&none), "--images, --captions: expected one of them or both, got none");
    let alone = EmbedArgs { images: None, ..world.args("out") };
    assert_eq!(world.line(&alone), "--patches: expected --images beside it, got captions alone");
    let upright = EmbedArgs { patches: false, upright: true, images: None, ..world.args("out") };
    assert!(world.line(&upright).starts_with("--upright: expected --images beside it"));
    let skipping = EmbedArgs { upright: false, skip_bad: true, ..upright };
    assert!(world.line(&skipping).starts_with("--skip-bad: expected --images beside it"));
    let gpu = EmbedArgs { backend: "gpu".into(), ..world.args("out") };
    assert!(world.line(&gpu).starts_with("backend: expected cpu, wgpu[:i], tch"));
    let config = world.path("model/config.json");
    let whole = fs::read_to_string(&config).unwrap();
    for other in ["blip", "dinov2_with_registers"] {
        fs::write(&config, whole.replace("\"clip\"", &format!("\"{other}\""))).unwrap();
        let line = world.line(&world.args("out"));
        assert!(line.starts_with("DIR/model/config.json: model_type: expected CLIP"), "{line}");
        assert!(line.ends_with(&format!("sentence-transformers, got \"{other}\"")), "{line}");
    }
    fs::write(&config, whole).unwrap();
    fs::write(world.path("captions.txt"), "8.png\ta dog\n").unwrap();
    assert_eq!(
        world.line(&world.args("a")),
        "DIR/captions.txt line 1: expected one of the 7 pictures, got 8.png"
    );
    assert!(!world.path("a").exists()); // the line comes before the work
    fs::create_dir(world.path("b")).unwrap();
    fs::write(world.path("b/image.npy"), "").unwrap();
    let line = world.line(&EmbedArgs { captions: None, ..world.args("b") });
    assert_eq!(
        line,
        "DIR/b/image.npy: expected a folder without files of that name, or with a manifest, got a file"
    );
    assert!(Shard::read("0/3").is_err() && Shard::read("4/3").is_err());
}
