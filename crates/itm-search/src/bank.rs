//! Ordinary queries: what people type into a search of photographs.

use std::collections::HashSet;

/// Queries of the bank that comes with this crate.
const COUNT: usize = 5000;

/// 5,000 ordinary queries, all different, always the same: people, animals, things, places, actions, weather, food, vehicles and
/// events, in one word or in a sentence. A small grammar makes them; no data set was read.
///
/// ```
/// let bank = itm_search::ordinary_queries();
/// assert_eq!(bank.len(), 5000);
/// assert!(bank.iter().any(|query| query.contains("dog")));
/// ```
pub fn ordinary_queries() -> Vec<String> {
    let (mut seen, mut bank, mut draw) = (HashSet::new(), Vec::with_capacity(COUNT), Draw(1));
    while bank.len() < COUNT {
        let form = draw.of(&FORMS);
        let query = draw.fill(form);
        if seen.insert(query.clone()) {
            bank.push(query);
        }
    }
    bank
}

/// A sequence of numbers that depends on nothing.
struct Draw(u64);

impl Draw {
    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        // Knuth's MMIX generator; its high bits are its good ones.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        words[((self.0 >> 33) % words.len() as u64) as usize]
    }

    /// Puts a word for each capital letter of a form, and `an` for `a` where it belongs.
    fn fill(&mut self, form: &str) -> String {
        let mut query = String::new();
        for word in form.split(' ') {
            let list = WORDS.iter().find(|(name, _)| *name == word);
            let words = list.map_or(word, |(_, words)| self.of(words));
            if query.ends_with(" a") || query == "a" {
                query.push_str(if words.starts_with(['a', 'e', 'i', 'o', 'u']) { "n" } else { "" });
            }
            if !query.is_empty() {
                query.push(' ');
            }
            query.push_str(words);
        }
        query
    }
}

#[rustfmt::skip]
const FORMS: [&str; 44] = [
    "ANIMAL", "THING", "VEHICLE", "FOOD", "EVENT", "VIEW", "PEOPLE", "COLOUR THING", "COLOUR VEHICLE", "COLOUR CLOTHES", "LOOK ANIMAL",
    "VIEW WEATHER", "PERSON ACTION", "PEOPLE ACTION", "ANIMAL PLACE", "EVENT PLACE", "VEHICLE PLACE", "FOOD on a THING",
    "a PERSON ACTION", "a PERSON in a COLOUR CLOTHES", "a ANIMAL MOVE PLACE", "a LOOK ANIMAL MOVE", "a VEHICLE PLACE WEATHER",
    "a PERSON with a ANIMAL", "a THING and a THING", "PEOPLE ACTION PLACE", "PEOPLE at a EVENT", "a plate of FOOD", "close-up of a ANIMAL",
    "photo of a THING PLACE", "black and white photo of PEOPLE", "a PERSON ACTION PLACE WEATHER", "a PERSON in a COLOUR CLOTHES is ACTION PLACE",
    "a LOOK ANIMAL is MOVE PLACE", "two PEOPLE are ACTION next to a COLOUR VEHICLE", "a COLOUR VEHICLE is parked PLACE",
    "a PERSON and a PERSON are ACTION PLACE", "a PERSON holds a COLOUR THING", "PEOPLE are ACTION during a EVENT", "a ANIMAL and a ANIMAL MOVE PLACE",
    "a LOOK PERSON wearing a COLOUR CLOTHES looks at a THING", "a PERSON eats FOOD PLACE", "a view of VIEW WEATHER", "the THING of a PERSON PLACE",
];

/// What a word in capital letters stands for.
#[rustfmt::skip]
const WORDS: [(&str, &[&str]); 15] = [
    ("PERSON", &[
        "man", "woman", "boy", "girl", "baby", "child", "toddler", "grandmother", "grandfather", "teenager", "bride", "cyclist", "skier", "surfer",
        "runner", "dancer", "musician", "guitarist", "chef", "farmer", "worker", "police officer", "player", "climber", "tourist", "teacher", "student", "photographer",
    ]),
    ("PEOPLE", &[
        "friends", "a family", "children", "people", "men", "women", "kids", "a crowd", "students", "tourists", "a couple", "a team", "a band",
        "girls", "boys", "workers", "colleagues", "my parents",
    ]),
    ("ANIMAL", &[
        "dog", "cat", "horse", "cow", "sheep", "bird", "puppy", "kitten", "duck", "swan", "elephant", "giraffe", "zebra", "lion", "tiger", "bear",
        "monkey", "rabbit", "squirrel", "deer", "fox", "goat", "pig", "chicken", "parrot", "owl", "eagle", "fish", "dolphin", "butterfly", "bee",
        "spider", "frog", "turtle",
    ]),
    ("ACTION", &[
        "walking", "running", "jumping", "dancing", "singing", "laughing", "smiling", "sleeping", "reading a book", "playing football", "playing tennis",
        "playing the guitar", "playing chess", "playing in the water", "riding a bicycle", "riding a horse", "driving", "swimming", "surfing", "skiing",
        "snowboarding", "skateboarding", "climbing a rock", "hiking", "camping", "fishing", "cooking", "eating", "drinking coffee", "talking on the phone",
        "taking a picture", "working at a computer", "painting", "writing", "shopping", "waiting for a bus", "sitting on a bench", "standing in line",
        "holding hands", "hugging", "waving", "building a sandcastle", "throwing a ball", "opening presents",
    ]),
    ("MOVE", &[
        "running", "jumping", "sleeping", "standing", "lying", "eating", "drinking", "playing", "swimming", "sitting", "walking", "looking up", "barking",
        "hiding", "resting", "chasing a ball",
    ]),
    ("PLACE", &[
        "on the beach", "in the park", "in a field", "in the snow", "in the forest", "on a mountain", "by the river", "at the lake", "in the sea", "on the street",
        "in the city", "in a kitchen", "in a living room", "in a bedroom", "in the bathroom", "in the garden", "on the grass", "on a bridge", "at the station",
        "at the airport", "in a restaurant", "in a bar", "in a museum", "in a church", "at school", "in an office", "in a shop", "at the market", "in a stadium",
        "on a stage", "at the pool", "on a boat", "in a car", "on a train", "on a roof", "on a couch", "on a bed", "at a table", "under a tree", "in front of a house",
        "in the desert", "in a tunnel", "on a farm", "at the zoo", "in a hospital", "in the harbour", "at the playground", "on a balcony",
    ]),
    ("VIEW", &[
        "sunset over the sea", "sunrise", "mountains", "a waterfall", "a lighthouse", "city skyline", "a castle", "an old town", "a beach", "a forest path",
        "a lake", "a river", "fields", "a desert", "a volcano", "islands", "a starry sky", "the moon", "clouds", "a rainbow", "autumn leaves", "flowers", "a vineyard",
        "a snowy village", "a street with shops", "a church tower", "skyscrapers", "a harbour", "cliffs", "palm trees",
    ]),
    ("WEATHER", &[
        "at night", "in the rain", "in fog", "in winter", "in summer", "in autumn", "in spring", "at sunset", "on a sunny day", "on a cloudy day", "in a storm",
        "at dawn", "in the evening", "during snowfall", "under a blue sky", "in bright light",
    ]),
    ("THING", &[
        "table", "chair", "lamp", "clock", "mirror", "book", "newspaper", "laptop", "phone", "camera", "television", "guitar", "piano", "drum", "violin", "ball",
        "kite", "balloon", "umbrella", "suitcase", "backpack", "handbag", "hat", "pair of glasses", "watch", "ring", "shoe", "bottle", "cup", "glass of wine",
        "candle", "vase", "teddy bear", "doll", "puzzle", "christmas tree", "birthday cake", "present", "flag", "sign", "map", "ticket", "receipt", "whiteboard",
        "screenshot", "painting", "statue", "fountain", "bench", "fence", "door", "window", "staircase", "ladder", "tent", "campfire",
    ]),
    ("VEHICLE", &[
        "car", "bus", "truck", "train", "tram", "bicycle", "motorcycle", "scooter", "boat", "sailing boat", "ship", "ferry", "canoe", "airplane", "helicopter",
        "tractor", "taxi", "fire engine", "ambulance", "van", "race car", "hot air balloon",
    ]),
    ("FOOD", &[
        "pizza", "pasta", "salad", "soup", "bread", "cheese", "cake", "chocolate", "ice cream", "apples", "bananas", "strawberries", "vegetables", "rice", "sushi",
        "noodles", "a hamburger", "french fries", "steak", "fish", "eggs", "pancakes", "cookies", "a sandwich", "grapes", "oranges", "tomatoes", "tacos", "a croissant",
        "grilled meat", "dumplings", "breakfast",
    ]),
    ("EVENT", &[
        "wedding", "birthday party", "concert", "football match", "marathon", "parade", "christmas dinner", "graduation", "carnival", "festival", "protest", "picnic",
        "barbecue", "holiday", "school play", "meeting", "conference", "fireworks", "dance class", "basketball game", "baseball game", "tennis match", "bicycle race",
        "fashion show", "funeral", "family reunion",
    ]),
    ("COLOUR", &[
        "red", "blue", "green", "yellow", "orange", "pink", "purple", "black", "white", "grey", "brown", "striped", "old", "new",
    ]),
    ("CLOTHES", &[
        "shirt", "dress", "jacket", "coat", "sweater", "hat", "cap", "helmet", "scarf", "suit", "uniform", "skirt", "t-shirt", "swimsuit", "costume", "hoodie",
        "raincoat", "vest",
    ]),
    ("LOOK", &[
        "small", "big", "young", "old", "brown", "white", "black", "spotted", "fluffy", "happy", "sad", "wet", "tired", "angry",
    ]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bank_is_many_different_ordinary_sentences() {
        let bank = ordinary_queries();
        assert_eq!((bank.len(), bank.iter().collect::<HashSet<_>>().len()), (COUNT, COUNT));
        assert_eq!(bank, ordinary_queries());
        for query in &bank {
            assert!(!query.chars().any(char::is_uppercase), "{query}");
            for wrong in [" a a ", " a an ", "an an ", "  ", " a e", " an d", " a o"] {
                assert!(!format!(" {query}").contains(wrong), "{query}");
            }
        }
        let words = |query: &&String| query.split(' ').count();
        let short = bank.iter().filter(|query| words(query) <= 3).count();
        let long = bank.iter().filter(|query| words(query) >= 8).count();
        assert!(short > 800 && long > 1000, "{short} short, {long} long");
    }
}
