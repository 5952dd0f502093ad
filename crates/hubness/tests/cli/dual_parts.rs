//! Corrections by two banks from parts.

use hubness::{Direction, DualBank, HeldOutBank};
use itm_core::scored::{EmbeddingRows, Scored, Similarity};

use super::common::{Folder, WIDTH, made};
use super::parts::{SOURCE, exported, tensor};

/// Other rows: the same values from another place.
fn rolled(values: &[f32], rows: usize) -> Vec<f32> {
    [&values[5..], &values[..5]].concat()[..rows * WIDTH].to_vec()
}

/// Dual-IS: the sums over both banks, as an export with these banks has them.
#[test]
fn a_bank_of_items_is_a_part_too() {
    let folder = Folder::made();
    let (images, texts) = made();
    folder.npy("bi.npy", WIDTH, &rolled(&images, 9));
    folder.npy("bt.npy", WIDTH, &rolled(&texts, 31));
    folder.npy("oi.npy", WIDTH, &rolled(&images, 24));
    folder.npy("ot.npy", WIDTH, &rolled(&texts, 72));
    let banks = "--bank-images bi.npy --bank-texts bt.npy";
    for (direction, queries, bank, others, items) in [
        (
            "t2i",
            "--images i.npy --texts bt.npy",
            "--images i.npy --texts bi.npy",
            "--images oi.npy --texts bi.npy",
            "images",
        ),
        (
            "i2t",
            "--images bi.npy --texts t.npy",
            "--images bt.npy --texts t.npy",
            "--images bt.npy --texts ot.npy",
            "texts",
        ),
    ] {
        let fit = format!("--method dual-is --dual-beta 15 4 --direction {direction}");
        folder.run(&format!("partial {queries} {fit} --out q.part")).good();
        let of_items = format!("--method is --is-beta 4 --direction {direction}");
        folder.run(&format!("partial {bank} {of_items} --out g.part")).good();
        folder.run(&format!("partial {bank} --raw {of_items} --out raw.part")).good();
        folder.run(&format!("partial {others} {of_items} --out others.part")).good();
        let finish = format!("finish q.part {fit} --out b.safetensors");
        folder.run(&format!("{finish} --item-bank g.part")).good();
        let got: Vec<f32> =
            tensor(&folder, "b.safetensors", "bias").iter().map(|&b| -b as f32).collect();
        let want =
            exported(&folder, &format!("--method dual-is --dual-beta 15 4 {banks}"), direction);
        assert_eq!(got, want, "{direction}");
        assert!(want.iter().any(|&bias| bias != want[0]));
        for (line, want) in [
            (
                finish.clone(),
                "--item-bank: expected the sums over the bank of items, as --method is makes them, got none",
            ),
            (format!("{finish} --item-bank q.part"), "q.part: expected log Σ exp(4·s) of every "),
            (
                format!("{finish} --item-bank raw.part"),
                "raw.part: expected the same setting of --raw as in q.part, got others",
            ),
            (
                format!("{finish} --item-bank others.part"),
                &format!("others.part: expected the same {items} as in q.part, got others"),
            ),
        ] {
            let ran = folder.run(&line);
            assert!(ran.err.starts_with(&format!("error: {want}")), "{}", ran.err);
            assert_eq!((ran.code, ran.err.lines().count()), (Some(2), 1));
        }
    }
}

/// Dual-DIS: the sums over both banks, and the items that each makes active, give the scores of one process in every bit.
#[test]
fn sums_and_active_items_of_two_banks_are_one_process() {
    let (folder, (images, texts)) = (Folder::made(), made());
    let (bank_images, bank_texts) = (rolled(&images, 9), rolled(&texts, 31));
    folder.npy("bi.npy", WIDTH, &bank_images);
    folder.npy("bt.npy", WIDTH, &bank_texts);
    let scored = |images: &[f32], texts: &[f32]| {
        let [images, texts] = [images, texts].map(|rows| hubness::rows::unit(WIDTH, rows));
        EmbeddingRows { dim: WIDTH, images, texts, similarity: Similarity::Cosine }
    };
    let dual = DualBank { query_beta: 15.0, item_beta: 4.0, dynamic: true, ..DualBank::default() };
    for (direction, name, keep, lines, [queries, bank]) in [
        (
            Direction::T2i,
            "t2i",
            "top-images",
            ["--images i.npy --texts bt.npy", "--images i.npy --texts bi.npy"],
            [scored(&images, &bank_texts), scored(&images, &bank_images)],
        ),
        (
            Direction::I2t,
            "i2t",
            "top-texts",
            ["--images bi.npy --texts t.npy", "--images bt.npy --texts t.npy"],
            [scored(&bank_images, &texts), scored(&bank_texts, &texts)],
        ),
    ] {
        let fit = format!("--method dual-dis --dual-beta 15 4 --direction {name}");
        let of_items = format!("--method is --is-beta 4 --direction {name}");
        for (source, fit, out) in [(lines[0], &fit, "q"), (lines[1], &of_items, "g")] {
            folder.run(&format!("partial {source} {fit} --out {out}.part")).good();
            let best = format!("--keep {keep} --top 1 --out {out}-best.part");
            folder.run(&format!("partial {source} {best}")).good();
        }
        let raw = format!("{} --raw --keep {keep} --top 1", lines[0]);
        folder.run(&format!("partial {raw} --out raw.part")).good();
        let finish = format!("finish q.part {fit} --out d.safetensors");
        let banks = "--best q-best.part --item-bank g.part --item-best g-best.part";
        folder.run(&format!("{finish} {banks}")).good();
        let [sums, active, item_sums, item_active] =
            ["log_sum", "active", "item_log_sum", "item_active"]
                .map(|name| tensor(&folder, "d.safetensors", name));
        let test = scored(&images, &texts);
        let one = dual.fit(&HeldOutBank(&queries), &bank, &test, direction).unwrap();
        let scores = test.matrix().unwrap();
        let scores = if direction == Direction::I2t { scores } else { scores.transpose() };
        let mut groups = std::collections::BTreeSet::new();
        for query in 0..scores.images() {
            let row = scores.row(query);
            let best = scores.ranking(query)[0];
            groups.insert([active[best], item_active[best]].map(|on| on as u8));
            let got = row.iter().enumerate().map(|(item, &score)| {
                let bias = active[best] * sums[item] + item_active[best] * item_sums[item];
                19.0 * f64::from(score) - bias
            });
            assert_eq!(got.collect::<Vec<_>>(), one.of_query(row).unwrap(), "{name}, {query}");
        }
        assert!(groups.len() > 2, "{groups:?}");
        let exported = folder
            .run(&format!("export {SOURCE} --direction {name} --biases d.safetensors --out y"));
        let want = "error: d.safetensors: expected a tensor `bias` (csls, nnn, is, dual-is), \
                    got active, item_active, item_log_sum, log_sum\n";
        assert_eq!((exported.code, &*exported.err), (Some(2), want));
        for (line, want) in [
            (
                format!("{finish} --item-bank g.part --item-best g-best.part"),
                "--best: expected the merged lists of the best items of each query, got none",
            ),
            (
                format!("{finish} --best q-best.part --item-best g-best.part"),
                "--item-bank: expected the sums over the bank of items, as --method is makes them, got none",
            ),
            (
                format!("{finish} --best q-best.part --item-bank g.part"),
                "--item-best: expected the merged lists of the best item of each item of the bank, got none",
            ),
            (
                format!("{finish} --best raw.part --item-bank g.part --item-best g-best.part"),
                "raw.part: expected the same setting of --raw as in q.part, got others",
            ),
            (
                format!("{finish} --best q-best.part --item-bank g.part --item-best raw.part"),
                "raw.part: expected the same setting of --raw as in q.part, got others",
            ),
            (
                format!("finish g.part {of_items} --item-best g-best.part --out d.safetensors"),
                "--item-best: expected --method dual-dis, got another",
            ),
        ] {
            let ran = folder.run(&line);
            assert_eq!((ran.code, ran.err), (Some(2), format!("error: {want}\n")), "{line}");
        }
    }
}
