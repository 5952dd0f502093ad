//! The rows: each is timed work and its floor. `tests/reference/performance.py` has the same sizes and names.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use itm_core::encoders::{BagOfWords, Bert, BertShape, InputDropout, TokenBatch, Vit, VitShape};
use itm_kernels::bf16;
use itm_kernels::{
    Activation, AdamOptions, AdamW, BiGru, Dropout, LayerNorm, Matrix, Noise, Precision, ema,
    linear, normalize_rows, uniform,
};

use crate::products::{self, Product};
use crate::traffic::Traffic;

type Step = Box<dyn FnMut()>;

pub(crate) struct Row {
    pub(crate) name: String,
    /// Builds everything and returns one step.
    pub(crate) ours: Box<dyn Fn() -> Step>,
    /// The same step with bf16 operands, where the row has products that support them.
    pub(crate) bf16: Option<Box<dyn Fn() -> Step>>,
    pub(crate) floor: Floor,
}

/// The work that a row cannot avoid.
pub(crate) enum Floor {
    Products(Vec<Product>),
    Traffic(Traffic),
}

impl Floor {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Products(_) => "products",
            Self::Traffic(_) => "traffic",
        }
    }

    pub(crate) fn step(&self) -> Step {
        match self {
            Self::Products(all) => products::step(all),
            Self::Traffic(traffic) => traffic.step(),
        }
    }
}

/// Whether a step ends with the optimiser.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Update {
    No,
    Adam,
}

/// Rows of the sequences in a batch of 4 images of 224 px, and in a batch of 8 captions of 32 words.
const ROWS_224: usize = 4 * 197;
const ROWS_BERT: usize = 8 * 32;
const WIDTH: usize = 768;
const WORDS: usize = 30_522;
/// Vocabulary and width of a bag of words, as on Flickr8k.
const TERMS: usize = 3268;
const BAG_WIDTH: usize = 256;
/// Largest norm of all gradients, as in FNE.
const CLIP: f64 = 2.0;
const VIT_PARAMETERS: usize = 85_798_656; // of ViT-B/16 without a head

pub(crate) fn rows() -> Vec<Row> {
    let mut all = Vec::new();
    for (size, batch) in [(224, 4), (384, 1)] {
        let n = (size / 16usize).pow(2);
        let mut floor = products::transformer(batch, n + 1);
        let [output, _, weights] = products::linear(batch * n, WIDTH, WIDTH); // pixels get no gradient
        floor.extend([output, weights]);
        let name = format!("vit-{size}");
        all.push(row_of_two(&name, floor.clone(), move |p| vit(size, batch, Update::No, p)));
        all.push(row_of_two(&(name + "-adam"), floor, move |p| vit(size, batch, Update::Adam, p)));
    }
    let floor = products::transformer(8, 32);
    all.push(row_of_two("bert", floor.clone(), |p| bert(Update::No, p)));
    all.push(row_of_two("bert-adam", floor, |p| bert(Update::Adam, p)));
    let lengths: [Vec<usize>; 2] = [vec![20; 64], (0..64).map(|b| 5 + 7 * b % 16).collect()];
    for (name, lengths) in ["bigru", "bigru-lengths"].into_iter().zip(lengths) {
        all.push(row(name, products::bigru(&lengths, 300, 1024), move || bigru(lengths.clone())));
    }
    // Forward and backward must write a gradient of all rows. The update reads the gradient for the norm, then reads p,
    // g, m, v and writes p, m, v.
    for (name, passes, update) in [("bag", 1, Update::No), ("bag-adam", 9, Update::Adam)] {
        let floor = Floor::Traffic(Traffic { values: TERMS * BAG_WIDTH, passes });
        let ours = Box::new(move || bag(update));
        all.push(Row { name: name.to_owned(), ours, bf16: None, floor });
    }
    all.extend(operations());
    for (rows, i, o, forms) in [
        (ROWS_224, WIDTH, 4 * WIDTH, &["forward", "dx", "dw"][..]),
        (ROWS_224, 4 * WIDTH, WIDTH, &["forward"]),
        (ROWS_BERT, WIDTH, 4 * WIDTH, &["forward", "dx", "dw"]),
        (1024, 1024, 1024, &["forward"]),
    ] {
        for (form, product) in forms.iter().zip(products::linear(rows, i, o)) {
            let name = format!("product-{rows}x{i}x{o}-{form}");
            let step = move |precision| match precision {
                Precision::F32 => matmul(rows, i, o, form),
                Precision::Bf16 => matmul_bf16(rows, i, o, form),
            };
            all.push(row_of_two(&name, vec![product], step));
        }
    }
    all
}

fn row(name: &str, floor: Vec<Product>, ours: impl Fn() -> Step + 'static) -> Row {
    Row { name: name.to_owned(), ours: Box::new(ours), bf16: None, floor: Floor::Products(floor) }
}

fn row_of_two(
    name: &str,
    floor: Vec<Product>,
    ours: impl Fn(Precision) -> Step + Copy + 'static,
) -> Row {
    let bf16 = Some(Box::new(move || ours(Precision::Bf16)) as Box<_>);
    Row { bf16, ..row(name, floor, move || ours(Precision::F32)) }
}

/// Operations at the sizes of ViT-B/16 on 4 images of 224 px; `l2-norm` at the size of 36 regions per image, 64 images.
fn operations() -> Vec<Row> {
    let row = |name: &str, values, passes, ours: Box<dyn Fn() -> Step>| Row {
        name: name.to_owned(),
        ours,
        bf16: None,
        floor: Floor::Traffic(Traffic { values, passes }),
    };
    // Forward reads x and writes y. Backward reads x or y and the gradient of y, and writes the gradient of x.
    let (wide, narrow) = (ROWS_224 * 4 * WIDTH, ROWS_224 * WIDTH);
    vec![
        row(
            "gelu",
            wide,
            5,
            Box::new(|| operation([ROWS_224, 4 * WIDTH], |x| Activation::Gelu.of(x))),
        ),
        row(
            "layer-norm",
            narrow,
            5,
            Box::new(|| {
                let norm = LayerNorm::new(WIDTH, 1e-12, &Device::flex().autodiff());
                operation([ROWS_224, WIDTH], move |x| norm.forward(x))
            }),
        ),
        row(
            "dropout",
            wide,
            4,
            Box::new(|| {
                let (dropout, mut seed) = (Dropout::new(0.1), 0);
                operation([ROWS_224, 4 * WIDTH], move |x| {
                    seed += 1;
                    dropout.forward(x, Noise::Seeded(seed))
                })
            }),
        ),
        row("l2-norm", 64 * 36 * 1024, 5, Box::new(|| operation([64 * 36, 1024], normalize_rows))),
        // Reads p, g, m, v; writes p, m, v. Clipping reads g once more, for the norm.
        row("adam", VIT_PARAMETERS, 7, Box::new(|| adam(None))),
        row("adam-clip", VIT_PARAMETERS, 8, Box::new(|| adam(Some(CLIP)))),
        row("ema", VIT_PARAMETERS, 3, Box::new(momentum)),
    ]
}

fn operation(shape: [usize; 2], mut f: impl FnMut(Tensor<2>) -> Tensor<2> + 'static) -> Step {
    let x = uniform(shape, 1.0, 1, &Device::flex().autodiff()).require_grad();
    Box::new(move || {
        std::hint::black_box(f(x.clone()).backward());
    })
}

/// A training step of a model; the loss is the sum of the output.
fn training<M: Module + 'static, const D: usize>(
    model: M,
    update: Update,
    mut forward: impl FnMut(&M) -> Tensor<D> + 'static,
) -> Step {
    let mut optimiser = AdamW::new(AdamOptions::default());
    let mut model = Some(model);
    Box::new(move || {
        let Some(now) = model.take() else { return };
        let grads = forward(&now).sum().backward();
        model = Some(match update {
            Update::No => {
                std::hint::black_box(grads);
                now
            }
            Update::Adam => {
                let grads = GradientsParams::from_grads(grads, &now);
                optimiser.step(now, grads, 1e-6).0
            }
        });
    })
}

fn vit(size: usize, batch: usize, update: Update, precision: Precision) -> Step {
    let device = Device::flex().autodiff();
    let pixels = uniform([batch, 3, size, size], 1.0, 1, &device);
    training(vit_base(size, &device).with_precision(precision), update, move |model| {
        model.forward(pixels.clone(), Noise::Off)
    })
}

fn vit_base(size: usize, device: &Device) -> Vit {
    let shape = VitShape { image: [size, size], ..VitShape::base_16_384() };
    Vit::seeded(&shape, 1, device)
}

fn bert(update: Update, precision: Precision) -> Step {
    let device = Device::flex().autodiff();
    let pieces: Vec<Vec<u32>> = (0..ROWS_BERT as u32)
        .map(|k| 1 + k * 7919 % (WORDS as u32 - 1))
        .collect::<Vec<_>>()
        .chunks(32)
        .map(<[u32]>::to_vec)
        .collect();
    let captions = TokenBatch::new(&pieces);
    let mut seed = 0;
    let model = Bert::seeded(&BertShape::base_uncased(), 1, &device).with_precision(precision);
    training(model, update, move |model| {
        seed += 1;
        model.forward(&captions, Noise::Seeded(seed))
    })
}

fn bigru(lengths: Vec<usize>) -> Step {
    let device = Device::flex().autodiff();
    let x = uniform([64, 20, 300], 1.0, 1, &device).require_grad();
    let model = BiGru::seeded(300, 1024, 1, &device);
    Box::new(move || {
        std::hint::black_box(model.forward(x.clone(), &lengths).sum().backward());
    })
}

/// 128 captions of ten terms.
fn bag(update: Update) -> Step {
    let terms = |row: u32| (0..10).map(move |k| (row * 7919 + k * k * 331) % TERMS as u32);
    let captions: Vec<Vec<u32>> = (0..128).map(|row| terms(row).collect()).collect();
    let model = BagOfWords::new(TERMS, BAG_WIDTH, 1, &Device::flex().autodiff());
    let mut seed = 0;
    training(model, update, move |model| {
        seed += 1;
        model.encode(&captions, InputDropout { share: 0.3, noise: Noise::Seeded(seed) })
    })
}

/// The products of a linear layer, computed by the functions that the layer calls.
fn matmul(rows: usize, i: usize, o: usize, form: &'static str) -> Step {
    let [x, w, y, bias] = [rows * i, i * o, rows * o, o].map(random);
    Box::new(move || {
        std::hint::black_box(match form {
            "forward" => linear::forward(&x, &w, &bias),
            "dx" => linear::input_gradient(&y, &w, o),
            _ => linear::weight_gradient(&x, &y, o),
        });
    })
}

/// The same products with bf16 operands. The weight is packed beforehand, because a step packs it once; the other
/// operands are packed in each call.
fn matmul_bf16(rows: usize, i: usize, o: usize, form: &'static str) -> Step {
    let [x, w, y] = [rows * i, i * o, rows * o].map(random);
    let weight = Matrix::new(&w, i, o);
    let weight = bf16::RightOperand::pack(if form == "dx" { weight.t() } else { weight });
    Box::new(move || {
        let (left, right);
        let (left, right) = match form {
            "forward" => (bf16::LeftOperand::pack(Matrix::new(&x, rows, i)), &weight),
            "dx" => (bf16::LeftOperand::pack(Matrix::new(&y, rows, o)), &weight),
            _ => {
                left = bf16::LeftOperand::pack(Matrix::new(&x, rows, i).t());
                right = bf16::RightOperand::pack(Matrix::new(&y, rows, o));
                (left, &right)
            }
        };
        std::hint::black_box(bf16::product_new(None, &left, right));
    })
}

/// `n` random values; the same `n` gives the same values.
fn random(n: usize) -> Vec<f32> {
    let values = uniform([n], 1.0, n as u64, &Device::flex()).into_data();
    values.try_into_vec::<f32>().expect("32-bit values")
}

/// A gradient for every parameter, which every step registers again.
#[derive(Default)]
struct Gradients(Vec<Register>);

type Register = Box<dyn Fn(&mut GradientsParams)>;

impl ModuleVisitor for Gradients {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let (id, gradient) = (param.id, param.val().inner() * 0.5);
        self.0.push(Box::new(move |all| all.register(id, gradient.clone())));
    }
}

fn adam(clip: Option<f64>) -> Step {
    let model = vit_base(224, &Device::flex().autodiff());
    assert_eq!(model.num_params(), VIT_PARAMETERS);
    let mut gradients = Gradients::default();
    model.visit(&mut gradients);
    let mut optimiser = AdamW::new(AdamOptions { clip, ..AdamOptions::default() });
    let mut model = Some(model);
    Box::new(move || {
        let Some(now) = model.take() else { return };
        let mut all = GradientsParams::new();
        gradients.0.iter().for_each(|register| register(&mut all));
        model = Some(optimiser.step(now, all, 1e-6).0);
    })
}

fn momentum() -> Step {
    let online = vit_base(224, &Device::flex());
    let mut target = Some(vit_base(224, &Device::flex()));
    Box::new(move || {
        let Some(now) = target.take() else { return };
        target = Some(ema(now, &online, 0.995));
    })
}
