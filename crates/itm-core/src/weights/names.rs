//! Our parameters' names and theirs.

use std::collections::BTreeMap;

/// How an architecture's files name what a module of ours holds.
#[derive(Debug)]
pub(crate) struct Names {
    /// Put before every name by models that hold this one beside a head.
    pub(crate) prefix: &'static str,
    /// Parameters outside the blocks: ours, theirs.
    pub(crate) parameters: &'static [(&'static str, &'static str)],
    /// Layers outside the blocks, and the layers of block `i` after `blocks.i.`; several of theirs lie side by side in ours.
    pub(crate) layers: &'static [(&'static str, &'static [&'static str])],
    /// Starts of names that are not needed here.
    pub(crate) unused: &'static [&'static str],
}

impl Names {
    /// Their names of a parameter, `blocks.3.attention.qkv.weight` being one of ours.
    ///
    /// # Panics
    /// If there is no such parameter.
    pub(crate) fn of(&self, ours: &str) -> Vec<String> {
        if let Some((_, theirs)) = self.parameters.iter().find(|(name, _)| *name == ours) {
            return vec![theirs.to_string()];
        }
        let block = ours.strip_prefix("blocks.").and_then(|rest| rest.split_once('.'));
        let start = block.map_or(String::new(), |(i, _)| format!("encoder.layer.{i}."));
        let rest = block.map_or(ours, |(_, rest)| rest);
        let found = rest.rsplit_once('.').and_then(|(layer, leaf)| {
            let theirs = self.layers.iter().find(|(name, _)| *name == layer)?;
            Some((theirs.1, leaf))
        });
        let (layers, leaf) = found.unwrap_or_else(|| panic!("a parameter without a name: {ours}"));
        let leaf = match leaf {
            "gamma" => "weight",
            "beta" => "bias",
            leaf => leaf,
        };
        layers.iter().map(|layer| format!("{start}{layer}.{leaf}")).collect()
    }

    /// Names as today's files have them → names as this file has them: without the prefix, `weight` and `bias` for the
    /// `gamma` and `beta` of old conversions.
    ///
    /// Of two names for one tensor the one without prefix counts, the other stays under its own name.
    pub(crate) fn canonical<'a>(
        &self,
        names: impl Iterator<Item = &'a str>,
    ) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        let mut names: Vec<_> = names.collect();
        names.sort_by_key(|name| name.starts_with(self.prefix));
        for name in names {
            let short = name.strip_prefix(self.prefix).unwrap_or(name);
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

    /// Whether a canonical name belongs to a head that is not needed here.
    pub(crate) fn is_unused(&self, name: &str) -> bool {
        self.unused.iter().any(|start| name.starts_with(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: Names = Names {
        prefix: "m.",
        parameters: &[("words", "embeddings.word.weight")],
        layers: &[("norm", &["last"]), ("attention.qkv", &["q", "k"])],
        unused: &["pooler."],
    };

    #[test]
    fn a_parameter_has_their_names() {
        assert_eq!(NAMES.of("words"), ["embeddings.word.weight"]);
        assert_eq!(NAMES.of("norm.gamma"), ["last.weight"]);
        assert_eq!(
            NAMES.of("blocks.11.attention.qkv.bias"),
            ["encoder.layer.11.q.bias", "encoder.layer.11.k.bias"]
        );
    }

    #[test]
    #[should_panic(expected = "a parameter without a name: blocks.0.up.weight")]
    fn an_unknown_parameter_is_a_bug() {
        NAMES.of("blocks.0.up.weight");
    }

    #[test]
    fn prefixes_and_old_names_are_taken_off() {
        let names = ["m.a.gamma", "b.beta", "m.c", "c", "pooler.x"];
        let got: Vec<_> = NAMES.canonical(names.into_iter()).into_iter().collect();
        let want = [("a.weight", "m.a.gamma"), ("b.bias", "b.beta"), ("c", "c"), ("m.c", "m.c")];
        let want = want.into_iter().chain([("pooler.x", "pooler.x")]);
        assert_eq!(got, want.map(|(a, b)| (a.into(), b.into())).collect::<Vec<_>>());
        assert!(NAMES.is_unused("pooler.x") && !NAMES.is_unused("c"));
    }
}
