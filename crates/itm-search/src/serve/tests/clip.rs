//! What clip-retrieval's clients send, and read.

use serde_json::{Value, json};

use super::*;

fn knn(site: &Site, request: &Value) -> (u16, Value) {
    let reply = site.request("POST", "/knn-service", &[], request.to_string().as_bytes());
    (reply.status, serde_json::from_slice(&reply.body).unwrap())
}

/// The fields of its Python client, which names no content type; it reads the body of every answer as JSON.
#[test]
fn the_python_client_is_answered() {
    let site = Site::new();
    let mut request = json!({
        "text": "red", "image": null, "image_url": null, "embedding_input": null, "deduplicate": true, "use_safety_model": true,
        "use_violence_detector": true, "indice_name": "laion5B", "use_mclip": false, "aesthetic_score": 9, "aesthetic_weight": 0.5,
        "modality": "image", "num_images": 2, "num_result_ids": 4,
    });
    let (status, found) = knn(&site, &request);
    assert_eq!((status, found.as_array().unwrap().len()), (200, 4));
    assert_eq!(
        (&found[0]["id"], &found[0]["caption"]),
        (&json!(site.number("a/red.jpg")), &json!("a/red.jpg"))
    );
    let preview = site.json(&format!("/api/v1/pictures/{}", found[0]["id"]))["preview"].clone();
    let url = format!("http://{}{}", site.address, preview.as_str().unwrap());
    assert_eq!(found[0]["url"], url);
    assert!(found[1]["image"].as_str().unwrap().starts_with("/9j/"), "Base64 of a JPEG");
    assert_eq!(found[2].as_object().unwrap().keys().collect::<Vec<_>>(), ["id", "similarity"]);
    request["num_result_ids"] = json!(2);
    assert_eq!(knn(&site, &request).1.as_array().unwrap().len(), 2);
    assert_eq!(site.json("/indices-list"), json!(["itm"]));
}

/// `similarity` is the score of the interface, corrected or not.
#[test]
fn similarities_are_the_scores_of_the_interface() {
    let site = Site::new();
    for corrected in [true, false] {
        let (_, found) =
            knn(&site, &json!({ "text": "green", "num_images": 6, "corrected": corrected }));
        let answer = site.json(&format!("/api/v1/search?q=green&top=6&corrected={corrected}"));
        let of = |list: &Value, id: &str, score: &str| -> Vec<(Value, Value)> {
            list.as_array()
                .unwrap()
                .iter()
                .map(|hit| (hit[id].clone(), hit[score].clone()))
                .collect()
        };
        assert_eq!(of(&found, "id", "similarity"), of(&answer["hits"], "picture", "score"));
    }
}

#[test]
fn equal_files_are_shown_once() {
    let world = World::new();
    world.write("c/again.jpg", &crate::fakes::jpeg([220, 30, 30], [40, 30]));
    let site = Site::with(world, Box::new(Colours::default()), Limits::default(), None);
    let count = |deduplicate: bool| {
        let (_, found) =
            knn(&site, &json!({ "text": "red", "num_images": 7, "deduplicate": deduplicate }));
        found.as_array().unwrap().len()
    };
    assert_eq!((count(false), count(true)), (7, 6));
}

#[test]
fn what_cannot_be_answered_is_one_line() {
    let site = Site::new();
    for (request, line) in [
        (json!({}), "the body: expected one of text and image, got none or both"),
        (
            json!({ "text": "a", "image": "YQ==" }),
            "the body: expected one of text and image, got none or both",
        ),
        (json!({ "text": "a", "modality": "text" }), "modality: expected image, got text"),
        (
            json!({ "image_url": "http://evil.example/x.jpg" }),
            "image_url: expected nothing: this server fetches nothing, got an address",
        ),
        (
            json!({ "embedding_input": [0.5] }),
            "embedding_input: expected text or image, got an embedding",
        ),
    ] {
        assert_eq!(knn(&site, &request), (400, json!({ "error": line })));
    }
    assert_eq!(knn(&site, &json!({ "image": "%" })).0, 400);
    assert_eq!(knn(&site, &json!([1])).0, 400);
    assert_eq!(
        knn(&site, &json!({ "text": "a", "num_images": 1_000_000 })).1.as_array().unwrap().len(),
        6
    );
}
