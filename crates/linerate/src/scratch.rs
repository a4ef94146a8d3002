//! A directory for temporary files that goes away with the program.
//!
//! Its lock (flock(2) on the directory itself) lasts as long as the program: one whose lock is free
//! was left by a program that was killed, and the next one removes it.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use store::StoreError;

/// What the names begin with; the rest are digits.
const PREFIX: &str = "linerate-demo-";

/// Names that are tried: another program may have made one of ours.
const ATTEMPTS: u32 = 100;

/// A directory that is removed when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    _lock: File,
}

impl Scratch {
    /// Makes one in `parent`, readable by its owner only, and removes what killed programs of the
    /// same user left there.
    pub fn make(parent: &Path) -> Result<Self, StoreError> {
        let failed = |path: &Path, error: io::Error| {
            let action = format!("making the directory {}", path.display());
            sys::Error::new(action, error).remedy("set TMPDIR, or choose a place with --to")
        };
        for number in 0..ATTEMPTS {
            let name = format!("{PREFIX}{}{number:02}", std::process::id());
            let path = parent.join(name);
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(failed(&path, error).into()),
            }
            // A program that starts just now may have taken the lock first and removed it.
            let taken = lock(&path).map_err(|error| {
                let _ = fs::remove_dir(&path);
                failed(&path, error)
            })?;
            if let Some(lock) = taken {
                let owner = lock.metadata().map_err(|error| failed(&path, error))?.uid();
                remove_leftovers(parent, owner);
                return Ok(Self { path, _lock: lock });
            }
        }
        let taken = io::Error::from(io::ErrorKind::AlreadyExists);
        Err(failed(&parent.join(PREFIX), taken).into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next one.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The lock of a directory; `None` if somebody holds it or the directory is gone.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let taken = || {
        let file = File::open(path)?;
        file.try_lock()?;
        let (locked, named) = (file.metadata()?, fs::symlink_metadata(path)?);
        Ok(((locked.dev(), locked.ino()) == (named.dev(), named.ino())).then_some(file))
    };
    taken().or_else(|error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::WouldBlock => Ok(None),
        _ => Err(error),
    })
}

/// Removes the directories of `owner` with such a name whose lock is free.
fn remove_leftovers(parent: &Path, owner: u32) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_ours = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX))
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|it| it.is_ascii_digit()));
        // Of the entry itself: a link to a directory is left alone.
        let owned = |it: fs::Metadata| it.is_dir() && it.uid() == owner;
        if !is_ours || !entry.metadata().is_ok_and(owned) {
            continue;
        }
        if let Ok(Some(_lock)) = lock(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_dead_programs_left_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        for name in ["linerate-demo-77", "linerate-demo-x", "linerate-demo-", "other"] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("file"), "x").unwrap();
        }
        fs::write(at("linerate-demo-1"), "a file").unwrap();
        std::os::unix::fs::symlink(at("other"), at("linerate-demo-2")).unwrap();
        let first = Scratch::make(parent.path()).unwrap();
        fs::write(first.path().join("file"), "x").unwrap();
        let second = Scratch::make(parent.path()).unwrap();
        assert!(!at("linerate-demo-77").exists());
        for name in ["linerate-demo-x", "linerate-demo-", "other", "linerate-demo-1"] {
            assert!(at(name).exists(), "{name}");
        }
        assert!(at("linerate-demo-2").exists() && at("other/file").exists());
        assert!(first.path().join("file").exists() && first.path() != second.path());
        let (one, two) = (first.path().to_owned(), second.path().to_owned());
        drop((first, second));
        assert!(!one.exists() && !two.exists());
    }
}
