use super::*;
use crate::testing::{Colours, World};

fn options(top: usize) -> Options {
    Options { top, corrected: false, threshold: None, filter: Filter::default() }
}

fn paths(searcher: &Searcher, query: &str, options: &Options) -> Vec<String> {
    let query = Query::parse(query, searcher.index()).unwrap();
    let answer = searcher.search(&query, options).unwrap();
    answer.hits.iter().map(|hit| searcher.index().pictures()[hit.picture].path.clone()).collect()
}

#[test]
fn a_sentence_finds_its_picture() {
    let world = World::new();
    world.update(&Colours::default()).unwrap();
    let searcher = world.searcher();
    assert_eq!(paths(&searcher, "a red car", &options(1)), ["a/red.jpg"]);
    assert_eq!(paths(&searcher, "blue", &options(1)), ["a/blue.jpg"]);
}
