//! What the tests of writers share.

use std::sync::Arc;

use sys::direct_io::{DirectWriter, Engine};
use sys::memory::{Buffer, Buffers, Region};

/// Bytes of a buffer.
pub const CHUNK_BYTES: usize = 64 << 10;

/// Both engines; io_uring only where it is allowed, which the test says by name.
pub fn engines(test: &str) -> Vec<Engine> {
    let mut engines = vec![Engine::PwritePool { threads: 3 }];
    match DirectWriter::new(Engine::IoUring, 1, &[]) {
        Ok(_) => engines.push(Engine::IoUring),
        Err(error) => {
            testing::say_skipped(&format!("{test} (io_uring part)"), error);
        }
    }
    engines
}

/// Buffers of a chunk each and the memory that they share.
pub fn pool(count: u32) -> (Vec<Buffer>, Arc<Region>) {
    let buffers = Buffers::new(count, CHUNK_BYTES).unwrap();
    let region = Arc::clone(buffers.region());
    (buffers.split(), region)
}
