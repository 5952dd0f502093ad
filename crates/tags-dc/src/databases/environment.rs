//! Looks values up in an LMDB file, without the LMDB library: the library trusts the numbers in the pages, and a damaged file can end the
//! process.
//!
//! ```text
//! file    pages of one size. Pages 0 and 1 say where the tree begins; the one of the later transaction counts
//! page    number u64 · 2 bytes · kind u16 · lower u16 · upper u16 · places of the entries, u16 each · … · entries
//! entry   low u16 · high u16 · flags u16 · length of the key u16 · key · value
//!         of a branch: low, high and flags are the page below; of a leaf: low and high are the length of the value
//! ```
//!
//! Numbers are little-endian, as a 64-bit machine writes them.

use std::path::{Path, PathBuf};

use itm_core::data::FileBytes;
use itm_core::{Error, Result};

const BRANCH: u16 = 1;
const LEAF: u16 = 2;
const OVERFLOW: u16 = 4;
const META: u16 = 8;
/// A page without marks that only a writer sets.
const KINDS: u16 = BRANCH | LEAF | OVERFLOW | META;
/// The value of an entry is the number of the first page that holds the value.
const ELSEWHERE: u16 = 1;
/// Bytes of a page before the places of its entries.
const HEAD: usize = 16;
/// Bytes of an entry before its key.
const ENTRY: usize = 8;
/// The tree of a file of any size is lower.
const DEEPEST: usize = 32;
const MAGIC: u64 = 0xBEEF_C0DE;

/// The only database of an environment. It maps names to bytes.
#[derive(Debug)]
pub(super) struct Environment {
    file: PathBuf,
    folder: PathBuf,
    bytes: FileBytes,
    page: usize,
    pages: usize,
    root: Option<usize>,
}

impl Environment {
    /// Opens a folder with a `data.mdb`; no file is made or changed.
    ///
    /// # Errors
    /// If the file is missing, is not an LMDB file, is cut short, or has keys in another order than their bytes.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let file = folder.join("data.mdb");
        let bytes = FileBytes::open(&file)?;
        Self::of(folder.to_path_buf(), file, bytes)
    }

    fn of(folder: PathBuf, file: PathBuf, bytes: FileBytes) -> Result<Self> {
        let refused =
            |expected: &str, got: String| Err(Error::invalid(file.display(), expected, got));
        let Some(first) = Meta::read(&bytes) else {
            return refused("an LMDB database of a 64-bit machine", "another file".into());
        };
        let size = first.page;
        if !(512..=1 << 16).contains(&size) || !size.is_power_of_two() {
            return refused("pages of 512 to 65536 bytes, a power of two", size.to_string());
        }
        let second = bytes.get(size..).and_then(Meta::read);
        let meta = second.filter(|meta| meta.transaction > first.transaction).unwrap_or(first);
        // A number that fits no page of the file is caught where the page is read.
        let wanted = meta.last.saturating_add(1).saturating_mul(size as u64);
        if wanted > bytes.len() as u64 {
            let expected = format!("{wanted} bytes, {} pages", meta.last.saturating_add(1));
            return refused(&expected, bytes.len().to_string());
        }
        if meta.order != 0 {
            return refused("keys in the order of their bytes", format!("flags {:#x}", meta.order));
        }
        let (page, pages) = (size, meta.last as usize + 1);
        let root = (meta.root != u64::MAX).then_some(meta.root as usize);
        Ok(Self { file, folder, bytes, page, pages, root })
    }

    /// The result of `read` for the value of a key. `read` gets the value's place, for its errors.
    ///
    /// # Errors
    /// If there is no value, or a page on the way to it is damaged; also the errors of `read`.
    pub(super) fn value<T>(
        &self,
        key: &str,
        read: impl FnOnce(&str, &[u8]) -> Result<T>,
    ) -> Result<T> {
        let place = format!("{} `{key}`", self.folder.display());
        let missing = || Error::invalid(&place, "a value", "none");
        read(&place, self.find(key.as_bytes())?.ok_or_else(missing)?)
    }

    fn find(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        let Some(mut number) = self.root else { return Ok(None) };
        for _ in 0..DEEPEST {
            let page = self.page(number)?;
            let damaged = || self.damaged(number);
            let entries = page.entries().ok_or_else(damaged)?;
            let entry = |k| page.entry(k).ok_or_else(damaged);
            // The last entry whose key is not above the wanted one. The first key of a branch counts as the lowest.
            let (mut low, mut high) = (usize::from(page.kind == BRANCH), entries);
            while low < high {
                let middle = low.midpoint(high);
                if entry(middle)?.key <= key { low = middle + 1 } else { high = middle }
            }
            let Some(at) = low.checked_sub(1) else { return Ok(None) };
            let entry = entry(at)?;
            match page.kind {
                BRANCH => number = entry.below(),
                LEAF if entry.key != key => return Ok(None),
                LEAF => return self.value_of(&entry).ok_or_else(damaged).map(Some),
                _ => return Err(damaged()),
            }
        }
        Err(self.damaged(number))
    }

    /// The value of an entry of a leaf.
    fn value_of<'a>(&'a self, entry: &Entry<'a>) -> Option<&'a [u8]> {
        let length = entry.number as usize;
        match entry.flags {
            0 => entry.rest.get(..length),
            ELSEWHERE => {
                let first = usize::try_from(u64_at(entry.rest, 0)?).ok()?;
                let page = self.page(first).ok().filter(|page| page.kind == OVERFLOW)?;
                let count = u32_at(page.bytes, 12)? as usize;
                let pages = first * self.page..(first + count) * self.page;
                self.bytes.get(pages)?.get(HEAD..)?.get(..length)
            }
            _ => None, // several values of one key, or a database within the database
        }
    }

    fn page(&self, number: usize) -> Result<Page<'_>> {
        let bytes = (number < self.pages).then(|| &self.bytes[number * self.page..][..self.page]);
        let page = bytes.and_then(|bytes| {
            let own = u64_at(bytes, 0)? == number as u64;
            own.then_some(Page { bytes, kind: u16_at(bytes, 10)? & KINDS })
        });
        page.ok_or_else(|| self.damaged(number))
    }

    fn damaged(&self, number: usize) -> Error {
        let place = format!("{} page {number}", self.file.display());
        Error::invalid(place, format!("a whole page of {}", self.pages), "a damaged one")
    }
}

/// What the first two pages say.
struct Meta {
    page: usize,
    order: u16,
    root: u64,
    last: u64,
    transaction: u64,
}

impl Meta {
    fn read(bytes: &[u8]) -> Option<Self> {
        let kind = u16_at(bytes, 10)?;
        let known = kind & META != 0 && u64_at(bytes, HEAD)? == MAGIC | 1 << 32; // version 1
        known.then_some(Self {
            page: u32_at(bytes, HEAD + 24)? as usize,
            order: u16_at(bytes, HEAD + 76)?,
            root: u64_at(bytes, HEAD + 112)?,
            last: u64_at(bytes, HEAD + 120)?,
            transaction: u64_at(bytes, HEAD + 128)?,
        })
    }
}

#[derive(Clone, Copy)]
struct Page<'a> {
    bytes: &'a [u8],
    kind: u16,
}

impl<'a> Page<'a> {
    /// Number of entries of a branch or a leaf.
    fn entries(&self) -> Option<usize> {
        let lower = usize::from(u16_at(self.bytes, 12)?);
        let places = lower.checked_sub(HEAD)?;
        (places > 0 && lower <= self.bytes.len()).then_some(places / 2)
    }

    fn entry(&self, k: usize) -> Option<Entry<'a>> {
        let bytes = self.bytes.get(usize::from(u16_at(self.bytes, HEAD + 2 * k)?)..)?;
        let (low, high) = (u64::from(u16_at(bytes, 0)?), u64::from(u16_at(bytes, 2)?));
        let key = usize::from(u16_at(bytes, 6)?);
        let (key, rest) = bytes.get(ENTRY..)?.split_at_checked(key)?;
        Some(Entry { number: low | high << 16, flags: u16_at(bytes, 4)?, key, rest })
    }
}

/// An entry, with everything from its value to the end of the page.
struct Entry<'a> {
    number: u64,
    flags: u16,
    key: &'a [u8],
    rest: &'a [u8],
}

impl Entry<'_> {
    /// The page below an entry of a branch.
    fn below(&self) -> usize {
        (self.number | u64::from(self.flags) << 32) as usize
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests;
