//! A read-only LMDB environment.

use std::fs;
use std::path::{Path, PathBuf};

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, WithoutTls};
use itm_core::{Error, Result};

/// The only database of an environment. It maps names to bytes.
#[derive(Debug)]
pub(super) struct Environment {
    env: Env<WithoutTls>,
    values: Database<Bytes, Bytes>,
    folder: PathBuf,
}

impl Environment {
    /// Opens a folder with a `data.mdb`; no file is made or changed.
    ///
    /// # Errors
    /// If the file is missing, is not an LMDB file or is cut short, or if this process already has the folder open.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let file = folder.join("data.mdb");
        let bytes = fs::metadata(&file).map_err(Error::io(&file))?.len();
        let refused = |e: heed::Error| match e {
            heed::Error::Io(source) => Error::Io { path: file.clone(), source },
            other => Error::invalid(file.display(), "an LMDB database", other),
        };
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        // The size must be a multiple of the memory page, which is at most 64 KiB on any machine.
        let size = usize::try_from(bytes).ok().and_then(|n| n.checked_next_multiple_of(1 << 16));
        options.map_size(
            size.ok_or_else(|| Error::invalid(file.display(), "a file that fits memory", bytes))?,
        );
        // SAFETY: the flags promise that nobody writes while this is open. The documentation of the module `databases` demands this of users.
        #[allow(unsafe_code)]
        let env = unsafe {
            options.flags(EnvFlags::READ_ONLY | EnvFlags::NO_LOCK);
            options.open(folder)
        }
        .map_err(refused)?;
        // A page that is not in the file would end the process when it is read.
        let pages = env.info().last_page_number as u64 + 1;
        let wanted = pages.saturating_mul(u64::from(env.stat().page_size));
        if wanted > bytes {
            let expected = format!("{wanted} bytes, {pages} pages");
            return Err(Error::invalid(file.display(), expected, bytes));
        }
        let transaction = env.read_txn().map_err(refused)?;
        let values = env.open_database(&transaction, None).map_err(refused)?;
        drop(transaction);
        let values = values.ok_or_else(|| Error::invalid(file.display(), "a database", "none"))?;
        Ok(Self { env, values, folder: folder.to_path_buf() })
    }

    /// The result of `read` for the value of a key. `read` gets the value's place, for its errors.
    ///
    /// # Errors
    /// If there is no value; also the errors of `read`.
    pub(super) fn value<T>(
        &self,
        key: &str,
        read: impl FnOnce(&str, &[u8]) -> Result<T>,
    ) -> Result<T> {
        let place = format!("{} `{key}`", self.folder.display());
        let refused = |e: heed::Error| Error::invalid(&place, "a readable value", e);
        let transaction = self.env.read_txn().map_err(refused)?;
        match self.values.get(&transaction, key.as_bytes()).map_err(refused)? {
            Some(value) => read(&place, value),
            None => Err(Error::invalid(&place, "a value", "none")),
        }
    }
}
