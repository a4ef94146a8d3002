//! How fast this machine's disk takes large direct writes: the plain writer, with nothing around it.
//!
//! `cargo bench -p sys --bench direct_io -- DIRECTORY GIB CHUNK_BYTES DEPTH ENGINE FILE`, where
//! ENGINE is `auto`, `io_uring`, `pwrite` or `pwrite:THREADS` and FILE is `extend` (a new file that
//! grows), `fallocate` (a new file with its blocks reserved) or `recycle` (a file that was written
//! before, which an unmeasured pass provides). One line per run: the rate until the last write
//! ended, and the rate until all of it was flushed (a disk with a write cache takes data faster than
//! it keeps it). The file is removed afterwards. Without arguments it says so and ends.

#![allow(clippy::unwrap_used)]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sys::cpu::process_cpu_ns;
use sys::direct_io::{DirectFile, DirectWriter, Engine, Wait};
use sys::memory::{Buffer, Buffers};

const USAGE: &str = "usage: direct_io DIRECTORY GIB CHUNK_BYTES DEPTH ENGINE FILE\n\
    ENGINE: auto, io_uring, pwrite, pwrite:THREADS; FILE: extend, fallocate, recycle";

struct Job {
    path: std::path::PathBuf,
    bytes: u64,
    chunk_bytes: usize,
    depth: usize,
    engine: Engine,
    file: String,
}

/// What one pass over the file took.
struct Pass {
    elapsed: Duration,
    cpu_ns: u64,
    latencies_ns: Vec<u64>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let Some(job) = job(&words) else {
        println!("{USAGE}");
        return ExitCode::from(if words.is_empty() { 0 } else { 2 });
    };
    let outcome = run(&job);
    let _ = std::fs::remove_file(&job.path);
    match outcome {
        Ok(line) => println!("{line}"),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn job(words: &[String]) -> Option<Job> {
    let [directory, gib, chunk_bytes, depth, engine, file] = words else { return None };
    let engine = match engine.split_once(':').unwrap_or((engine, "8")) {
        ("auto", _) => Engine::Auto,
        ("io_uring", _) => Engine::IoUring,
        ("pwrite", threads) => Engine::PwritePool { threads: threads.parse().ok()? },
        _ => return None,
    };
    ["extend", "fallocate", "recycle"].contains(&file.as_str()).then_some(())?;
    let chunk_bytes: usize = chunk_bytes.parse().ok().filter(|&bytes| bytes > 0)?;
    let chunks = (gib.parse::<f64>().ok()? * f64::from(1 << 30)) as u64 / chunk_bytes as u64;
    Some(Job {
        path: std::path::Path::new(directory).join(format!("direct-io-{}", std::process::id())),
        bytes: chunks * chunk_bytes as u64,
        chunk_bytes,
        depth: depth.parse().ok()?,
        engine,
        file: file.clone(),
    })
}

fn run(job: &Job) -> sys::Result<String> {
    let buffers = Buffers::new(job.depth as u32, job.chunk_bytes)?;
    let pages = buffers.pages();
    let region = Arc::clone(buffers.region());
    let mut buffers = buffers.split();
    for (seed, buffer) in buffers.iter_mut().enumerate() {
        buffer.fill_incompressible(seed as u64);
    }
    let file = Arc::new(DirectFile::create(&job.path)?);
    if job.file != "extend" {
        file.preallocate(job.bytes)?;
    }
    let mut writer = DirectWriter::new(job.engine, job.depth, &[region])?;
    if job.file == "recycle" {
        pass(job, &file, &mut writer, &mut buffers)?;
        file.sync_data()?;
    }
    let Pass { elapsed, cpu_ns, mut latencies_ns } = pass(job, &file, &mut writer, &mut buffers)?;
    let begin = Instant::now();
    file.sync_data()?;
    let flushed = begin.elapsed();
    latencies_ns.sort_unstable();
    let p99_ns = latencies_ns.get(latencies_ns.len() * 99 / 100).copied().unwrap_or(0);
    Ok(format!(
        "{:.3} GB/s, flushed {:.3} GB/s; {} KiB x {} deep, {}, cpu {:.0} %, p99 {:.1} ms, max {:.1} ms, flush {:.1} ms; \
         {}, {:?}, {pages}",
        job.bytes as f64 / elapsed.as_secs_f64() / 1e9,
        job.bytes as f64 / (elapsed + flushed).as_secs_f64() / 1e9,
        job.chunk_bytes >> 10,
        job.depth,
        job.file,
        cpu_ns as f64 / elapsed.as_nanos() as f64 * 100.0,
        p99_ns as f64 / 1e6,
        latencies_ns.last().copied().unwrap_or(0) as f64 / 1e6,
        flushed.as_secs_f64() * 1e3,
        writer.description(),
        file.mode(),
    ))
}

/// Writes the whole file once, in order.
fn pass(
    job: &Job,
    file: &Arc<DirectFile>,
    writer: &mut DirectWriter,
    buffers: &mut Vec<Buffer>,
) -> sys::Result<Pass> {
    let mut latencies_ns = Vec::with_capacity((job.bytes / job.chunk_bytes as u64) as usize);
    let mut completions = Vec::with_capacity(job.depth);
    let (begin, cpu_before) = (Instant::now(), process_cpu_ns());
    for offset in (0..job.bytes).step_by(job.chunk_bytes) {
        while buffers.is_empty() {
            writer.complete(Wait::One, &mut completions)?;
            for completion in completions.drain(..) {
                completion.result?;
                latencies_ns.push(completion.latency_ns);
                buffers.push(completion.buffer);
            }
        }
        let buffer = buffers.pop().unwrap();
        if let Err(refused) = writer.submit(file, offset, buffer, job.chunk_bytes, offset) {
            let source = std::io::Error::other(refused.to_string());
            return Err(sys::Error::new("submitting a write", source));
        }
    }
    writer.complete_all(&mut completions)?;
    for completion in completions {
        completion.result?;
        latencies_ns.push(completion.latency_ns);
        buffers.push(completion.buffer);
    }
    let cpu_ns = process_cpu_ns() - cpu_before;
    Ok(Pass { elapsed: begin.elapsed(), cpu_ns, latencies_ns })
}
