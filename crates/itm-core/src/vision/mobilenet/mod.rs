//! Inference without a framework for MobileNetV2, or for any graph of its operations.

mod graph;
mod layers;
mod product;

use std::path::Path;

use image::RgbImage;
use safetensors::SafeTensors;

use crate::data::FileBytes;
use crate::vision::resize;
use crate::{Error, Result};
use graph::{Node, NodeInput, Op};
use layers::Weights;
pub(super) use {layers::floats, product::product};

/// File names inside a folder of weights.
const WEIGHTS: &str = "mobilenet_v2_1.0_224.safetensors";
const GRAPH: &str = "mobilenet_v2_1.0_224.graph.json";

/// A convolutional network whose batch norms are folded into the weights.
///
/// ```text
/// conv   y = relu6?(W * x + b)       padding "same": total = max((⌈H/s⌉ − 1)·s + k − H, 0), the smaller half before
/// dw     as conv, but every channel has its own kernel
/// add    y = a + b
/// mean   over all positions
/// ```
///
/// The input is pixel / 127.5 − 1. One thread computes an image, and every sum has a fixed order. So results depend
/// neither on the number of threads nor on the other images.
#[derive(Debug)]
pub struct MobileNet {
    nodes: Vec<Node>,
    /// The weights of each node, if it has any.
    weights: Vec<Option<Weights>>,
    /// The last `mean`: its input is the feature map.
    pool: usize,
}

/// The last feature map, `[height · width, channels]`, row by row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FeatureMap {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Number of values per position.
    pub channels: usize,
    /// All values, position by position.
    pub values: Vec<f32>,
}

/// The result of the network for an image.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Activations {
    /// The map before the global pool: 7 × 7 × 1280.
    pub map: FeatureMap,
    /// The mean of the map over all positions: 1280 values, not normalised.
    pub pooled: Vec<f32>,
}

/// Memory that one thread reuses from image to image.
#[derive(Debug, Default)]
pub struct Scratch {
    slots: Vec<FeatureMap>,
    free: Vec<Vec<f32>>,
    patches: Vec<f32>,
}

impl MobileNet {
    /// Width and height of the pictures that the published weights were trained on.
    pub const SIZE: u32 = 224;

    /// Reads `mobilenet_v2_1.0_224.safetensors` and `mobilenet_v2_1.0_224.graph.json` of a folder.
    ///
    /// # Errors
    /// If a file is missing; as [`MobileNet::new`].
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        let (graph, weights) = (folder.as_ref().join(GRAPH), folder.as_ref().join(WEIGHTS));
        let json = FileBytes::open(&graph)?;
        let bytes = FileBytes::open(&weights)?;
        Self::new(&graph.display().to_string(), &json, &weights.display().to_string(), &bytes)
    }

    /// A network from the bytes of a graph (JSON) and its weights (safetensors). Error lines begin with the places.
    ///
    /// Weights are f16 or f32, `NAME.weight` as `[out, in / groups, k, k]` and `NAME.bias` as `[out]`.
    ///
    /// # Errors
    /// If a file is malformed, or operations, inputs, shapes or tensors do not fit each other.
    pub fn new(graph_place: &str, graph: &[u8], place: &str, weights: &[u8]) -> Result<Self> {
        let nodes = graph::parse(graph_place, graph)?;
        let tensors = SafeTensors::deserialize(weights)
            .map_err(|e| Error::invalid(place, "a safetensors file", e))?;
        let read = |node: &Node| node.op.layer().map(|l| Weights::read(place, &tensors, l));
        let weights = nodes.iter().map(|n| read(n).transpose()).collect::<Result<_>>()?;
        let pool = nodes.iter().rposition(|n| n.op == Op::Mean);
        let pool = pool.ok_or_else(|| Error::invalid(graph_place, "a global pool", "no `mean`"))?;
        Ok(Self { nodes, weights, pool })
    }

    /// Number of values of a pooled feature.
    pub fn channels(&self) -> usize {
        self.nodes[self.pool].channels
    }

    /// Feature map and pooled feature of a picture, which is resized to [`MobileNet::SIZE`] if necessary.
    pub fn features(&self, image: &RgbImage, scratch: &mut Scratch) -> Activations {
        let sized = (image.dimensions() != (Self::SIZE, Self::SIZE))
            .then(|| resize(image, Self::SIZE, Self::SIZE));
        self.activations(sized.as_ref().unwrap_or(image), scratch)
    }

    /// Feature map and pooled feature of a picture at its own size, without resizing.
    pub fn activations(&self, image: &RgbImage, scratch: &mut Scratch) -> Activations {
        self.run(image, self.pool, scratch);
        let NodeInput::Node(last) = self.nodes[self.pool].inputs[0] else {
            return Activations::default(); // `parse` refuses a pool of the picture
        };
        let map = scratch.slots[last].clone();
        Activations { map, pooled: scratch.slots[self.pool].values.clone() }
    }

    /// The output of the last operation for a picture at its own size: one score per class.
    pub fn logits(&self, image: &RgbImage, scratch: &mut Scratch) -> Vec<f32> {
        let last = self.nodes.len() - 1;
        self.run(image, last, scratch);
        scratch.slots[last].values.clone()
    }

    /// Runs all nodes up to `end`. Results that are no longer needed give their memory to later nodes.
    fn run(&self, image: &RgbImage, end: usize, scratch: &mut Scratch) {
        let Scratch { slots, free, patches } = scratch;
        slots.iter_mut().for_each(|slot| free.push(std::mem::take(slot).values));
        slots.resize_with(self.nodes.len(), FeatureMap::default);
        let mut picture = FeatureMap {
            height: image.height() as usize,
            width: image.width() as usize,
            channels: 3,
            values: free.pop().unwrap_or_default(),
        };
        picture.values.clear();
        picture.values.extend(image.as_raw().iter().map(|&v| f32::from(v) / 127.5 - 1.0));
        for (i, node) in self.nodes[..=end].iter().enumerate() {
            let mut out =
                FeatureMap { values: free.pop().unwrap_or_default(), ..FeatureMap::default() };
            let input = |k: usize| match node.inputs[k] {
                NodeInput::Picture => &picture,
                NodeInput::Node(at) => &slots[at],
            };
            match (&node.op, &self.weights[i]) {
                (Op::Conv(layer), Some(w)) => layers::conv(input(0), layer, w, patches, &mut out),
                (Op::Depthwise(layer), Some(w)) => layers::depthwise(input(0), layer, w, &mut out),
                (Op::Add, _) => layers::add(input(0), input(1), &mut out),
                _ => layers::mean(input(0), &mut out),
            }
            slots[i] = out;
            for &source in &node.inputs {
                if let NodeInput::Node(at) = source
                    && self.nodes[at].last_use == i
                    && i != self.pool
                {
                    free.push(std::mem::take(&mut slots[at]).values);
                }
            }
        }
        free.push(picture.values);
    }
}

#[cfg(test)]
mod tests;
