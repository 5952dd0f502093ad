//! Date, camera and place of a photograph.

use std::io::Cursor;

use exif::{Exif, In, Reader, Tag, Value};

use crate::Picture;

/// Adds what the EXIF data of a file say. A file without them, or with damaged ones, adds nothing.
pub(crate) fn read(bytes: &[u8], picture: &mut Picture) {
    let Ok(exif) = Reader::new().read_from_container(&mut Cursor::new(bytes)) else { return };
    let date = [Tag::DateTimeOriginal, Tag::DateTime].into_iter().find_map(|tag| text(&exif, tag));
    picture.taken = date.and_then(|date| iso(&date));
    picture.camera = text(&exif, Tag::Model);
    let latitude = degrees(&exif, Tag::GPSLatitude, Tag::GPSLatitudeRef, "S", 90.0);
    let longitude = degrees(&exif, Tag::GPSLongitude, Tag::GPSLongitudeRef, "W", 180.0);
    picture.place = latitude.zip(longitude).map(|(a, b)| [a, b]);
}

fn text(exif: &Exif, tag: Tag) -> Option<String> {
    let Value::Ascii(parts) = &exif.get_field(tag, In::PRIMARY)?.value else { return None };
    let text = std::str::from_utf8(parts.first()?).ok()?.trim_matches([' ', '\0']);
    let good = !text.is_empty() && text.len() <= 200 && !text.contains(char::is_control);
    good.then(|| text.to_owned())
}

/// `2024:05:01 12:30:00` as `2024-05-01T12:30:00`; `None` for anything that is no date.
fn iso(date: &str) -> Option<String> {
    let form = b"dddd:dd:dd dd:dd:dd";
    let fits = |(byte, form): (u8, &u8)| match form {
        b'd' => byte.is_ascii_digit(),
        _ => byte == *form,
    };
    let whole = date.len() == form.len() && date.bytes().zip(form).all(fits);
    let (day, time) = date.split_at_checked(10).filter(|_| whole)?;
    let part = |of: std::ops::Range<usize>| day[of].parse::<u32>().ok();
    let real = (1..=12).contains(&part(5..7)?) && (1..=31).contains(&part(8..10)?);
    real.then(|| format!("{}T{}", day.replace(':', "-"), &time[1..]))
}

/// Degrees, minutes and seconds as degrees.
fn degrees(exif: &Exif, tag: Tag, side: Tag, negative: &str, most: f64) -> Option<f64> {
    let Value::Rational(parts) = &exif.get_field(tag, In::PRIMARY)?.value else { return None };
    let [d, m, s] = parts.get(..3)? else { return None };
    let size = d.to_f64() + m.to_f64() / 60.0 + s.to_f64() / 3600.0;
    let sign = if text(exif, side)? == negative { -1.0 } else { 1.0 };
    Some(sign * size).filter(|value| value.is_finite() && value.abs() <= most)
}

#[cfg(test)]
mod tests;
