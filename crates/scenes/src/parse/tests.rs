use super::super::grammar::{Form, render, tests::meaning};
use super::*;
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// Parsing inverts the grammar for every meaning, every form and every choice of words.
    #[test]
    fn parse_inverts_render(m in meaning(), seed in any::<u64>()) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let text = render(&m, &mut rng);
        prop_assert_eq!(parse(&text), Some(m.clone()), "{}", text);
        for form in Form::ALL.iter().copied().filter(|f| f.can_say(&m)) {
            let text = form.render(&m, &mut rng);
            prop_assert_eq!(parse(&text), Some(m.clone()), "{}", text);
        }
    }

    /// Arbitrary words give an answer and never a panic.
    #[test]
    fn any_text_has_an_answer(words in prop::collection::vec(prop::sample::select(vec![
        "a", "red", "ball", "balls", "two", "with", "stripes", "left", "of", "the", "is", "there", "and", "picture",
        "on", "grass", "pair", "that", "both", "in", "front", "taken", "scene", "next", "to", "at", "sea", "zebra",
    ]), 0..12)) {
        if let Some(parsed) = analyse(&words.join(" ")) {
            prop_assert_eq!(parsed.roles.len(), words.len());
            prop_assert!(parsed.meaning.is_sayable());
        }
    }
}

#[test]
fn not_a_sentence_has_no_meaning() {
    for text in [
        "",
        "ball",
        "A red.",
        "A red blue ball.",
        "A striped ball with dots.",
        "A ball next to.",
        "A ball on the grass on the sand.",
        "A picture taken.",
        "A zebra on the grass.",
        "Both a ball.",
        "A ball that sits above a cup.",
        "Two balls and a cup.",
    ] {
        assert_eq!(parse(text), None, "{text}");
    }
}

#[test]
fn roles_by_hand() {
    use Role::*;
    let roles = |text| analyse(text).expect("a sentence").roles;
    let (cup, fish) = (Kind(0, Some(super::Kind::Cup)), Kind(1, Some(super::Kind::Fish)));
    assert_eq!(
        roles("At night there is a cup with dots in front of a tiny fish."),
        [
            Function,
            Place,
            Function,
            Function,
            Function,
            cup,
            Function,
            Pattern(0, super::Pattern::Dotted),
            Function,
            Relation,
            Function,
            Function,
            Size(1, super::Size::Small),
            fish
        ]
    );
    // The first phrase of the claim comes last in the sentence.
    assert_eq!(
        roles("Beside a fish is a cup"),
        [Relation, Function, fish, Function, Function, cup]
    );
    assert_eq!(roles("A pair of objects"), [Function, Count, Function, Kind(0, None)]);
}
