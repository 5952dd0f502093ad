//! Maps the names of our parameters to the names in published files.

use std::collections::BTreeMap;

/// The names in an architecture's files for the parameters of our module. "Ours" is a name in our module, "theirs" a
/// name in a file.
#[derive(Debug, Clone, Copy)]
pub struct TensorNames {
    /// Prefixes that a tensor name may have; names of heads have none. A saved file gets the first prefix, which may be
    /// empty.
    pub prefixes: &'static [&'static str],
    /// Parameters outside the blocks: ours, theirs.
    pub parameters: &'static [(&'static str, &'static str)],
    /// More of them, where models of one family have other names.
    pub more: &'static [(&'static str, &'static str)],
    /// Layers outside the blocks, and the layers of a block (without [`blocks`](Self::blocks) and the number). If
    /// theirs are several, ours holds them side by side. A name of theirs that ends in `_` is joined to `weight` or `bias`
    /// without a dot.
    pub layers: &'static [(&'static str, &'static [&'static str])],
    /// Layers outside the prefixed model: their names have no prefix.
    pub heads: &'static [(&'static str, &'static str)],
    /// The text before the number of a block: ours, theirs.
    pub blocks: &'static [(&'static str, &'static str)],
    /// Parameters outside the layers that a file stores as `[out, in]`; the matrices of layers are all stored so.
    pub transposed: &'static [&'static str],
    /// Starts of names that are not needed here.
    pub unused: &'static [&'static str],
    /// Starts of names that a file may lack: the module then keeps its values.
    pub optional: &'static [&'static str],
    /// What happens to unknown names.
    pub unknown: Unknown,
    /// What needs the tensors, for error messages: `its config.json`.
    pub asked_by: &'static str,
}

/// What happens to unknown tensors of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// The report names them.
    Reported,
    /// They are an error in a block that the module has, because they change what the block does; the report names others.
    RefusedInBlocks,
    /// They are an error.
    Refused,
}

impl TensorNames {
    /// The names in a file, without prefix, of one of our parameters, such as `blocks.3.attention.qkv.weight`.
    ///
    /// # Panics
    /// If there is no such parameter.
    pub(crate) fn of(&self, ours: &str) -> Vec<String> {
        let mut parameters = self.parameters.iter().chain(self.more);
        if let Some((_, theirs)) = parameters.find(|(name, _)| *name == ours) {
            return vec![theirs.to_string()];
        }
        let block = self.blocks.iter().find_map(|(own, theirs)| {
            let (number, rest) = ours.strip_prefix(own)?.split_once('.')?;
            Some((format!("{theirs}{number}."), rest))
        });
        let (start, rest) = block.unwrap_or((String::new(), ours));
        let found = rest.rsplit_once('.').and_then(|(layer, leaf)| {
            let head = self.heads.iter().find(|(name, _)| *name == layer);
            let head = head.map(|(_, theirs)| std::slice::from_ref(theirs));
            let inner = self.layers.iter().find(|(name, _)| *name == layer);
            Some((head.or(inner.map(|(_, theirs)| *theirs))?, leaf))
        });
        let (layers, leaf) = found.unwrap_or_else(|| panic!("a parameter without a name: {ours}"));
        let leaf = match leaf {
            "gamma" => "weight",
            "beta" => "bias",
            leaf => leaf,
        };
        let dot = |layer: &str| if layer.ends_with('_') { "" } else { "." };
        layers.iter().map(|layer| format!("{start}{layer}{}{leaf}", dot(layer))).collect()
    }

    /// Whether a file stores one of our matrices as `[out, in]`: linear maps, but no embedding tables.
    pub(crate) fn is_transposed(&self, ours: &str) -> bool {
        ours.ends_with(".weight") || self.transposed.contains(&ours)
    }

    /// A name from [`of`](Self::of) as a saved file has it, with its prefix.
    pub(crate) fn written(&self, name: String) -> String {
        let mut heads = self.heads.iter().map(|(_, theirs)| *theirs);
        if heads.any(|head| name.strip_prefix(head).is_some_and(|rest| rest.starts_with('.'))) {
            return name;
        }
        format!("{}{name}", self.prefixes.first().unwrap_or(&""))
    }

    /// A map from canonical names to the names of this file. A canonical name has no prefix, and `weight` and `bias`
    /// instead of the `gamma` and `beta` of old conversions.
    ///
    /// If two names become the same canonical name, the name without prefix counts, else the name with the earlier
    /// prefix. The other name stays as it is.
    pub(crate) fn canonical<'a>(
        &self,
        names: impl Iterator<Item = &'a str>,
    ) -> BTreeMap<String, String> {
        let prefix = |name: &str| {
            let found = self.prefixes.iter().position(|p| !p.is_empty() && name.starts_with(p));
            found.map(|k| (k, self.prefixes[k].len()))
        };
        let mut found = BTreeMap::new();
        let mut names: Vec<_> = names.collect();
        names.sort_by_key(|name| prefix(name));
        for name in names {
            let short = &name[prefix(name).map_or(0, |(_, length)| length)..];
            let short = match short.rsplit_once('.') {
                Some((layer, "gamma")) => format!("{layer}.weight"),
                Some((layer, "beta")) => format!("{layer}.bias"),
                _ => short.to_string(),
            };
            let key = if found.contains_key(&short) { name.to_string() } else { short };
            found.insert(key, name.to_string());
        }
        found
    }

    /// The start of a canonical name in a block: `encoder.layer.3.`.
    pub(crate) fn block<'a>(&self, name: &'a str) -> Option<&'a str> {
        let start = self.blocks.iter().find(|(_, theirs)| name.starts_with(theirs))?.1.len();
        Some(&name[..start + name[start..].find('.')? + 1])
    }

    /// Whether a canonical name belongs to a head that is not needed here.
    pub(crate) fn is_unused(&self, name: &str) -> bool {
        self.unused.iter().any(|start| name.starts_with(start))
    }

    /// Whether a file may lack a canonical name.
    pub(crate) fn is_optional(&self, name: &str) -> bool {
        self.optional.iter().any(|start| name.starts_with(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: TensorNames = TensorNames {
        prefixes: &["", "m.", "old."],
        parameters: &[("words", "embeddings.word.weight")],
        more: &[],
        layers: &[("norm", &["last"]), ("attention.qkv", &["q", "k"]), ("packed", &["in_proj_"])],
        heads: &[("match", "itm_output")],
        blocks: &[("blocks.", "encoder.layer."), ("other.", "resblocks.")],
        transposed: &["proj"],
        unused: &["pooler."],
        optional: &["itm_output."],
        unknown: Unknown::Refused,
        asked_by: "the test",
    };

    #[test]
    fn a_parameter_has_their_names() {
        assert_eq!(NAMES.of("words"), ["embeddings.word.weight"]);
        assert_eq!(NAMES.of("norm.gamma"), ["last.weight"]);
        assert_eq!(
            NAMES.of("blocks.11.attention.qkv.bias"),
            ["encoder.layer.11.q.bias", "encoder.layer.11.k.bias"]
        );
        assert_eq!(NAMES.of("other.2.packed.weight"), ["resblocks.2.in_proj_weight"]);
        let blocks = ["resblocks.11.ls_1.weight", "pooler.0.x"].map(|name| NAMES.block(name));
        assert_eq!(blocks, [Some("resblocks.11."), None]);
        let transposed = ["packed.weight", "proj", "words"].map(|ours| NAMES.is_transposed(ours));
        assert_eq!(transposed, [true, true, false]);
    }

    #[test]
    fn a_head_has_no_prefix() {
        assert_eq!(NAMES.of("match.weight"), ["itm_output.weight"]);
        let prefixed = TensorNames { prefixes: &["m.", ""], ..NAMES };
        let written = |ours: &str| prefixed.of(ours).into_iter().map(|name| prefixed.written(name));
        assert!(written("match.bias").eq(["itm_output.bias"]));
        assert!(
            written("blocks.0.attention.qkv.bias")
                .eq(["m.encoder.layer.0.q.bias", "m.encoder.layer.0.k.bias"])
        );
        assert!(NAMES.is_optional("itm_output.bias") && !NAMES.is_optional("last.bias"));
    }

    #[test]
    #[should_panic(expected = "a parameter without a name: blocks.0.up.weight")]
    fn an_unknown_parameter_is_a_bug() {
        NAMES.of("blocks.0.up.weight");
    }

    #[test]
    fn prefixes_and_old_names_are_taken_off() {
        let names = ["m.a.gamma", "b.beta", "m.c", "c", "pooler.x", "old.d", "old.c"];
        let got: Vec<_> = NAMES.canonical(names.into_iter()).into_iter().collect();
        let want = [("a.weight", "m.a.gamma"), ("b.bias", "b.beta"), ("c", "c"), ("d", "old.d")];
        let want = want.into_iter().chain([("m.c", "m.c"), ("old.c", "old.c")]);
        let want = want.chain([("pooler.x", "pooler.x")]);
        assert_eq!(got, want.map(|(a, b)| (a.into(), b.into())).collect::<Vec<_>>());
        assert!(NAMES.is_unused("pooler.x") && !NAMES.is_unused("c"));
    }
}
