//! A log-linear histogram of 64-bit values: one shift and one add to record, exact minimum, maximum
//! and mean, percentiles within 1/32 of the value.

use ebpf::part::histogram::Values;

/// Linear steps within each power of two. 32 bound the relative error at 1/32 = 3.1 %.
const STEP_BITS: u32 = ebpf::part::histogram::STEP_BITS;
const STEPS: usize = 1 << STEP_BITS;
/// Values below [`STEPS`] have a bucket each, then every power of two up to 2^64 has [`STEPS`].
const BUCKETS: usize = STEPS * (64 - STEP_BITS as usize + 1);

/// Distribution of values such as latencies in ns. Fixed size (15 KiB), mergeable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS], count: 0, sum: 0, min: u64::MAX, max: 0 }
    }
}

impl From<&Values> for Histogram {
    /// What a program in the kernel recorded, whose buckets are the same.
    fn from(values: &Values) -> Self {
        let (sum, min, max) = (values.sum, values.min, values.max);
        Self { count: values.buckets.iter().sum(), buckets: values.buckets.clone(), sum, min, max }
    }
}

impl Histogram {
    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        // The index is below BUCKETS for every 64-bit value: tested at both ends.
        if let Some(bucket) = self.buckets.get_mut(bucket_of(value)) {
            *bucket += 1;
        }
        self.count += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Values counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Smallest value, exact. `None` when empty.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// Largest value, exact. `None` when empty.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// Mean, from the exact sum and rounded to the nearest whole. `None` when empty.
    pub fn mean(&self) -> Option<u64> {
        let count = u128::from(self.count);
        (count > 0).then(|| ((self.sum + count / 2) / count) as u64)
    }

    /// The value that `share` (0 to 1) of all values do not exceed, at most 1/32 too large and never
    /// beyond the maximum. `None` when empty.
    pub fn percentile(&self, share: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let rank = ((share.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, &count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Some(upper_end(index).min(self.max).max(self.min));
            }
        }
        Some(self.max)
    }
}

fn bucket_of(value: u64) -> usize {
    if value < STEPS as u64 {
        return value as usize;
    }
    let exponent = value.ilog2();
    let step = (value >> (exponent - STEP_BITS)) as usize & (STEPS - 1);
    ((exponent - STEP_BITS + 1) as usize) * STEPS + step
}

/// Largest value that falls into bucket `index`.
fn upper_end(index: usize) -> u64 {
    if index < STEPS {
        return index as u64;
    }
    let shift = (index / STEPS - 1) as u32;
    let step = (index % STEPS) as u128;
    let above = (STEPS as u128 + step + 1) << shift;
    u64::try_from(above - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket() {
        let mut values: Vec<u64> = (0..2_000).collect();
        for shift in 0..64 {
            let power = 1u64 << shift;
            values.extend([power, power - 1, power | (power >> 1), power.saturating_mul(2) - 1]);
        }
        values.push(u64::MAX);
        for value in values {
            let bucket = bucket_of(value);
            assert!(bucket < BUCKETS, "{value}");
            let end = upper_end(bucket);
            assert!(end >= value, "{value} > {end}");
            assert!(end - value <= value / STEPS as u64, "{value}: {end}");
            assert!(bucket == 0 || upper_end(bucket - 1) < value, "{value}");
        }
    }

    #[test]
    fn percentiles_agree_with_a_sorted_list() {
        let mut histogram = Histogram::default();
        let mut values: Vec<u64> = (0..10_000u64).map(|i| (i * 7_919) % 100_003).collect();
        values.iter().for_each(|&value| histogram.record(value));
        values.sort_unstable();
        assert_eq!(histogram.min(), values.first().copied());
        assert_eq!(histogram.max(), values.last().copied());
        let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
        assert!((histogram.mean().unwrap() as f64 - mean).abs() <= 0.5);
        for share in [0.001, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let exact = values[((share * 10_000.0_f64).ceil() as usize).max(1) - 1];
            let got = histogram.percentile(share).unwrap();
            assert!(got >= exact && got - exact <= exact / 32, "{share}: {got} for {exact}");
        }
    }

    #[test]
    fn merged_histograms_equal_one() {
        let (mut left, mut right, mut whole) =
            (Histogram::default(), Histogram::default(), Histogram::default());
        for value in 0..1_000u64 {
            if value % 3 == 0 {
                left.record(value * value)
            } else {
                right.record(value * value)
            }
            whole.record(value * value);
        }
        left.merge(&right);
        assert_eq!(left.buckets, whole.buckets);
        assert_eq!(
            (left.count, left.sum, left.min, left.max),
            (whole.count, whole.sum, 0, 998_001)
        );
        assert_eq!(Histogram::default().percentile(0.5), None);
    }
}
