//! The stage that writes frames to a store, with the ledger so far beside them.

use port::{Batch, Losses, Reason, RxCounters};
use store::recorder::{Append, Recorder, RecorderEvent, RecorderSummary};

use crate::error::Result;
use crate::ledger::{Account, Entry};
use crate::live::Live;
use crate::stages::Stage;

/// Frames offered to the recorder, and what became of them.
#[derive(Debug)]
pub struct Record {
    recorder: Option<Recorder>,
    summary: Option<RecorderSummary>,
    events: Vec<RecorderEvent>,
    pool_chunks: usize,
    offered_packets: u64,
    offered_bytes: u64,
}

impl Record {
    /// Writes to `recorder`, which ends with the run.
    pub fn new(recorder: Recorder) -> Self {
        Self {
            pool_chunks: recorder.free_chunks().max(1),
            recorder: Some(recorder),
            summary: None,
            events: Vec::new(),
            offered_packets: 0,
            offered_bytes: 0,
        }
    }

    /// The recorder's closing account; `None` before the end of the run.
    pub fn summary(&self) -> Option<&RecorderSummary> {
        self.summary.as_ref()
    }

    /// What happened to the store: disk full, segments sealed.
    pub fn events(&self) -> &[RecorderEvent] {
        &self.events
    }

    /// offered = stored + pool_empty + storage.
    pub fn account(&self) -> Account {
        let mut account = Account::new("record");
        account.entered.push(Entry::new("offered", self.offered_packets, self.offered_bytes));
        if let Some(summary) = &self.summary {
            let counters = &summary.counters;
            let stored = counters.stored;
            account.left.push(Entry::new("stored", stored.packets, stored.bytes));
            let mut losses = Losses::default();
            losses.add(Reason::PoolEmpty, counters.pool_empty.packets);
            losses.add(Reason::Storage, counters.storage.packets);
            account.lose(&losses, &[Reason::PoolEmpty, Reason::Storage]);
        }
        account
    }

    /// What happened to the store since the last call.
    fn note_events(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            self.events.extend(recorder.events());
        }
    }
}

impl Stage for Record {
    fn process(&mut self, batch: &mut Batch) -> Result<()> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        for frame in batch.frames() {
            // What became of the frame is the recorder's to count.
            let _: Append = recorder.append(frame.meta.time_ns, frame.data, frame.meta.wire_length);
        }
        self.offered_packets += batch.len() as u64;
        self.offered_bytes += batch.bytes();
        batch.clear();
        Ok(())
    }

    fn tick(&mut self, now_ns: u64, received: &RxCounters, live: &Live) -> Result<()> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        recorder.note_input(received.into());
        recorder.tick(now_ns);
        let counters = recorder.counters();
        live.stage_dropped_packets.set(counters.pool_empty.packets + counters.storage.packets);
        live.stored_bytes.set(counters.written.bytes);
        let used = self.pool_chunks - recorder.free_chunks().min(self.pool_chunks);
        live.buffer_used_milli.set((used * 1000 / self.pool_chunks) as u64);
        self.note_events();
        Ok(())
    }

    fn finish(&mut self, received: &RxCounters) -> Result<()> {
        let Some(mut recorder) = self.recorder.take() else { return Ok(()) };
        recorder.note_input(received.into());
        let summary = recorder.finish()?;
        self.events.extend(summary.events.iter().cloned());
        self.summary = Some(summary);
        Ok(())
    }
}
