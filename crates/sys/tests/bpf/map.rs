//! Tables: what is set is found again.

use sys::Kind;
use sys::bpf::{Map, MapKind, MapSpec, Update, possible_cpus};
use testing::Outcome;

use super::support::with_right;

pub fn arrays_and_hashes_hold_what_was_set() -> Outcome {
    with_right(|| {
        let array = Map::create(&MapSpec::new("array", MapKind::Array, 4, 8, 3))?;
        let mut value = [1; 8];
        assert!(array.get(&2u32.to_ne_bytes(), &mut value)? && value == [0; 8]);
        assert!(!array.get(&3u32.to_ne_bytes(), &mut value)?, "an entry beyond the end");
        array.set(&2u32.to_ne_bytes(), &77u64.to_ne_bytes(), Update::Any)?;
        assert!(array.get(&2u32.to_ne_bytes(), &mut value)? && value == 77u64.to_ne_bytes());
        assert!(array.delete(&2u32.to_ne_bytes()).is_err(), "entries of an array stay");

        for kind in [MapKind::Hash, MapKind::LruHash] {
            let hash = Map::create(&MapSpec::new("hash", kind, 6, 2, 100))?;
            let key = |number: u8| [2, 0, 0, 0, 0, number];
            for number in 0..50 {
                hash.set(&key(number), &[number, 1], Update::New)?;
            }
            let again = hash.set(&key(7), &[0, 0], Update::New).unwrap_err();
            assert_eq!(again.kind(), Kind::Busy);
            let missing = hash.set(&key(60), &[0, 0], Update::Existing).unwrap_err();
            assert_eq!(missing.kind(), Kind::NotFound);
            assert!(hash.delete(&key(9))? && !hash.delete(&key(9))?);
            assert_eq!(keys(&hash)?.len(), 49);
            let mut found = [0; 2];
            assert!(hash.get(&key(8), &mut found)? && found == [8, 1]);
            assert!(!hash.get(&key(9), &mut found)?);
        }
        Ok(())
    })
}

fn keys(map: &Map) -> sys::Result<Vec<Vec<u8>>> {
    let mut keys = Vec::new();
    let mut next = vec![0; map.key_bytes()];
    let mut last: Option<Vec<u8>> = None;
    while map.next_key(last.as_deref(), &mut next)? {
        keys.push(next.clone());
        last = Some(next.clone());
    }
    Ok(keys)
}

pub fn values_per_cpu_are_as_many_as_the_kernel_has() -> Outcome {
    with_right(|| {
        let cpus = possible_cpus()?;
        let told = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
        let last = told.trim().rsplit(['-', ',']).next().unwrap().parse::<usize>()?;
        assert_eq!(cpus, last + 1, "CPUs are numbered without gaps here: {told}");
        let map = Map::create(&MapSpec::new("counts", MapKind::PerCpuArray, 4, 12, 2))?;
        assert_eq!(map.value_bytes(), 16 * cpus, "each value is rounded up to 8 bytes");
        let values: Vec<u8> = (0..16 * cpus).map(|place| place as u8).collect();
        map.set(&1u32.to_ne_bytes(), &values, Update::Any)?;
        let mut found = vec![0xff; values.len()];
        assert!(map.get(&1u32.to_ne_bytes(), &mut found)?);
        for cpu in 0..cpus {
            assert_eq!(found[16 * cpu..][..12], values[16 * cpu..][..12], "CPU {cpu}");
        }
        Ok(())
    })
}

pub fn the_longest_prefix_is_found() -> Outcome {
    with_right(|| {
        let map = Map::create(&MapSpec::new("routes", MapKind::LpmTrie, 8, 4, 10))?;
        let key =
            |bits: u32, address: [u8; 4]| -> Vec<u8> { [bits.to_ne_bytes(), address].concat() };
        map.set(&key(8, [10, 0, 0, 0]), &[8; 4], Update::Any)?;
        map.set(&key(24, [10, 1, 2, 0]), &[24; 4], Update::Any)?;
        let mut value = [0; 4];
        for (address, expected) in [([10, 1, 2, 3], 24), ([10, 1, 3, 3], 8)] {
            assert!(map.get(&key(32, address), &mut value)?);
            assert_eq!(value, [expected; 4], "{address:?}");
        }
        assert!(!map.get(&key(32, [11, 0, 0, 1]), &mut value)?);
        Ok(())
    })
}

pub fn wrong_lengths_are_refused() -> Outcome {
    with_right(|| {
        let map = Map::create(&MapSpec::new("array", MapKind::Array, 4, 8, 1))?;
        let key = 0u32.to_ne_bytes();
        let errors = [
            map.get(&key[..3], &mut [0; 8]).unwrap_err(),
            map.get(&key, &mut [0; 7]).unwrap_err(),
            map.set(&key, &[0; 9], Update::Any).unwrap_err(),
            map.next_key(Some(&key), &mut [0; 5]).unwrap_err(),
            map.next_key(None, &mut [0; 3]).unwrap_err(),
            map.delete(&[]).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), Kind::Invalid, "{error}");
            assert!(error.to_string().contains("the map array: a "), "{error}");
        }
        let error = Map::create(&MapSpec::new("array", MapKind::Array, 5, 8, 1)).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid, "{error}");
        Ok(())
    })
}

pub fn a_full_map_says_so() -> Outcome {
    with_right(|| {
        let map = Map::create(&MapSpec::new("flows", MapKind::Hash, 4, 4, 2))?;
        for number in 0..2u32 {
            map.set_number(number, number)?;
        }
        let error = map.set_number(2, 2).unwrap_err();
        assert_eq!(error.kind(), Kind::NoSpace);
        assert!(error.to_string().ends_with("room for 2 entries: make it larger"), "{error}");
        Ok(())
    })
}
