//! Pictures that are sent: small enough, and whole.

use std::io::Cursor;

use base64::prelude::{BASE64_STANDARD, Engine};
use image::{ImageFormat, Rgb, RgbImage};

use super::*;
use crate::fakes::jpeg;

const FORM: &str = "Content-Type: multipart/form-data; boundary=b";

fn form(name: &str, file: &[u8]) -> Vec<u8> {
    let head = format!(
        "--b\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"x.jpg\"\r\nContent-Type: image/jpeg\r\n\r\n"
    );
    [head.as_bytes(), file, b"\r\n--b--\r\n"].concat()
}

/// The head of a PNG that claims 20,000 × 20,000 pixels, and no pixels.
fn bomb() -> Vec<u8> {
    let mut file = Cursor::new(vec![]);
    RgbImage::from_pixel(1, 1, Rgb([1, 2, 3])).write_to(&mut file, ImageFormat::Png).unwrap();
    let mut file = file.into_inner();
    file[16..24].copy_from_slice(&[0, 0, 0x4e, 0x20, 0, 0, 0x4e, 0x20]);
    file
}

#[test]
fn a_sent_picture_finds_its_colour() {
    let site = Site::new();
    let green = jpeg([30, 200, 40], [64, 48]);
    let page = site.request("POST", "/like", &[FORM], &form("picture", &green));
    assert_eq!(page.status, 200, "{}", page.text());
    let first = page.text().split("href=\"/picture/").nth(1).unwrap().to_owned();
    assert!(first.starts_with(&site.number("b/green.jpg").to_string()), "{first}");
    let sent = site.request("POST", "/api/v1/similar?top=1", &[], &green);
    let answer: serde_json::Value = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!(answer["hits"][0]["path"], "b/green.jpg");
    let knn = format!(r#"{{"image": "{}", "num_images": 1}}"#, BASE64_STANDARD.encode(&green));
    let sent = site.request("POST", "/knn-service", &[], knn.as_bytes());
    let answer: serde_json::Value = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!(answer[0]["caption"], "b/green.jpg");
}

#[test]
fn bombs_and_other_files_are_refused() {
    let site = Site::new();
    for (what, file) in [
        ("a bomb", bomb()),
        ("text", b"GIF89a no".to_vec()),
        ("half", jpeg([1, 2, 3], [64, 48])[..200].to_vec()),
        ("nothing", vec![]),
    ] {
        let api = site.request("POST", "/api/v1/similar", &["Content-Type: image/png"], &file);
        assert_eq!(api.status, 400, "{what}");
        assert!(
            api.text().starts_with(r#"{"error":"the picture: expected "#),
            "{what}: {}",
            api.text()
        );
        assert_eq!(
            site.request("POST", "/like", &[FORM], &form("picture", &file)).status,
            400,
            "{what}"
        );
        let knn = format!(r#"{{"image": "{}"}}"#, BASE64_STANDARD.encode(&file));
        assert_eq!(site.request("POST", "/knn-service", &[], knn.as_bytes()).status, 400, "{what}");
    }
    assert!(site.request("POST", "/api/v1/similar", &[], &bomb()).text().contains("pixels"));
    assert_eq!(site.request("POST", "/like", &[FORM], &form("other", b"x")).status, 400);
    assert_eq!(site.request("POST", "/like", &[FORM], b"--b").status, 400);
    assert_eq!(site.request("POST", "/like", &[], b"picture=x").status, 400);
}

/// The length is known from the head, or from the pieces: nothing of it is decoded.
#[test]
fn uploads_have_at_most_20_mib() {
    let site = Site::new();
    let large = vec![0; (20 << 20) + 1];
    assert_eq!(site.request("POST", "/api/v1/similar", &[], &large).status, 413);
    assert_eq!(site.request("POST", "/like", &[FORM], &form("picture", &large)).status, 413);
    let knn = format!(r#"{{"image": "{}"}}"#, BASE64_STANDARD.encode(&large));
    assert_eq!(site.request("POST", "/knn-service", &[], knn.as_bytes()).status, 413);
    let claimed = format!(
        "POST /knn-service HTTP/1.1\r\nHost: {}\r\nContent-Length: 99999999999\r\n\r\n",
        site.address
    );
    assert_eq!(site.raw(claimed.as_bytes()).status, 413);
    let mut chunked = format!(
        "POST /api/v1/similar HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n",
        site.address
    )
    .into_bytes();
    for _ in 0..40 {
        chunked.extend(b"100000\r\n");
        chunked.extend(vec![b'a'; 1 << 20]);
        chunked.extend(b"\r\n");
    }
    let reply = site.raw(&chunked);
    assert!([0, 413].contains(&reply.status), "{}: closed before all was read, or 413", reply.head);
    assert!(reply.status == 0 || reply.text().starts_with(r#"{"error":""#), "{}", reply.text());
}

#[test]
fn a_fifth_upload_at_a_time_is_503() {
    let site = Site::new();
    let head = format!(
        "POST /api/v1/similar HTTP/1.1\r\nHost: {}\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n",
        site.address
    );
    let mut open: Vec<TcpStream> = (0..6).map(|_| site.connect()).collect();
    open.iter_mut().for_each(|stream| stream.write_all(head.as_bytes()).unwrap());
    let refused = first_replies(&mut open, 2);
    assert_eq!(refused.map(|reply| reply.status).collect::<Vec<_>>(), [503, 503]);
    assert_eq!(site.get("/?q=red").status, 200);
}
