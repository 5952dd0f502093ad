//! The preparation of pictures that a published folder asks for.

use std::path::Path;

use super::{CropRounding, Fit, Normalization, Resampling, Transform};
use crate::Fields;
use crate::{Error, Result};

/// The file of `transformers`.
const TRANSFORMERS: &str = "preprocessor_config.json";
/// The file of a whole processor of `transformers`, with the same keys in an object.
const PROCESSOR: &str = "processor_config.json";
/// The file of open_clip.
const OPEN_CLIP: &str = "open_clip_config.json";
/// The largest side of a picture, as of the files that are decoded.
const MOST_SIDE: usize = 16_384;

impl Transform {
    /// Reads `image_processor` of `processor_config.json`, `preprocessor_config.json`, or `preprocess_cfg` of
    /// `open_clip_config.json`. `side` is the size of the model's images; it counts where the file names no size,
    /// and always for open_clip.
    ///
    /// # Errors
    /// If all are missing, the side is 0 or above 16,384, or a setting is not supported: an interpolation other than bicubic and bilinear, padding, no resize,
    /// a crop from another square.
    pub fn open(folder: impl AsRef<Path>, side: usize) -> Result<Self> {
        let folder = folder.as_ref();
        let (fits, expected) = ((1..=MOST_SIDE).contains(&side), format!("1 to {MOST_SIDE}"));
        Error::unless(fits, format_args!("{}, a side", folder.display()), expected, side)?;
        let [transformers, processor, open_clip] =
            [TRANSFORMERS, PROCESSOR, OPEN_CLIP].map(|name| folder.join(name));
        let kind = model_type(folder);
        // It wins, as in `transformers`.
        let fields = Fields::if_present(&processor)?;
        if fields.has("image_processor") {
            return of_transformers(&fields.object("image_processor")?, side, &kind);
        }
        if transformers.exists() {
            return of_transformers(&Fields::read(&transformers)?, side, &kind);
        }
        if open_clip.exists() {
            return of_open_clip(&Fields::read(&open_clip)?.object("preprocess_cfg")?, side);
        }
        let expected = format!("{TRANSFORMERS}, {PROCESSOR} with image_processor, or {OPEN_CLIP}");
        Err(Error::invalid(folder.display(), expected, "none of them"))
    }
}

/// The `model_type` of the folder's configuration; `clip` where nothing says it.
fn model_type(folder: &Path) -> String {
    let config = Fields::read(&folder.join("config.json")).ok();
    config.as_ref().and_then(|config| config.text("model_type")).unwrap_or("clip").to_owned()
}

/// Kernel and normalization where the file names none: the defaults of the class of `transformers` that the file names, else of the
/// class that reads pictures for `model_type`. Then whether a size in one number is both sides for this class, also beside a crop.
fn defaults(fields: &Fields, model_type: &str) -> Result<(usize, Normalization, bool)> {
    let types = ["image_processor_type", "feature_extractor_type"];
    let class = types.iter().find_map(|name| fields.text(name)).unwrap_or(model_type);
    let is_of = |names: &[&str]| names.iter().any(|n| class.to_lowercase().starts_with(n));
    let squares = is_of(&["vit", "deit"]);
    let keys = ["resample", "image_mean", "image_std"];
    if is_of(&["vit"]) {
        Ok((2, Normalization::HALF, squares))
    } else if is_of(&["siglip", "deit"]) {
        Ok((3, Normalization::HALF, squares))
    } else if is_of(&["clip", "bit", "dinov2"]) || keys.iter().all(|key| fields.has(key)) {
        Ok((3, Normalization::CLIP, squares))
    } else {
        let missing = keys.into_iter().find(|key| !fields.has(key)).unwrap_or_default();
        fields.refused(missing, "a value, because the defaults of this class are not known", class)
    }
}

fn of_transformers(fields: &Fields, side: usize, model_type: &str) -> Result<Transform> {
    let (resample, normal, squares) = defaults(fields, model_type)?;
    for (name, what) in [
        ("do_resize", "pictures of any size"),
        ("do_rescale", "values up to 1"),
        ("do_normalize", "a mean and a deviation"),
    ] {
        fields.unless(fields.flag(name, true), name, format_args!("true: {what}"), "false")?;
    }
    // Pillow's numbers.
    let filter = match fields.count("resample", resample)? {
        2 => Resampling::Bilinear,
        3 => Resampling::Bicubic,
        other => return fields.refused("resample", "2, bilinear, or 3, bicubic", other),
    };
    let scale = fields.real("rescale_factor", 1.0 / 255.0)?;
    let fits = (scale * 255.0 - 1.0).abs() <= 1e-6;
    fields.unless(fits, "rescale_factor", "1/255", scale)?;
    // Older files hold one number: the shorter side where CLIP cuts the centre out, else both sides.
    let cropped = fields.flag("do_center_crop", fields.has("crop_size"));
    let size = fields.object("size").ok();
    let longest = size.as_ref().is_some_and(|size| size.has("longest_edge"));
    fields.unless(!longest, "size", "shortest_edge, or height and width", "longest_edge")?;
    let whole = |name: &str| match &size {
        Some(size) if size.has(name) => size.count_to(MOST_SIDE, name, 0).map(Some),
        Some(_) => Ok(None),
        None => fields.count_to(MOST_SIDE, "size", 0).map(Some),
    };
    let number = |n: usize| u32::try_from(n).expect("a count that fits 32 bits");
    let (target, fit) = if cropped {
        let crop = match fields.object("crop_size") {
            Ok(crop) if crop.has("height") => {
                let side_of = |name| crop.count_to(MOST_SIDE, name, 0);
                let [height, width] = [side_of("height")?, side_of("width")?];
                crop.unless(height == width, "width", format_args!("{height}, a square"), width)?;
                height
            }
            Ok(_) => side,
            Err(_) => fields.count_to(MOST_SIDE, "crop_size", 0)?,
        };
        if size.as_ref().map_or(squares, |size| size.has("height")) {
            // Both sides are resized, and a picture of the crop's size is not cut.
            let fits = [whole("height")?, whole("width")?] == [Some(crop); 2];
            let expected =
                format_args!("shortest_edge, or the crop_size {crop} as height and width");
            fields.unless(fits, "size", expected, "another height or width")?;
            (crop, Fit::Squash)
        } else {
            let shorter = whole("shortest_edge")?.unwrap_or(crop);
            let expected = format_args!("at least the crop_size {crop}");
            fields.unless(shorter >= crop, "size", expected, shorter)?;
            (crop, Fit::Crop { shorter: number(shorter), rounding: CropRounding::Down })
        }
    } else {
        let (height, width) = (whole("height")?, whole("width")?);
        match (height, width) {
            (Some(height), Some(width)) if height == width => (height, Fit::Squash),
            (None, None) if size.as_ref().is_none_or(|size| !size.has("shortest_edge")) => {
                (side, Fit::Squash)
            }
            _ => return fields.refused("size", "equal height and width", "another size"),
        }
    };
    let normalization = normalization(fields, ["image_mean", "image_std"], normal)?;
    Ok(Transform { size: number(target), normalization, fit, filter })
}

fn of_open_clip(fields: &Fields, side: usize) -> Result<Transform> {
    let filter = match fields.text("interpolation") {
        None | Some("bicubic") => Resampling::Bicubic,
        Some("bilinear") => Resampling::Bilinear,
        Some(other) => return fields.refused("interpolation", "bicubic or bilinear", other),
    };
    let size = u32::try_from(side).expect("a count that fits 32 bits");
    let fit = match fields.text("resize_mode") {
        None | Some("shortest") => Fit::Crop { shorter: size, rounding: CropRounding::HalfEven },
        Some("squash") => Fit::Squash,
        Some(other) => return fields.refused("resize_mode", "shortest or squash", other),
    };
    let normalization = normalization(fields, ["mean", "std"], Normalization::CLIP)?;
    Ok(Transform { size, normalization, fit, filter })
}

fn normalization(
    fields: &Fields,
    [of_mean, of_std]: [&str; 2],
    default: Normalization,
) -> Result<Normalization> {
    let mean = fields.channels(of_mean, default.mean)?;
    let std = fields.channels(of_std, default.std)?;
    if let Some(zero) = std.iter().find(|x| **x <= 0.0) {
        return fields.refused(of_std, "numbers above 0", zero);
    }
    Ok(Normalization { mean, std })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use image::RgbImage;
    use safetensors::SafeTensors;
    use serde_json::{Value, json};
    use tempfile::TempDir;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../itm-core/tests/golden/clip").join(name)
    }

    /// Every byte and every float of pictures of eight sizes, from `tests/reference/clip.py`: Pillow, and the processors of
    /// `transformers` and open_clip.
    #[test]
    fn golden_pictures() {
        let bytes = fs::read(folder("pictures.safetensors")).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let picture = |name: &str| {
            let tensor = file.tensor(name).unwrap();
            let [height, width] = [0, 1].map(|axis| tensor.shape()[axis] as u32);
            RgbImage::from_raw(width, height, tensor.data().to_vec()).unwrap()
        };
        let crop = |shorter, rounding| Fit::Crop { shorter, rounding };
        let (mut moved, mut compared) = (0, 0);
        for k in 0..8 {
            let image = picture(&format!("p{k}"));
            for n in [12, 20] {
                let of = |fit| Transform { size: n, fit, ..Transform::default() }.fitted(&image);
                let [down, even, squash] =
                    [crop(n, CropRounding::Down), crop(n, CropRounding::HalfEven), Fit::Squash]
                        .map(of);
                for (got, name) in [(&down, "floor"), (&even, "even"), (&squash, "squash")] {
                    if (k, n, name) == (6, 12, "squash") {
                        continue; // 9 × 20: only the width grows, and Pillow 13 has another order
                    }
                    assert_eq!(got, &picture(&format!("p{k}.{n}.{name}")), "p{k}.{n}.{name}");
                }
                moved += usize::from(down != even);
            }
            for name in ["clip", "siglip"] {
                let tensor = file.tensor(&format!("p{k}.12.{name}"));
                let Some(tensor) = tensor.ok().filter(|_| (k, name) != (6, "siglip")) else {
                    continue;
                };
                let mut out = vec![0.0; 3 * 12 * 12];
                Transform::open(folder(name), 12).unwrap().apply(&image, &mut out);
                let want = tensor.data().as_chunks().0.iter().map(|&b| f32::from_le_bytes(b));
                assert!(out.iter().zip(want).all(|(g, w)| (g - w).abs() < 5e-7), "p{k}.12.{name}");
                compared += 1;
            }
        }
        assert!(moved == 2 && compared > 1, "{moved} crops differ, {compared} floats compared");
    }

    #[test]
    fn open_clip_rounds_half_to_even() {
        let open_clip = Transform::open(folder("open_clip"), 12).unwrap();
        assert_eq!(open_clip.fit, Fit::Crop { shorter: 12, rounding: CropRounding::HalfEven });
        assert_eq!(open_clip.normalization, Normalization::CLIP);
        let starts = [0, 1, 2, 3, 5, 7].map(|r| CropRounding::HalfEven.start(r));
        assert_eq!(starts, [0, 0, 1, 2, 2, 4]);
        assert_eq!([0, 1, 2, 3, 5, 7].map(|r| CropRounding::Down.start(r)), [0, 0, 1, 1, 2, 3]);
    }

    #[test]
    fn settings_are_read_or_refused() {
        let own = TempDir::new().unwrap();
        let read = |config: Value| {
            fs::write(own.path().join(TRANSFORMERS), config.to_string()).unwrap();
            Transform::open(own.path(), 224).map_err(|error| {
                error.to_string().replace(&*own.path().display().to_string(), "FOLDER")
            })
        };
        let crop = |shorter| Fit::Crop { shorter, rounding: CropRounding::Down };
        let dino = json!({ "size": { "shortest_edge": 256 }, "crop_size": { "height": 224, "width": 224 },
                           "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225] });
        let dino = read(dino).unwrap();
        let imagenet = Normalization { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] };
        assert_eq!((dino.size, dino.fit, dino.normalization), (224, crop(256), imagenet));
        // Old files: numbers in place of objects.
        let old = read(json!({ "size": 224, "crop_size": 224, "do_center_crop": true })).unwrap();
        assert_eq!(old.fit, crop(224));
        let squash = read(json!({ "size": 224 })).unwrap();
        assert_eq!((squash.fit, squash.filter), (Fit::Squash, Resampling::Bicubic));
        assert_eq!(read(json!({ "resample": 2 })).unwrap().filter, Resampling::Bilinear);
        // A square of the crop's size is not cut, and its aspect ratio is lost.
        let square = json!({ "size": { "height": 224, "width": 224 }, "crop_size": 224 });
        assert_eq!(read(square).unwrap().fit, Fit::Squash);
        // The defaults of the classes of transformers 5.23.
        for (class, filter, normalization) in [
            ("ViTImageProcessor", Resampling::Bilinear, Normalization::HALF),
            ("ViTFeatureExtractor", Resampling::Bilinear, Normalization::HALF),
            ("SiglipImageProcessorFast", Resampling::Bicubic, Normalization::HALF),
            ("BitImageProcessor", Resampling::Bicubic, Normalization::CLIP),
        ] {
            let got = read(json!({ "size": 224, "image_processor_type": class })).unwrap();
            assert_eq!((got.filter, got.normalization), (filter, normalization), "{class}");
        }
        let start = "FOLDER/preprocessor_config.json: ";
        for (config, want) in [
            (json!({ "resample": 1 }), "resample: expected 2, bilinear, or 3, bicubic, got 1"),
            (
                json!({ "do_resize": false }),
                "do_resize: expected true: pictures of any size, got false",
            ),
            (json!({ "rescale_factor": 1 }), "rescale_factor: expected 1/255, got 1"),
            (
                json!({ "size": { "longest_edge": 224 } }),
                "size: expected shortest_edge, or height and width, got longest_edge",
            ),
            (
                json!({ "size": { "height": 384, "width": 224 } }),
                "size: expected equal height and width, got another size",
            ),
            (
                json!({ "size": { "height": 256, "width": 256 }, "crop_size": 224 }),
                "size: expected shortest_edge, or the crop_size 224 as height and width, got another height or width",
            ),
            (
                json!({ "size": 256, "crop_size": 224, "feature_extractor_type": "DeiTFeatureExtractor" }),
                "size: expected shortest_edge, or the crop_size 224 as height and width, got another height or width",
            ),
            (
                json!({ "resample": 3, "image_processor_type": "OwnProcessor" }),
                "image_mean: expected a value, because the defaults of this class are not known, got OwnProcessor",
            ),
            (json!({ "image_std": [0.5, 0, 0.5] }), "image_std: expected numbers above 0, got 0"),
            (json!({ "image_mean": [0.5] }), "image_mean: expected three numbers, got [0.5]"),
            (
                json!({ "size": { "shortest_edge": 200 }, "crop_size": { "height": 224, "width": 224 } }),
                "size: expected at least the crop_size 224, got 200",
            ),
        ] {
            assert_eq!(read(config).unwrap_err(), format!("{start}{want}"));
        }
        // A processor's own file, where no other is; the model says what an absent key means.
        let without = read(json!({})).unwrap();
        fs::rename(own.path().join(TRANSFORMERS), own.path().join(PROCESSOR)).unwrap();
        let line = Transform::open(own.path(), 224).unwrap_err().to_string();
        let want = "expected preprocessor_config.json, processor_config.json with image_processor, or open_clip_config.json, got none of them";
        assert!(line.ends_with(want), "{line}");
        fs::write(own.path().join(PROCESSOR), "{\"image_processor\": {\"size\": 384}}").unwrap();
        fs::write(own.path().join("config.json"), "{\"model_type\": \"vit\"}").unwrap();
        let (filter, normalization) = (Resampling::Bilinear, Normalization::HALF);
        let want = Transform { size: 384, filter, normalization, ..without };
        assert_eq!(Transform::open(own.path(), 224).unwrap(), want);
    }
}
