//! Thumbnails, previews and heat maps. A picture is asked for by its number, and a file's own bytes are never sent.

use std::io::Cursor;

use axum::extract::{Path, Query as Parameters, State as Extract};
use axum::http::{StatusCode, header};
use image::{ImageFormat, Rgba, RgbaImage};

use super::ask::{Ask, AskParameters};
use super::refusal::Refusal;
use super::state::{SharedState, State};
use crate::Index;

/// The colour of a heat map.
const HOT: [u8; 3] = [255, 122, 24];
/// The opacity of the hottest patch.
const OPACITY: f32 = 215.0;

type ImageReply = Result<([(header::HeaderName, &'static str); 2], Vec<u8>), Refusal>;

fn sent(
    state: &State,
    picture: usize,
    ask: &Ask,
    kind: &'static str,
    bytes: Vec<u8>,
) -> ImageReply {
    // A bare number is another picture in another index.
    let kept = ask.v == state.version(picture);
    let cache = if kept { "private, max-age=3600" } else { "no-store" };
    Ok(([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, cache)], bytes))
}

/// `GET /thumbnails/{number}` and `GET /previews/{number}`: 410 if the picture has gone.
pub(crate) async fn small(
    Extract(state): SharedState,
    Path(number): Path<String>,
    Parameters(ask): AskParameters,
    read: fn(&Index, usize) -> itm_core::Result<Vec<u8>>,
) -> ImageReply {
    let (at, number) = (state.clone(), state.number(&number)?);
    let read = move || read(at.searcher.index(), number).map_err(|_| Refusal::gone());
    let bytes = state.pictures.run(read).await?;
    sent(&state, number, &ask, "image/jpeg", bytes)
}

/// `GET /heat/{number}?q=…&word=…`: how near each patch is to a word, as a PNG with a pixel for each patch, to lie over the preview.
pub(crate) async fn heat(
    Extract(state): SharedState,
    Path(number): Path<String>,
    Parameters(ask): AskParameters,
) -> ImageReply {
    let (at, number) = (state.clone(), state.number(&number)?);
    let (q, word) = (ask.q.clone(), ask.word.parse::<usize>().ok());
    let done = state.searches.run(move || {
        let why = at.why(&q, number)?;
        let found =
            why.as_ref().as_ref().and_then(|why| Some((why.grid, &why.words.get(word?)?.1)));
        let (grid, cosines) = found.ok_or_else(Refusal::missing)?;
        png(grid, cosines)
    });
    sent(&state, number, &ask, "image/png", done.await?)
}

/// The cosines, from the median of the patches to the largest, as opacity: half of a picture stays clear.
fn png([rows, columns]: [usize; 2], cosines: &[f32]) -> Result<Vec<u8>, Refusal> {
    let mut sorted = cosines.to_vec();
    sorted.sort_by(f32::total_cmp);
    let low = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    let span = (sorted.last().copied().unwrap_or_default() - low).max(f32::EPSILON);
    let mut image = RgbaImage::new(columns as u32, rows as u32);
    for (pixel, &cosine) in image.pixels_mut().zip(cosines) {
        let heat = ((cosine - low) / span).clamp(0.0, 1.0);
        *pixel = Rgba([HOT[0], HOT[1], HOT[2], (OPACITY * heat) as u8]);
    }
    let mut file = Cursor::new(vec![]);
    let written = image.write_to(&mut file, ImageFormat::Png);
    written.map_err(|error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(file.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Median 0.2, largest 0.4: opacity 215 · (s − 0.2) / 0.2.
    #[test]
    fn heat_begins_at_the_median() {
        let file = png([2, 2], &[0.1, 0.2, 0.4, 0.0]).unwrap();
        let image = image::load_from_memory(&file).unwrap().into_rgba8();
        // sorted 0, 0.1, 0.2, 0.4: the upper median is 0.2
        assert_eq!(image.pixels().map(|pixel| pixel.0[3]).collect::<Vec<_>>(), [0, 0, 215, 0]);
        assert!(png([1, 1], &[0.3]).is_ok());
    }
}
