//! Tables that programs and this process share.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::call::{self, NAME_BYTES, call, call_for_file};
use super::{counters, rights};
use crate::{Error, Kind, Result};

/// Kinds of maps, by the numbers of `enum bpf_map_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum MapKind {
    /// Any key, found by hashing.
    Hash = 1,
    /// Numbers from 0 on; all entries exist.
    Array = 2,
    /// Programs to continue with, by number; a value is a program's descriptor.
    ProgramArray = 3,
    /// [`MapKind::Hash`] with one value per CPU.
    PerCpuHash = 5,
    /// [`MapKind::Array`] with one value per CPU.
    PerCpuArray = 6,
    /// [`MapKind::Hash`] that forgets what was not used for long when it is full.
    LruHash = 9,
    /// [`MapKind::LruHash`] with one value per CPU.
    LruPerCpuHash = 10,
    /// The longest of the prefixes that match: a key is the number of its bits, then the bytes.
    LpmTrie = 11,
    /// Interfaces to redirect to, by number; a value is an interface's number.
    DevMap = 14,
    /// CPUs to redirect to; a value is the length of the queue there.
    CpuMap = 16,
    /// AF_XDP sockets to redirect to, by number; a value is a socket's descriptor.
    XskMap = 17,
    /// [`MapKind::DevMap`] with any number as key.
    DevMapHash = 25,
}

impl MapKind {
    fn is_per_cpu(self) -> bool {
        matches!(self, Self::PerCpuHash | Self::PerCpuArray | Self::LruPerCpuHash)
    }
}

/// Entries are made when they are set, as [`MapKind::LpmTrie`] demands (`BPF_F_NO_PREALLOC`).
const NO_PREALLOCATION: u32 = 1;
/// The values can be mapped into memory (`BPF_F_MMAPABLE`).
const MAPPABLE: u32 = 1 << 10;

/// What a map is to be like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapSpec<'a> {
    /// Name for those who list maps; cut to 15 bytes.
    pub name: &'a str,
    /// Its kind.
    pub kind: MapKind,
    /// Bytes of a key; 4 for all kinds with numbers.
    pub key_bytes: u32,
    /// Bytes of a value, of one CPU where each has its own.
    pub value_bytes: u32,
    /// Entries at most.
    pub entries_max: u32,
    /// Whether [`super::SharedArray`] may map its values; [`MapKind::Array`] only.
    pub is_mappable: bool,
}

impl<'a> MapSpec<'a> {
    /// A map that is not mappable.
    pub fn new(
        name: &'a str,
        kind: MapKind,
        key_bytes: u32,
        value_bytes: u32,
        entries_max: u32,
    ) -> Self {
        Self { name, kind, key_bytes, value_bytes, entries_max, is_mappable: false }
    }

    /// An array of `entries` values that can be mapped.
    pub fn mappable(name: &'a str, value_bytes: u32, entries: u32) -> Self {
        Self { is_mappable: true, ..Self::new(name, MapKind::Array, 4, value_bytes, entries) }
    }
}

/// Whether an entry may exist already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u64)]
pub enum Update {
    /// Make it or replace it.
    #[default]
    Any = 0,
    /// Only make it.
    New = 1,
    /// Only replace it.
    Existing = 2,
}

/// A map. It exists as long as this value, a program or another descriptor refers to it.
#[derive(Debug)]
pub struct Map {
    file: OwnedFd,
    name: String,
    kind: MapKind,
    key_bytes: usize,
    /// Bytes of one value, as the kernel hands it over.
    value_bytes: usize,
    /// Values of one entry.
    values: usize,
    entries_max: u32,
    is_mappable: bool,
}

/// `BPF_MAP_CREATE`.
#[repr(C)]
struct Creation {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries_max: u32,
    flags: u32,
    inner_map: u32,
    numa_node: u32,
    name: [u8; NAME_BYTES],
}

/// `BPF_MAP_*_ELEM`.
#[repr(C)]
struct Element {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

impl Map {
    /// Makes an empty map, or one full of zeros for the kinds whose entries all exist.
    ///
    /// # Errors
    /// [`Kind::Permission`] without `CAP_BPF` (and `CAP_NET_ADMIN` for maps to redirect to);
    /// [`Kind::Invalid`] for sizes that the kind does not have; `ENOMEM` and `E2BIG` for too many entries.
    pub fn create(spec: &MapSpec<'_>) -> Result<Self> {
        let values = if spec.kind.is_per_cpu() { counters::possible_cpus()? } else { 1 };
        Self::create_with_cpus(spec, values)
    }

    pub(super) fn create_with_cpus(spec: &MapSpec<'_>, values: usize) -> Result<Self> {
        let flags = if spec.is_mappable { MAPPABLE } else { 0 }
            | if spec.kind == MapKind::LpmTrie { NO_PREALLOCATION } else { 0 };
        let mut creation = Creation {
            kind: spec.kind as u32,
            key_bytes: spec.key_bytes,
            value_bytes: spec.value_bytes,
            entries_max: spec.entries_max,
            flags,
            inner_map: 0,
            numa_node: 0,
            name: call::name_bytes(spec.name),
        };
        // SAFETY: the structure is the beginning of the command's part of `union bpf_attr`, without
        // padding or addresses; the command returns a new descriptor.
        let file = unsafe { call_for_file(call::MAP_CREATE, &mut creation) }
            .map_err(|source| refused(spec, source))?;
        let value_bytes = match spec.kind.is_per_cpu() {
            // The value of each CPU begins at a multiple of 8 (bpf_percpu_array_copy).
            true => (spec.value_bytes as usize).next_multiple_of(8),
            false => spec.value_bytes as usize,
        };
        Ok(Self {
            file,
            name: spec.name.to_owned(),
            kind: spec.kind,
            key_bytes: spec.key_bytes as usize,
            value_bytes,
            values,
            entries_max: spec.entries_max,
            is_mappable: spec.is_mappable,
        })
    }

    /// Its name as it was asked for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its kind.
    pub fn kind(&self) -> MapKind {
        self.kind
    }

    /// Bytes of a key.
    pub fn key_bytes(&self) -> usize {
        self.key_bytes
    }

    /// Bytes that [`Map::get`] and [`Map::set`] hand over: those of one value, or where each CPU has its
    /// own those of all, each rounded up to a multiple of 8.
    pub fn value_bytes(&self) -> usize {
        self.value_bytes * self.values
    }

    /// Entries at most.
    pub fn entries_max(&self) -> u32 {
        self.entries_max
    }

    pub(super) fn is_mappable(&self) -> bool {
        self.is_mappable
    }

    /// Copies an entry's value; false if there is none.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for lengths that the map does not have; [`Kind::Unsupported`] for kinds that
    /// cannot be read ([`MapKind::XskMap`] before Linux 5.1, [`MapKind::ProgramArray`]).
    pub fn get(&self, key: &[u8], value: &mut [u8]) -> Result<bool> {
        let action = || self.action("reading an entry of");
        self.check(&action, key, Some(value.len()))?;
        // SAFETY: key and value have the lengths that the kernel reads and writes, checked above.
        match unsafe { self.element(call::MAP_LOOKUP_ELEM, key, value.as_mut_ptr().addr(), 0) } {
            Ok(()) => Ok(true),
            Err(error) if is_missing(&error) => Ok(false),
            Err(error) => Err(Error::new(action(), error)),
        }
    }

    /// Sets an entry's value, of all CPUs where each has its own.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for lengths that the map does not have; [`Kind::Busy`] and [`Kind::NotFound`]
    /// as `update` says; `E2BIG` when the map is full or the number is beyond its end; for maps of
    /// descriptors what the kernel says of the descriptor.
    pub fn set(&self, key: &[u8], value: &[u8], update: Update) -> Result<()> {
        let action = || self.action("setting an entry of");
        self.check(&action, key, Some(value.len()))?;
        let address = value.as_ptr().addr();
        // SAFETY: key and value have the lengths that the kernel reads, checked above; it writes none.
        unsafe { self.element(call::MAP_UPDATE_ELEM, key, address, update as u64) }.map_err(
            |source| {
                let full = source.raw_os_error() == Some(libc::E2BIG);
                let error = Error::new(action(), source);
                if full {
                    let remedy = format!(
                        "the map has room for {} entries: make it larger",
                        self.entries_max
                    );
                    return error.with_kind(Kind::NoSpace).remedy(remedy);
                }
                error
            },
        )
    }

    /// Removes an entry; false if there was none.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for the wrong length, and for [`MapKind::Array`], whose entries stay.
    pub fn delete(&self, key: &[u8]) -> Result<bool> {
        let action = || self.action("removing an entry of");
        self.check(&action, key, None)?;
        // SAFETY: the key has the length that the kernel reads, checked above; there is no value.
        match unsafe { self.element(call::MAP_DELETE_ELEM, key, 0, 0) } {
            Ok(()) => Ok(true),
            Err(error) if is_missing(&error) => Ok(false),
            Err(error) => Err(Error::new(action(), error)),
        }
    }

    /// Writes the key after `key` (or the first one) to `next`, in the kernel's own order; false after
    /// the last. A key that was removed meanwhile makes it begin anew.
    ///
    /// # Errors
    /// [`Kind::Invalid`] for lengths that the map does not have; [`Kind::Unsupported`] where keys cannot be
    /// listed.
    pub fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result<bool> {
        let action = || self.action("listing the keys of");
        self.check(&action, key.unwrap_or(next), None)?;
        self.check(&action, next, None)?;
        let mut element = Element {
            map: self.number(),
            padding: 0,
            key: key.map_or(0, |key| key.as_ptr().addr() as u64),
            value: next.as_mut_ptr().addr() as u64,
            flags: 0,
        };
        // SAFETY: the structure is the command's; both keys have the length that the kernel reads and
        // writes, checked above.
        match unsafe { call(call::MAP_GET_NEXT_KEY, &mut element) } {
            Ok(_) => Ok(true),
            Err(error) if is_missing(&error) => Ok(false),
            Err(error) => Err(Error::new(action(), error)),
        }
    }

    /// Sets entry `place` of a map of descriptors: a socket, a program.
    ///
    /// # Errors
    /// As [`Map::set`]; `EBADF`, `EINVAL` or `EOPNOTSUPP` for a file of another kind.
    pub fn set_file(&self, place: u32, file: BorrowedFd<'_>) -> Result<()> {
        self.set(&place.to_ne_bytes(), &file.as_raw_fd().to_ne_bytes(), Update::Any)
    }

    /// Sets entry `place` of a map of numbers, such as an interface's.
    ///
    /// # Errors
    /// As [`Map::set`].
    pub fn set_number(&self, place: u32, number: u32) -> Result<()> {
        self.set(&place.to_ne_bytes(), &number.to_ne_bytes(), Update::Any)
    }

    pub(super) fn number(&self) -> u32 {
        self.file.as_raw_fd().cast_unsigned()
    }

    fn action(&self, doing: &str) -> String {
        format!("{doing} the map {}", self.name)
    }

    fn check(
        &self,
        action: &dyn Fn() -> String,
        key: &[u8],
        value_bytes: Option<usize>,
    ) -> Result<()> {
        let wrong = |what: &str, has: usize, given: usize| {
            let source = io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("a {what} of it has {has} bytes, not {given}"),
            );
            Err(Error::new(action(), source).with_kind(Kind::Invalid))
        };
        if key.len() != self.key_bytes {
            return wrong("key", self.key_bytes, key.len());
        }
        match value_bytes {
            Some(given) if given != self.value_bytes() => wrong("value", self.value_bytes(), given),
            _ => Ok(()),
        }
    }

    /// # Safety
    /// `key` has the length of the map's keys, and `value` is the address of a value of its length, for
    /// reading or writing as the command does, or 0 for a command without value.
    unsafe fn element(&self, command: u32, key: &[u8], value: usize, flags: u64) -> io::Result<()> {
        let mut element = Element {
            map: self.number(),
            padding: 0,
            key: key.as_ptr().addr() as u64,
            value: value as u64,
            flags,
        };
        // SAFETY: the structure is the command's part of `union bpf_attr`, all of it set; the addresses
        // are the caller's promise.
        unsafe { call(command, &mut element) }.map(drop)
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn is_missing(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOENT)
}

fn refused(spec: &MapSpec<'_>, source: io::Error) -> Error {
    let action =
        format!("making the map {} ({:?}, {} entries)", spec.name, spec.kind, spec.entries_max);
    let error = Error::new(action, source);
    match error.errno() {
        Some(libc::EPERM) => rights::explained(error),
        Some(libc::E2BIG | libc::ENOMEM) => error.with_kind(Kind::NoSpace).remedy(
            "make it smaller, or allow the process more memory (memory.max of its control group)",
        ),
        Some(libc::EINVAL) => error.remedy(
            "the kernel has no such map, or not of these sizes: a newer kernel may have it",
        ),
        Some(libc::ENOSYS) => {
            error.remedy("this kernel has no bpf(2): it needs CONFIG_BPF_SYSCALL")
        }
        _ => error,
    }
}
