//! The pages of a Parquet table, which hold no more values than their file can mean.
//!
//! The library makes room for as many values as the head of a page names, and repetitions take nearly no space: a damaged file of a
//! kilobyte may name billions of values.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parquet::bloom_filter::Sbbf;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::RowGroupReader;
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;

/// The most values in all pages, for each byte of the file. A table of one repeated row has up to 700.
const MOST: u64 = 4096;

/// What the pages of a file may still hold.
#[derive(Clone)]
pub(super) struct Budget(Arc<AtomicU64>);

impl Budget {
    pub(super) fn of_file(bytes: u64) -> Self {
        Self(Arc::new(AtomicU64::new(bytes.saturating_mul(MOST))))
    }

    fn take(&self, page: &Page) -> Result<()> {
        let values = u64::from(page.num_values());
        let fits = match page {
            Page::DictionaryPage { buf, .. } => values <= buf.len() as u64, // each value takes a byte or more
            _ => {
                let less = |left: u64| left.checked_sub(values);
                self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
            }
        };
        let refuse = || format!("a page of {values} values, more than the file can hold");
        if fits { Ok(()) } else { Err(ParquetError::General(refuse())) }
    }
}

/// A row group within the budget.
pub(super) struct RowGroup<'a> {
    pub(super) inner: Box<dyn RowGroupReader + 'a>,
    pub(super) budget: Budget,
}

impl RowGroupReader for RowGroup<'_> {
    fn metadata(&self) -> &RowGroupMetaData {
        self.inner.metadata()
    }

    fn num_columns(&self) -> usize {
        self.inner.num_columns()
    }

    fn get_column_page_reader(&self, column: usize) -> Result<Box<dyn PageReader>> {
        let inner = self.inner.get_column_page_reader(column)?;
        Ok(Box::new(Pages { inner, budget: self.budget.clone() }))
    }

    fn get_column_bloom_filter(&self, column: usize) -> Option<&Sbbf> {
        self.inner.get_column_bloom_filter(column)
    }

    fn get_row_iter(&self, projection: Option<Type>) -> Result<RowIter<'_>> {
        RowIter::from_row_group(projection, self)
    }
}

struct Pages {
    inner: Box<dyn PageReader>,
    budget: Budget,
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.inner.get_next_page()?;
        page.as_ref().map_or(Ok(()), |page| self.budget.take(page))?;
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.inner.skip_next_page()
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
