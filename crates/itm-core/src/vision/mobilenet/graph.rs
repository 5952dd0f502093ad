//! Reads the list of operations and checks it once.

use std::collections::HashMap;

use serde::Deserialize;

use crate::{Error, Result};

/// One operation and the sources of its inputs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) op: Op,
    pub(super) inputs: Vec<NodeInput>,
    /// Channels of the result.
    pub(super) channels: usize,
    /// The last node that reads the result; the number of this node if none does.
    pub(super) last_use: usize,
    /// Pixels of the picture from one position of the result to the next; `None` after the global pool.
    stride: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeInput {
    Picture,
    Node(usize),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Op {
    Conv(Layer),
    Depthwise(Layer),
    Add,
    Mean,
}

/// A convolution.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layer {
    pub(super) name: String,
    /// `[out, in / groups, k, k]`.
    pub(super) shape: [usize; 4],
    pub(super) stride: usize,
    pub(super) activation: Activation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activation {
    Linear,
    Relu6,
}

impl Op {
    pub(super) fn layer(&self) -> Option<&Layer> {
        match self {
            Self::Conv(layer) | Self::Depthwise(layer) => Some(layer),
            Self::Add | Self::Mean => None,
        }
    }
}

/// One entry of the file.
#[derive(Deserialize)]
struct Entry {
    op: String,
    inputs: Vec<String>,
    output: String,
    weights: Option<String>,
    shape: Option<[usize; 4]>,
    stride: Option<usize>,
    relu6: Option<bool>,
}

/// Upper bounds for `[out, in / groups, k, k]`.
const LARGEST: [usize; 4] = [1 << 16, 1 << 16, 15, 15];

/// Reads the operations. Every input is the output of an earlier operation, or `input`, the picture.
pub(super) fn parse(place: &str, json: &[u8]) -> Result<Vec<Node>> {
    let entries: Vec<Entry> = serde_json::from_slice(json)
        .map_err(|e| Error::invalid(place, "a list of operations", e))?;
    let mut nodes: Vec<Node> = Vec::new();
    let mut known = HashMap::from([("input".to_owned(), NodeInput::Picture)]);
    for (i, entry) in entries.into_iter().enumerate() {
        let place = format!("{place} operation {i} ({})", entry.output);
        let refuse = |expected: &str, got: String| Err(Error::invalid(&place, expected, got));
        let count = if entry.op == "add" { 2 } else { 1 };
        if entry.inputs.len() != count {
            return refuse(&format!("{count} inputs"), entry.inputs.len().to_string());
        }
        let mut inputs = Vec::new();
        for name in &entry.inputs {
            match known.get(name) {
                Some(&source) => inputs.push(source),
                None => return refuse("an output of an earlier operation", name.clone()),
            }
        }
        let of = |source: NodeInput| match source {
            NodeInput::Picture => (3, Some(1)),
            NodeInput::Node(at) => (nodes[at].channels, nodes[at].stride),
        };
        let (channels, stride) = of(inputs[0]);
        let (op, channels, stride) = match entry.op.as_str() {
            "conv" | "dw" => {
                let layer = layer(&place, &entry)?;
                let depthwise = entry.op == "dw";
                let want = if depthwise { [channels, 1] } else { [layer.shape[0], channels] };
                if layer.shape[..2] != want {
                    let expected = format!("a shape that begins {want:?}");
                    return refuse(&expected, format!("{:?}", layer.shape));
                }
                let (out, step) = (layer.shape[0], layer.stride);
                let op = if depthwise { Op::Depthwise(layer) } else { Op::Conv(layer) };
                (op, out, stride.map(|s| s.saturating_mul(step)))
            }
            "add" if of(inputs[1]) != (channels, stride) => {
                let got = format!("{:?} and {:?}", (channels, stride), of(inputs[1]));
                return refuse("two inputs of the same width and stride", got);
            }
            "add" => (Op::Add, channels, stride),
            "mean" if stride.is_none() || inputs[0] == NodeInput::Picture => {
                return refuse("a feature map to pool", entry.inputs[0].clone());
            }
            "mean" => (Op::Mean, channels, None),
            other => return refuse("conv, dw, add or mean", other.to_owned()),
        };
        for &source in &inputs {
            if let NodeInput::Node(at) = source {
                nodes[at].last_use = i;
            }
        }
        if known.insert(entry.output.clone(), NodeInput::Node(i)).is_some() {
            return refuse("a unique name", entry.output);
        }
        nodes.push(Node { op, inputs, channels, last_use: i, stride });
    }
    if nodes.is_empty() {
        return Err(Error::invalid(place, "operations", "none"));
    }
    Ok(nodes)
}

fn layer(place: &str, entry: &Entry) -> Result<Layer> {
    let missing = |what: &str| Error::invalid(place, format!("`{what}`"), "none");
    let shape = entry.shape.ok_or_else(|| missing("shape"))?;
    let stride = entry.stride.ok_or_else(|| missing("stride"))?;
    let relu6 = entry.relu6.ok_or_else(|| missing("relu6"))?;
    let name = entry.weights.clone().ok_or_else(|| missing("weights"))?;
    let bounded = shape.iter().zip(LARGEST).all(|(&n, most)| (1..=most).contains(&n));
    if !bounded || shape[2] != shape[3] || !(1..=8).contains(&stride) {
        let expected = "a square kernel of 1 to 15 and a stride of 1 to 8";
        return Err(Error::invalid(place, expected, format!("{shape:?}, stride {stride}")));
    }
    let activation = if relu6 { Activation::Relu6 } else { Activation::Linear };
    Ok(Layer { name, shape, stride, activation })
}
