use std::cell::RefCell;

use burn::module::Param;
use burn::optim::GradientsParams;
use itm_core::contrastive::{ContrastiveOptions, Learnt, Temperature};
use itm_core::towers::{ImageEncoder, TextEncoder};

use super::*;
use crate::config::Loss;

const ALL: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

/// Four steps of eight pairs, in parts of `micro_batch` pairs: losses, norms of the gradients, weights.
fn trained(config: &FneConfig, micro_batch: usize) -> (Vec<f64>, Vec<f32>) {
    let mut config = config.clone();
    config.train.micro_batch = micro_batch;
    let mut fne = fne(&config);
    let reports: Vec<StepReport> = (0..4)
        .map(|s| {
            begin(&mut fne, s as usize);
            step(&mut fne, &ALL, 50 + s).unwrap()
        })
        .collect();
    let numbers = reports.iter().flat_map(|r| [r.loss, r.grad_norm, r.active]).collect();
    (numbers, values(fne.online()))
}

/// The loss compares all pairs with each other and with the bank, and its gradient is the gradient of the whole batch. This holds
/// in the warm-up, with the bank, and with the batch as the pool, for parts that divide the batch and parts that do not.
#[test]
fn a_batch_in_parts_is_the_large_batch() {
    for (preset, bank) in [(Preset::Default, 12), (Preset::Paper, 12), (Preset::Default, 0)] {
        let mut config = tiny(preset);
        config.sampler.bank_size = bank;
        config.sampler.warmup_epochs = 1;
        let (want, weights) = trained(&config, 8);
        assert!(want[0] > 0.0);
        for micro_batch in [4, 3, 1] {
            let (got, by_parts) = trained(&config, micro_batch);
            for (got, want) in got.iter().zip(&want) {
                assert!((got - want).abs() < 1e-5 * want.abs().max(1.0), "{got} and {want}");
            }
            let off = far(&by_parts, &weights);
            assert!(off < 1e-4, "{preset:?}, bank {bank}, parts of {micro_batch}: {off:e}");
        }
        assert!(far(&weights, &values(fne(&config).online())) > 1e-3, "nothing was learnt");
    }
}

/// A device of burn's that computes activations again trains the same, in the warm-up, with the bank and with a contrastive loss.
#[test]
fn gradient_checkpointing_of_burn_changes_no_number() {
    for loss in [Loss::Triplet, Loss::InfoNce] {
        let mut config = tiny(Preset::Default);
        config.train.loss = loss;
        let options = ContrastiveOptions { temperature: 0.1, bias: 0.0, learn: Learnt::Learned };
        config.train.contrastive = (loss == Loss::InfoNce).then_some(options);
        config.sampler.warmup_epochs = 1;
        for micro_batch in [8, 3] {
            config.train.micro_batch = micro_batch;
            let losses = |device: &Device| {
                let mut fne = Fne::new(&config, DIM, 12, device).unwrap();
                [0, 1, 2].map(|epoch| {
                    begin(&mut fne, epoch);
                    step(&mut fne, &ALL, 50).unwrap().loss
                })
            };
            let device = Device::flex().autodiff();
            let plain = losses(&device);
            assert_eq!(losses(&device.gradient_checkpointing()), plain, "{loss:?}, {micro_batch}");
        }
    }
}

#[test]
#[should_panic(expected = "7 captions of 8 images")]
fn captions_of_other_images_are_refused() {
    let (data, online) = (data(), fne(&tiny(Preset::Default)).online().clone());
    let config = tiny(Preset::Default).model;
    let images = config.image.prepared(Images::Features(&data.features), 8);
    StepInputs::new(&images, &data.texts[..7], 3, (&online.text, &config.text));
}

/// With dropout the second pass drops the same values as the first, so the gradient is the gradient of one graph over all parts.
#[test]
fn the_second_pass_has_the_noise_of_the_first() {
    let (data, online) = (data(), fne(&tiny(Preset::Default)).online().clone());
    let config = tiny(Preset::Default).model;
    let images = config.image.prepared(Images::Features(&data.features), 8);
    let parts = StepInputs::new(&images, &data.texts, 3, (&online.text, &config.text));
    let noise = |seed| encoder(TowerDropout { share: 0.5, words: 0.0, noise: Noise::Seeded(seed) });
    let loss =
        |v: &Tensor<2>, w: &Tensor<2>| v.clone().matmul(w.clone().transpose()).powi_scalar(3).sum();
    let flat = |grads: &GradientsParams| {
        let (ImageEncoder::Features(image), TextEncoder::Gru(text)) = (&online.image, &online.text)
        else {
            panic!("{online:?}");
        };
        let word = host(grads.get::<2>(text.words.id).unwrap());
        let gate = host(grads.get::<2>(text.gru.w_hh.id).unwrap());
        [word, gate, host(grads.get::<2>(image.linear.weight.id).unwrap())].concat()
    };

    let embedded = parts.embed(&online, &noise(9));
    let value = loss(&embedded.images, &embedded.texts);
    let got = flat(&parts.gradients(&online, embedded, value, &noise(9)));

    let [images, texts] = parts.joined(&online, &noise(9));
    assert_eq!(host(images.clone()), host(parts.embed(&online, &noise(9)).images));
    let grads = loss(&images, &texts).backward();
    let want = flat(&GradientsParams::from_grads(grads, &online));
    let largest = want.iter().fold(0.0f32, |m, x| m.max(x.abs()));
    assert!(largest > 0.1 && far(&got, &want) < 1e-5 * largest, "{}", far(&got, &want));

    let embedded = parts.embed(&online, &noise(9));
    let value = loss(&embedded.images, &embedded.texts);
    let other = flat(&parts.gradients(&online, embedded, value, &noise(10)));
    assert!(far(&other, &want) > 1e-3 * largest, "another seed drops other values");
}

/// Part k is on device k mod n, in both passes, and the gradients have the bits of one device: they are added in the order of the parts.
#[test]
fn devices_take_the_parts_in_turns() {
    let (data, online) = (data(), fne(&tiny(Preset::Default)).online().clone());
    let config = tiny(Preset::Default).model;
    let images = config.image.prepared(Images::Features(&data.features), 8);
    let loss =
        |v: &Tensor<2>, w: &Tensor<2>| v.clone().matmul(w.clone().transpose()).powi_scalar(3).sum();
    let on = |devices: usize| {
        let replicas = vec![Device::flex(); devices - 1];
        let parts = StepInputs::new(&images, &data.texts, 1, (&online.text, &config.text))
            .with_replicas(&replicas);
        let seen = RefCell::new(vec![]);
        let encode = |model: &Encoders, images: Images<'_>, captions: &CaptionInput, part: u64| {
            seen.borrow_mut().push((part, std::ptr::from_ref(model)));
            encoder(TowerDropout::OFF)(model, images, captions, part)
        };
        let embedded = parts.embed(&online, &encode);
        let value = loss(&embedded.images, &embedded.texts);
        let grads = parts.gradients(&online, embedded, value, &encode);
        let TextEncoder::Gru(text) = &online.text else { panic!("{online:?}") };
        let grad = host(grads.get::<2>(text.gru.w_hh.id).unwrap());
        (grad, seen.into_inner())
    };
    let (want, _) = on(1);
    assert!(want.iter().any(|x| x.abs() > 1e-3));
    for devices in [2, 3, 8, 11] {
        let (grad, seen) = on(devices);
        assert_eq!(grad, want, "{devices} devices");
        assert_eq!(seen.len(), 16);
        for pass in seen.chunks(8) {
            for (at, &(part, model)) in pass.iter().enumerate() {
                assert_eq!(part, at as u64);
                let first = pass.iter().position(|&(_, other)| other == model);
                assert_eq!(first, Some(at % devices), "part {part} of {devices} devices");
            }
        }
    }
}

/// A step sets 1/τ back to 100.
#[test]
fn a_step_bounds_the_temperature() {
    let mut config = tiny(Preset::Default);
    config.train.loss = Loss::InfoNce;
    let (temperature, learn) = (0.1, Learnt::Learned);
    config.train.contrastive = Some(ContrastiveOptions { temperature, bias: 0.0, learn });
    let mut fne = fne(&config);
    let mut online = fne.online().clone();
    let beyond = Tensor::from_floats([5.0], &Device::flex().autodiff());
    online.contrast.as_mut().unwrap().temperature =
        Temperature::Learned(Param::from_tensor(beyond));
    fne.learner = learner(online, &config);
    step(&mut fne, &EVEN, 1).unwrap();
    let tau = fne.online().contrast.as_ref().unwrap().temperature.value();
    assert!((tau - 0.01).abs() < 1e-7, "{tau}"); // exp(−5) is 0.0067
}

/// The temperature is no part of the encoders' passes, and it learns as in one part.
#[test]
fn a_temperature_learns_in_parts() {
    let after = |micro_batch| {
        let mut config = tiny(Preset::Default);
        (config.train.micro_batch, config.train.loss) = (micro_batch, Loss::InfoNce);
        let learn = Learnt::Learned;
        let options = ContrastiveOptions { temperature: 0.1, bias: 0.0, learn };
        config.train.contrastive = Some(options);
        let mut fne = fne(&config);
        step(&mut fne, &EVEN, 1).unwrap();
        fne.online().contrast.as_ref().unwrap().temperature.value()
    };
    let (whole, parts) = (after(4), after(2));
    assert!((whole - parts).abs() < 1e-6, "{whole}, {parts}");
    assert!((whole - 0.1).abs() > 1e-5, "{whole} has not moved");
}
