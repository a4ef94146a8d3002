//! Outputs that are among their own inputs.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::exit::Usage;

/// Opening an output empties it: it must be none of the files that are read from `stores`, by whatever
/// name. `output` is what there is under the name of the output, and `option` how it was given.
pub fn refuse_to_overwrite(
    option: &str,
    output: io::Result<Metadata>,
    stores: &[PathBuf],
) -> anyhow::Result<()> {
    // Devices and pipes lose nothing by being written to, and what is not there even less.
    let Some(output) = output.ok().filter(Metadata::is_file) else { return Ok(()) };
    for path in stores {
        let files = if path.is_dir() {
            let segments = store::segment::list(path)?.into_iter().map(|entry| entry.path);
            segments.flat_map(|path| [store::segment::index_path(&path), path]).collect()
        } else {
            vec![path.clone()]
        };
        let same = |file: &PathBuf| {
            fs::metadata(file)
                .is_ok_and(|file| (file.dev(), file.ino()) == (output.dev(), output.ino()))
        };
        if let Some(file) = files.iter().find(|file| same(file)) {
            return Err(Usage(format!(
                "{option} is the same file as {}, which is read and would be lost; write to \
                 another file",
                file.display()
            ))
            .into());
        }
    }
    Ok(())
}
