use super::*;
use crate::fakes::{Colours, World, jpeg};

fn shown(query: &Query, index: &Index) -> String {
    let term = |term: &Term| match &term.what {
        What::Words(words) => format!("{}:'{words}'", term.weight),
        What::Picture(picture) => format!("{}:#{}", term.weight, index.pictures()[*picture].path),
        What::Image(_) => format!("{}:image", term.weight),
    };
    query.terms.iter().map(term).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_query_is_read_as_a_person_means_it() {
    let world = World::new();
    world.write("b/red.jpg", &jpeg([200, 0, 0], [9, 9]));
    world.write("c - d/x + y.jpg", &jpeg([0, 0, 90], [9, 9]));
    world.write(" lead.jpg", &jpeg([0, 90, 90], [9, 9]));
    world.write("2:beach.jpg", &jpeg([90, 0, 90], [9, 9]));
    world.update(&Colours::default()).unwrap();
    let index = world.index();
    for (text, want) in [
        ("a dog in snow", "1:'a dog in snow'"),
        ("  a   dog\tin snow ", "1:'a dog in snow'"),
        ("2:beach + blue.jpg - people", "2:'beach' 1:#a/blue.jpg -1:'people'"),
        ("beach -people +0.5:a dog", "1:'beach' -1:'people' 0.5:'a dog'"),
        ("- night", "-1:'night'"),
        ("+ day", "1:'day'"),
        ("a blue t-shirt, black-and-white", "1:'a blue t-shirt, black-and-white'"),
        ("train at 10:30", "1:'train at 10:30'"),
        ("10:30 train", "1:'10:30 train'"),
        ("3: cats", "3:'cats'"),
        ("note: cats", "1:'note: cats'"),
        ("a/red.jpg", "1:#a/red.jpg"),
        ("red.jpg", "1:'red.jpg'"), // two pictures have this name
        ("blue.jpg", "1:#a/blue.jpg"),
        ("c - d/x + y.jpg", "1:#c - d/x + y.jpg"), // the whole query is a path
        (" lead.jpg", "1:# lead.jpg"),
        (" blue.jpg ", "1:#a/blue.jpg"),
        ("sea - 2:beach.jpg", "1:'sea' -1:#2:beach.jpg"),
        ("2:a/blue.jpg - 0.25:b/green.jpg", "2:#a/blue.jpg -0.25:#b/green.jpg"),
        ("C++ code", "1:'C++ code'"),
        ("éñ 日本", "1:'éñ 日本'"),
    ] {
        assert_eq!(shown(&Query::parse(text, &index).unwrap(), &index), want, "{text}");
    }
    for (text, want) in [
        ("", "query: expected words or a picture, got nothing"),
        ("  ", "query: expected words or a picture, got nothing"),
        ("a + - b", "query: expected words or a picture after each sign, got none"),
        ("a -", "query: expected words or a picture after each sign, got none"),
        ("2:", "query: expected words or a picture after each sign, got none"),
        ("0:a", "query: 0:a: expected a weight above 0 and at most 1000, got 0"),
        ("1001:a", "query: 1001:a: expected a weight above 0 and at most 1000, got 1001"),
        ("1.2.3:a", "query: 1.2.3:a: expected a weight above 0 and at most 1000, got 1.2.3"),
        (&"é".repeat(1001), "query: expected at most 1000 characters, got 1001"),
    ] {
        assert_eq!(Query::parse(text, &index).unwrap_err().to_string(), want, "{text}");
    }
    assert!(Query::parse(&"é".repeat(1000), &index).is_ok());
}
