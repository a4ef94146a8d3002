//! Brings the packets of many chunks into the order of time, with bounded memory.
//!
//! A *batch* is what was found in one chunk: the chunk's bytes and, sorted by time, where in them
//! the found packets lie. A *key* orders packets: time, then source, then batch within the source,
//! so that packets of equal time keep the order of their file. The merge takes from the batch with
//! the least key for as long as no other comes before it.
//! Limit: the merge itself does not read; whoever uses it adds each batch before its first key is
//! due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Time in ns, source, number of the batch in the source.
pub(crate) type Key = (u64, u32, u64);

/// Where a found packet lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Found {
    pub(crate) time_ns: u64,
    /// Offset of its block in the batch's bytes.
    pub(crate) at: u32,
}

/// The packets found in one chunk.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) found: Vec<Found>,
    /// How many of `found` were taken.
    pub(crate) taken: usize,
    pub(crate) source: u32,
    pub(crate) number: u64,
}

impl Batch {
    /// Sorts what was found by time, if it is not; equal times stay in the order of the file.
    pub(crate) fn sort(&mut self) {
        if !self.found.is_sorted() {
            self.found.sort_unstable();
        }
    }

    fn key(&self) -> Option<Key> {
        self.found.get(self.taken).map(|found| (found.time_ns, self.source, self.number))
    }
}

/// Batches of which some packets were not taken.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    batches: Vec<Option<Batch>>,
    free: Vec<usize>,
    /// All batches but the current one, by their next keys.
    heads: BinaryHeap<Reverse<(Key, usize)>>,
    current: Option<usize>,
}

impl Merge {
    /// Adds a batch; one without packets comes straight back.
    pub(crate) fn add(&mut self, batch: Batch) -> Option<Batch> {
        let Some(key) = batch.key() else {
            return Some(batch);
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.batches.push(None);
            self.batches.len() - 1
        });
        if let Some(place) = self.batches.get_mut(slot) {
            *place = Some(batch);
        }
        self.heads.push(Reverse((key, slot)));
        None
    }

    /// Batches that are held.
    pub(crate) fn len(&self) -> usize {
        self.batches.len() - self.free.len()
    }

    /// Packets that were not taken.
    pub(crate) fn waiting(&self) -> u64 {
        let left = |batch: &Batch| batch.found.len().saturating_sub(batch.taken) as u64;
        self.batches.iter().flatten().map(left).sum()
    }

    /// The least key of all batches.
    pub(crate) fn first_key(&mut self) -> Option<Key> {
        self.put_back();
        self.heads.peek().map(|Reverse((key, _))| *key)
    }

    /// Takes the next packet of the current batch, if its key is at most `bound` and it has one.
    #[inline]
    pub(crate) fn take(&mut self, bound: Key) -> Option<(usize, Found)> {
        let slot = self.current?;
        let batch = self.batches.get_mut(slot)?.as_mut()?;
        let found = *batch.found.get(batch.taken)?;
        if (found.time_ns, batch.source, batch.number) > bound {
            return None;
        }
        batch.taken += 1;
        Some((slot, found))
    }

    /// Makes the batch with the least key the current one. Returns the least key of the others,
    /// up to which packets may be taken from it; `None` if there is no batch.
    pub(crate) fn choose(&mut self) -> Option<Key> {
        self.put_back();
        let Reverse((_, slot)) = self.heads.pop()?;
        self.current = Some(slot);
        Some(self.heads.peek().map_or((u64::MAX, u32::MAX, u64::MAX), |Reverse((key, _))| *key))
    }

    /// A batch by its slot.
    #[inline]
    pub(crate) fn batch(&self, slot: usize) -> Option<&Batch> {
        self.batches.get(slot)?.as_ref()
    }

    /// Takes the current batch out if all its packets were taken.
    pub(crate) fn take_finished(&mut self) -> Option<Batch> {
        let slot = self.current?;
        let batch = self.batches.get_mut(slot)?;
        if batch.as_ref()?.key().is_some() {
            return None;
        }
        self.current = None;
        self.free.push(slot);
        batch.take()
    }

    /// Takes the batch out whose next packet is due last, if `may` agrees.
    pub(crate) fn take_last(&mut self, may: impl Fn(&Batch) -> bool) -> Option<Batch> {
        self.put_back();
        let candidates = self.heads.iter().filter(|Reverse((_, slot))| {
            self.batches.get(*slot).and_then(Option::as_ref).is_some_and(&may)
        });
        let &Reverse((_, slot)) = candidates.max_by_key(|Reverse(head)| *head)?;
        self.heads.retain(|Reverse((_, other))| *other != slot);
        self.free.push(slot);
        self.batches.get_mut(slot)?.take()
    }

    fn put_back(&mut self) {
        if let Some(slot) = self.current.take() {
            let key = self.batches.get(slot).and_then(Option::as_ref).and_then(Batch::key);
            match key {
                Some(key) => self.heads.push(Reverse((key, slot))),
                // Taken out by `take_finished` before anything else asks for it.
                None => self.current = Some(slot),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn batch(source: u32, number: u64, times: &[u64]) -> Batch {
        let found = times.iter().enumerate();
        let found = found.map(|(at, time_ns)| Found { time_ns: *time_ns, at: at as u32 }).collect();
        let mut batch = Batch { bytes: Vec::new(), found, taken: 0, source, number };
        batch.sort();
        batch
    }

    fn drain(merge: &mut Merge) -> Vec<(u64, u32, u64, u32)> {
        let mut all = Vec::new();
        while let Some(bound) = merge.choose() {
            while let Some((slot, found)) = merge.take(bound) {
                let batch = merge.batch(slot).unwrap();
                all.push((found.time_ns, batch.source, batch.number, found.at));
            }
            merge.take_finished();
        }
        all
    }

    proptest! {
        #[test]
        fn the_merge_is_a_stable_sort(
            batches in proptest::collection::vec(
                (0u32..4, proptest::collection::vec(0u64..50, 0..20)), 0..12),
        ) {
            let mut merge = Merge::default();
            let mut expected = Vec::new();
            for (number, (source, times)) in batches.iter().enumerate() {
                let made = batch(*source, number as u64, times);
                expected.extend(
                    made.found.iter().map(|f| (f.time_ns, *source, number as u64, f.at)));
                merge.add(made);
            }
            expected.sort_unstable();
            prop_assert_eq!(drain(&mut merge), expected);
            prop_assert_eq!(merge.len(), 0);
        }
    }

    #[test]
    fn the_batch_that_is_due_last_can_be_taken_out_and_put_in_again() {
        let mut merge = Merge::default();
        for (number, times) in [[1, 5], [2, 6], [3, 7]].iter().enumerate() {
            merge.add(batch(0, number as u64, times));
        }
        assert!(merge.choose().is_some());
        let last = merge.take_last(|_| true).unwrap();
        assert_eq!((last.number, merge.len()), (2, 2));
        assert!(merge.take_last(|_| false).is_none());
        merge.add(last);
        let times: Vec<u64> = drain(&mut merge).iter().map(|packet| packet.0).collect();
        assert_eq!(times, [1, 2, 3, 5, 6, 7]);
    }
}
