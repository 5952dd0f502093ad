//! The towers of one published model, back in its files.

use std::fs;
use std::path::Path;

use burn::module::Param;
use burn::tensor::Tensor;

use super::{Encoders, ImageConfig, ImageEncoder, ModelConfig, TextConfig, TextEncoder};
use crate::encoders::{DualEncoder, DualLayout};
use crate::files::{LARGEST_TEXT, read};
use crate::output::write_bytes;
use crate::weights::{OPEN_CLIP_CONFIG, SMALL_FILES};
use crate::{Error, Result};

/// Small files that the tokenizers of `transformers` read, and nothing here.
const OF_OTHERS: [&str; 3] = ["added_tokens.json", "special_tokens_map.json", "spiece.model"];

impl Encoders {
    /// Writes both towers of one published CLIP or SigLIP as a folder of that model: in its layout, with its word pieces and its preparation
    /// of pictures. `transformers` or open_clip opens the folder, and so does [`DualEncoder::open`]. Changes by LoRA are in the weights. A
    /// contrastive loss that the encoders have gives θ = ln(1/τ), and β if it has one; what no loss gives stays as published.
    ///
    /// # Errors
    /// If `model` does not name one published model for both towers, the published folder is gone or damaged, or the operating system
    /// refuses a write.
    pub fn save(&self, model: &ModelConfig, folder: impl AsRef<Path>) -> Result<()> {
        let of_one = match (&model.image, &model.text) {
            (ImageConfig::Clip(image), TextConfig::Clip(text)) if image.weights == text.weights => {
                Some(image)
            }
            _ => None,
        };
        let (Some(config), ImageEncoder::Clip(image), TextEncoder::Clip(text)) =
            (of_one, &self.image, &self.text)
        else {
            let expected = "both of one published CLIP or SigLIP";
            return Err(Error::invalid("towers", expected, "others"));
        };
        let (published, folder) = (config.folder()?.0, folder.as_ref());
        let device = text.positions.val().device();
        let (mut whole, _) = DualEncoder::open(&published, &device)?;
        (whole.image, whole.text) = (image.tower.clone(), text.clone());
        if let Some(contrast) = &self.contrast {
            let theta = -contrast.temperature.value().ln() as f32;
            whole.scale = Param::from_tensor(Tensor::from_floats([theta], &device));
            if let Some(beta) = contrast.beta(&device) {
                whole.bias = whole.bias.map(|_| Param::from_tensor(beta.detach()));
            }
        }
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        let layout = DualLayout::of(&published);
        // The configuration of the other layout would mislead without its weights.
        let left_out = match layout {
            DualLayout::Transformers => OPEN_CLIP_CONFIG,
            DualLayout::OpenClip => "config.json",
        };
        for name in SMALL_FILES.iter().chain(&OF_OTHERS).filter(|name| **name != left_out) {
            let path = published.join(name);
            if path.exists() {
                write_bytes(&folder.join(name), &read(&path, LARGEST_TEXT)?)?;
            }
        }
        whole.save(folder, layout)
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;
    use itm_kernels::AdamOptions;
    use tempfile::TempDir;

    use super::*;
    use crate::contrastive::{Contrast, ContrastiveOptions, Learnt};
    use crate::encoders::hf::tests::close;
    use crate::host;
    use crate::towers::LoraConfig;
    use crate::towers::learning::tests::{opened, published, stepped, vit_and_bert};
    use crate::towers::lora::tests::{captions, every_map, moved, rows, with};

    /// The configuration of towers in another folder.
    fn in_folder(mut model: ModelConfig, folder: &Path) -> ModelConfig {
        let (ImageConfig::Clip(image), TextConfig::Clip(text)) =
            (&mut model.image, &mut model.text)
        else {
            unreachable!()
        };
        (image.weights, text.weights) =
            (folder.display().to_string(), folder.display().to_string());
        model
    }

    fn names(folder: &Path) -> Vec<String> {
        let paths = crate::files::entries(folder).unwrap();
        let name = |path: &std::path::PathBuf| path.file_name().unwrap().to_str().unwrap().into();
        let mut names: Vec<String> = paths.iter().map(name).collect();
        names.sort();
        names
    }

    /// Both families in both layouts, after a step of all parameters and with LoRA: rows, θ, β and the names of all files.
    #[test]
    fn a_written_folder_opens_with_the_rows_of_the_encoders() {
        let device = Device::flex();
        for (name, d) in [("clip", 12), ("open_clip", 12), ("siglip", 24)] {
            let config = published(name, d);
            let (texts, before) = (captions(&config), opened(&config));
            let lora = LoraConfig { rank: 3, alpha: 5, maps: every_map() };
            let learnt = stepped(before.clone(), AdamOptions::default(), None, 1.0);
            let adapted = moved(with(before.clone(), &lora, &config));
            for (mut encoders, bound) in [(learnt, 1e-7), (adapted, 1e-5)] {
                let options =
                    ContrastiveOptions { temperature: 0.05, bias: -3.0, learn: Learnt::Fixed };
                encoders.contrast = Some(Contrast::new(&options, &device));
                let own = TempDir::new().unwrap();
                encoders.save(&config, own.path()).unwrap();
                let again = in_folder(config.clone(), own.path());
                let (want, got) = (rows(&encoders, &texts), rows(&opened(&again), &texts));
                for (got, want) in got.iter().zip(&want) {
                    close(name, got, want, 1.0, bound);
                }
                assert_ne!(rows(&before, &texts), want, "{name}");

                let whole = DualEncoder::open(own.path(), &device).unwrap().0;
                close(name, &host(whole.scale.val()), &[20f32.ln()], 1.0, 1e-6);
                let beta = whole.bias.map(|bias| host(bias.val()));
                assert_eq!(beta, (name == "siglip").then(|| vec![-3.0]), "{name}");
                assert_eq!(names(own.path()), names(&config_folder(&config)), "{name}");
                for file in ["tokenizer.json", "preprocessor_config.json"] {
                    let read = |folder: &Path| fs::read(folder.join(file)).ok();
                    assert_eq!(read(own.path()), read(&config_folder(&config)), "{name}");
                }
            }
        }
    }

    fn config_folder(model: &ModelConfig) -> std::path::PathBuf {
        let ImageConfig::Clip(image) = &model.image else { unreachable!() };
        image.folder().unwrap().0
    }

    /// Without a contrastive loss, both numbers of the logits stay; by InfoNCE, β does.
    #[test]
    fn theta_and_beta_stay_as_published() {
        let (config, device, own) =
            (published("siglip", 24), Device::flex(), TempDir::new().unwrap());
        let open = |folder: &Path| DualEncoder::open(folder, &device).unwrap().0;
        let numbers = |m: DualEncoder| [host(m.scale.val()), host(m.bias.unwrap().val())];
        let saved = |contrast: Option<Contrast>| {
            Encoders { contrast, ..opened(&config) }.save(&config, own.path()).unwrap();
            numbers(open(own.path()))
        };
        let published = numbers(open(&config_folder(&config)));
        assert_eq!(saved(None), published);
        let [theta, beta] = saved(opened(&config).contrast.map(Contrast::without_bias));
        assert_eq!(beta, published[1]);
        close("θ", &theta, &[10f32.ln()], 1.0, 1e-6);
    }

    #[test]
    fn towers_of_other_folders_are_refused_and_write_nothing() {
        let own = TempDir::new().unwrap();
        let clip = published("clip", 12);
        let mixed = ModelConfig { text: published("clip_sharded", 12).text, ..clip };
        for config in [vit_and_bert(), mixed] {
            let line = opened(&config).save(&config, own.path().join("new")).unwrap_err();
            assert_eq!(
                line.to_string(),
                "towers: expected both of one published CLIP or SigLIP, got others"
            );
        }
        assert!(names(own.path()).is_empty());
    }
}
