use super::*;
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

fn optional<T: Copy + std::fmt::Debug + 'static>(
    all: &'static [T],
) -> impl Strategy<Value = Option<T>> {
    prop::option::of(prop::sample::select(all))
}

fn phrase() -> impl Strategy<Value = Phrase> {
    (optional(Kind::ALL), optional(Colour::ALL), optional(Size::ALL), optional(Pattern::ALL))
        .prop_map(|(kind, colour, size, pattern)| Phrase { kind, colour, size, pattern })
}

/// Any meaning that the grammar can say.
pub(crate) fn meaning() -> impl Strategy<Value = Meaning> {
    let relation = prop::sample::select(Relation::ALL);
    let claim = prop_oneof![
        Just(Claim::Place),
        prop::collection::vec(phrase(), 1..=3).prop_map(Claim::Exist),
        (phrase(), relation, phrase()).prop_map(|(a, r, b)| Claim::Related(a, r, b)),
        (2..=4u8, phrase()).prop_map(|(n, p)| Claim::Count(n, p)),
    ];
    (claim, optional(Background::ALL))
        .prop_map(|(claim, place)| Meaning { claim, place })
        .prop_filter("something is said", Meaning::is_sayable)
}

#[test]
fn sentences_read_as_people_write() {
    let (red, kind) = (Some(Colour::Red), Some(Kind::Hat));
    let hat = Phrase { kind, colour: red, size: Some(Size::Small), ..Phrase::default() };
    let one = |place| Meaning { claim: Claim::Exist(vec![hat]), place };
    let mut seen = std::collections::HashSet::new();
    for seed in 0..400 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        seen.insert(Form::Bare.render(&one(None), &mut rng));
        seen.insert(Form::Predicate.render(&one(Some(Background::Sand)), &mut rng));
        let orange = Phrase { colour: Some(Colour::Orange), ..Phrase::default() };
        let related = Claim::Related(orange, Relation::Below, hat);
        let meaning = Meaning { claim: related, place: Some(Background::Night) };
        seen.insert(Form::RelationFirst.render(&meaning, &mut rng));
        let pair = Meaning { claim: Claim::Count(2, orange), place: None };
        seen.insert(Form::PairOf.render(&pair, &mut rng));
    }
    for text in [
        "A tiny red hat.",
        "A little scarlet hat.",
        "The red hat on a beach is small.",
        "The hat at the beach is red and tiny.",
        "Under a small red hat there is an orange thing at night.",
        "A pair of orange objects.",
    ] {
        assert!(seen.contains(text), "{text}");
    }
}

#[test]
#[should_panic(expected = "no sentence says")]
fn an_empty_claim_is_refused() {
    let nothing = Meaning { claim: Claim::Exist(vec![]), place: None };
    render(&nothing, &mut ChaCha8Rng::seed_from_u64(0));
}
