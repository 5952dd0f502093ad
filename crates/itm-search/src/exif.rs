//! Date, camera and place of a photograph.

use std::io::Cursor;
use std::ops::Range;

use exif::{Exif, In, Reader, Tag, Value};

/// Date, camera and place.
type PhotographFacts = (Option<String>, Option<String>, Option<[f64; 2]>);

/// What the EXIF data of a file say: nothing if they are missing, and of damaged ones what can be read. Programs that end a directory
/// without the place of the next one are common.
pub(crate) fn read(bytes: &[u8]) -> PhotographFacts {
    let read = Reader::new()
        .continue_on_error(true)
        .read_from_container(&mut Cursor::new(bytes))
        .or_else(|error| error.distill_partial_result(|_| ()));
    let Ok(exif) = read else { return PhotographFacts::default() };
    let dates = [Tag::DateTimeOriginal, Tag::DateTime].into_iter();
    let date = dates.filter_map(|tag| text(&exif, tag)).find_map(|date| iso(&date));
    let latitude = degrees(&exif, Tag::GPSLatitude, Tag::GPSLatitudeRef, "S", 90.0);
    let longitude = degrees(&exif, Tag::GPSLongitude, Tag::GPSLongitudeRef, "W", 180.0);
    let place = latitude.zip(longitude).map(|(a, b)| [a, b]);
    (date, text(&exif, Tag::Model), place)
}

fn text(exif: &Exif, tag: Tag) -> Option<String> {
    let Value::Ascii(parts) = &exif.get_field(tag, In::PRIMARY)?.value else { return None };
    let text = std::str::from_utf8(parts.first()?).ok()?.trim_matches([' ', '\0']);
    let good = !text.is_empty() && text.len() <= 200 && !text.contains(char::is_control);
    good.then(|| text.to_owned())
}

/// `2024:05:01 12:30:00` as `2024-05-01T12:30:00`; `None` for anything that is no date.
fn iso(date: &str) -> Option<String> {
    let whole = date.len() == 19 && has_form(date, "dddd:dd:dd dd:dd:dd");
    let (day, time) = date.split_at_checked(10).filter(|_| whole)?;
    is_day(day).then(|| format!("{}T{}", day.replace(':', "-"), &time[1..]))
}

/// Whether a text that begins like `2024`, `2024-05` or `2024-05-01` names a year, month or day of the calendar.
pub(crate) fn is_day(date: &str) -> bool {
    let part = |at: Range<usize>| date.get(at).map_or(Ok(1), str::parse::<usize>);
    let (Ok(year), Ok(month), Ok(day)) = (part(0..4), part(5..7), part(8..10)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = [31, 28 + usize::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    (1..=12).contains(&month) && (1..=days[month - 1]).contains(&day)
}

/// Whether a text is a moment as this program writes it.
pub(crate) fn is_moment(text: &str) -> bool {
    text.len() == 19 && has_form(text, "dddd-dd-ddTdd:dd:dd") && is_day(text)
}

/// Whether a text is like the beginning of a form, in which `d` is a digit.
pub(crate) fn has_form(text: &str, form: &str) -> bool {
    text.bytes().zip(form.bytes()).all(|(byte, form)| match form {
        b'd' => byte.is_ascii_digit(),
        _ => byte == form,
    })
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
