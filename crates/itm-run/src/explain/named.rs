//! Pairs that the command line names: an image by its name or number, a text by its words or number.

use itm_core::{Error, Result};

use crate::cli;
use crate::source::Source;
use crate::split::Split;

/// Image and text of each pair; none if the command names none.
///
/// # Errors
/// If the split has no such image or text, or if the number of texts is neither the number of images nor one.
pub(super) fn pairs(
    source: &Source,
    split: Split,
    args: &cli::Explain,
) -> Result<Vec<(usize, usize)>> {
    let part = source.part(split).0;
    let all = |option: &str, names: &[String], wanted: &[String]| -> Result<Vec<usize>> {
        wanted.iter().map(|wanted| find(option, names, wanted)).collect()
    };
    let images = all("--image", &part.images, &args.image)?;
    let texts = all("--text", &part.captions, &args.text)?;
    match (images.len(), texts.len()) {
        (n, m) if n == m => Ok(images.into_iter().zip(texts).collect()),
        (_, 1) => Ok(images.into_iter().map(|image| (image, texts[0])).collect()),
        (n, m) => {
            Err(Error::invalid("--text", format!("{n} texts, one for each --image, or one"), m))
        }
    }
}

/// Searches by name first, because a name may be a number.
fn find(option: &str, names: &[String], wanted: &str) -> Result<usize> {
    let named = names.iter().position(|name| name.trim() == wanted.trim());
    let number = || wanted.parse().ok().filter(|&n: &usize| n < names.len());
    named.or_else(number).ok_or_else(|| {
        let expected = format!("a name of the split, or a number below {}", names.len());
        Error::invalid(option, expected, format!("`{wanted}`"))
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::tests;

    fn asked(rest: &[&str]) -> Result<Vec<(usize, usize)>> {
        let source = tests::small_scenes([2, 1, 4]).1;
        let line = ["itm", "explain", "naaf", "--run", "out"];
        let cli = cli::Cli::try_parse_from([&line[..], rest].concat()).unwrap();
        let cli::Command::Explain(args) = cli.command else { panic!("explain") };
        pairs(&source, Split::Test, &args)
    }

    #[test]
    fn pairs_are_found_by_name_and_by_number() {
        let source = tests::small_scenes([2, 1, 4]).1;
        let caption = source.part(Split::Test).0.captions[9].clone();
        let first = |text: &str| source.part(Split::Test).0.captions.iter().position(|c| c == text);
        let text = first(&caption).unwrap();
        assert!(asked(&[]).unwrap().is_empty());
        assert_eq!(
            asked(&["--image", "test_000002.png", "--text", &caption]).unwrap(),
            [(2, text)]
        );
        let two = ["--image", "1", "--image", "3"];
        assert_eq!(asked(&[&two[..], &["--text", "7"]].concat()).unwrap(), [(1, 7), (3, 7)]);
        let both = asked(&[&two[..], &["--text", "7", "--text", "0"]].concat()).unwrap();
        assert_eq!(both, [(1, 7), (3, 0)]);
        for (rest, part) in [
            (
                &["--image", "4", "--text", "0"][..],
                "--image: expected a name of the split, or a number below 4, got `4`",
            ),
            (
                &["--image", "0", "--text", "A zebra."],
                "--text: expected a name of the split, or a number below 20",
            ),
            (
                &["--image", "0", "--text", "1", "--text", "2"],
                "--text: expected 1 texts, one for each --image, or one, got 2",
            ),
        ] {
            let line = asked(rest).unwrap_err().to_string();
            assert!(line.contains(part), "{line}");
        }
    }
}
