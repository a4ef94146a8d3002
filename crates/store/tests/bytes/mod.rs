//! Captures put together byte by byte, independently of the crate's writers, in either byte order.

#![allow(dead_code, reason = "each test program uses a part")]

use std::io::Cursor;

use store::pcapng::ByteOrder;
use store::{CaptureReader, StoreError};

/// A capture file under construction, and where its records begin.
#[derive(Clone)]
pub struct File {
    pub order: ByteOrder,
    pub bytes: Vec<u8>,
    /// Begin of each block or record, and whether it is a packet.
    pub parts: Vec<(usize, bool)>,
}

pub type RawOptions<'a> = &'a [(u16, Vec<u8>)];

impl File {
    pub fn new(order: ByteOrder) -> Self {
        Self { order, bytes: Vec::new(), parts: Vec::new() }
    }

    pub fn n16(&self, value: u16) -> [u8; 2] {
        match self.order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        }
    }

    pub fn n32(&self, value: u32) -> [u8; 4] {
        match self.order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        }
    }

    pub fn n64(&self, value: u64) -> [u8; 8] {
        match self.order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        }
    }

    pub fn time(&self, ticks: u64) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&self.n32((ticks >> 32) as u32));
        bytes[4..].copy_from_slice(&self.n32(ticks as u32));
        bytes
    }

    fn pad(bytes: &mut Vec<u8>) {
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }

    fn options(&self, body: &mut Vec<u8>, options: RawOptions<'_>) {
        for (code, value) in options {
            body.extend(self.n16(*code));
            body.extend(self.n16(value.len() as u16));
            body.extend(value);
            Self::pad(body);
        }
        if !options.is_empty() {
            body.extend([0; 4]);
        }
    }

    pub fn block(&mut self, block_type: u32, body: &[u8]) -> &mut Self {
        self.parts.push((self.bytes.len(), matches!(block_type, 2 | 3 | 6)));
        let mut body = body.to_vec();
        Self::pad(&mut body);
        let length = self.n32(body.len() as u32 + 12);
        let block_type = self.n32(block_type);
        for part in [&block_type[..], &length, &body, &length] {
            self.bytes.extend(part);
        }
        self
    }

    pub fn section(&mut self, order: ByteOrder, options: RawOptions<'_>) -> &mut Self {
        self.order = order;
        let mut body = self.n32(0x1a2b_3c4d).to_vec();
        body.extend(self.n16(1));
        body.extend(self.n16(0));
        body.extend([0xff; 8]);
        self.options(&mut body, options);
        self.block(0x0a0d_0d0a, &body)
    }

    pub fn interface(&mut self, link: u16, snap: u32, options: RawOptions<'_>) -> &mut Self {
        let mut body = self.n16(link).to_vec();
        body.extend([0; 2]);
        body.extend(self.n32(snap));
        self.options(&mut body, options);
        self.block(1, &body)
    }

    pub fn enhanced(
        &mut self,
        interface: u32,
        ticks: u64,
        data: &[u8],
        original: u32,
        options: RawOptions<'_>,
    ) -> &mut Self {
        let mut body = self.n32(interface).to_vec();
        body.extend(self.time(ticks));
        body.extend(self.n32(data.len() as u32));
        body.extend(self.n32(original));
        body.extend(data);
        Self::pad(&mut body);
        self.options(&mut body, options);
        self.block(6, &body)
    }

    pub fn simple(&mut self, original: u32, data: &[u8]) -> &mut Self {
        let mut body = self.n32(original).to_vec();
        body.extend(data);
        self.block(3, &body)
    }

    pub fn obsolete(
        &mut self,
        interface: u16,
        drops: u16,
        ticks: u64,
        data: &[u8],
        original: u32,
        options: RawOptions<'_>,
    ) -> &mut Self {
        let mut body = self.n16(interface).to_vec();
        body.extend(self.n16(drops));
        body.extend(self.time(ticks));
        body.extend(self.n32(data.len() as u32));
        body.extend(self.n32(original));
        body.extend(data);
        Self::pad(&mut body);
        self.options(&mut body, options);
        self.block(2, &body)
    }

    pub fn statistics(&mut self, interface: u32, ticks: u64, options: RawOptions<'_>) -> &mut Self {
        let mut body = self.n32(interface).to_vec();
        body.extend(self.time(ticks));
        self.options(&mut body, options);
        self.block(5, &body)
    }

    pub fn pcap_header(&mut self, magic: u32, snap: u32, link_field: u32) -> &mut Self {
        self.parts.push((0, false));
        let words = [magic, 0, 0, 0, snap, link_field].map(|word| self.n32(word));
        self.bytes.extend(words.concat());
        let version = [self.n16(2), self.n16(4)].concat();
        self.bytes[4..8].copy_from_slice(&version);
        self
    }

    /// `extra` follows the usual 16 bytes of a record's header.
    pub fn pcap_record(
        &mut self,
        seconds: u32,
        fraction: u32,
        data: &[u8],
        original: u32,
        extra: &[u8],
    ) -> &mut Self {
        self.parts.push((self.bytes.len(), true));
        let words = [seconds, fraction, data.len() as u32, original].map(|word| self.n32(word));
        self.bytes.extend(words.concat());
        self.bytes.extend(extra);
        self.bytes.extend(data);
        self
    }
}

/// A record that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    pub time_ns: u64,
    pub data: Vec<u8>,
    pub original_length: u32,
    pub interface: u32,
    pub flags: u32,
    pub queue: Option<u32>,
    pub drop_count: Option<u64>,
}

impl Owned {
    pub fn from_record(record: &store::Record<'_>) -> Self {
        Self {
            time_ns: record.time_ns,
            data: record.data.to_vec(),
            original_length: record.original_length,
            interface: record.interface,
            flags: record.flags.0,
            queue: record.queue,
            drop_count: record.drop_count,
        }
    }

    pub fn record(&self) -> store::Record<'_> {
        store::Record {
            time_ns: self.time_ns,
            data: &self.data,
            original_length: self.original_length,
            interface: self.interface,
            flags: store::PacketFlags(self.flags),
            queue: self.queue,
            drop_count: self.drop_count,
        }
    }
}

/// All that reading gives: the records, how it ended, and the reader.
pub struct Outcome {
    pub records: Vec<Owned>,
    pub error: Option<StoreError>,
    pub reader: Option<CaptureReader>,
}

pub fn read(bytes: &[u8]) -> Outcome {
    read_from(Cursor::new(bytes.to_vec()))
}

pub fn read_from(source: impl std::io::Read + Send + 'static) -> Outcome {
    let mut outcome = Outcome { records: Vec::new(), error: None, reader: None };
    let mut reader = match CaptureReader::new(source, "made.pcap") {
        Ok(reader) => reader,
        Err(error) => return Outcome { error: Some(error), ..outcome },
    };
    loop {
        match reader.next_record() {
            Ok(Some(record)) => outcome.records.push(Owned::from_record(&record)),
            Ok(None) => break,
            Err(error) => {
                outcome.error = Some(error);
                assert!(reader.next_record().unwrap().is_none(), "an error is the end");
                break;
            }
        }
    }
    assert_eq!(reader.packets(), outcome.records.len() as u64);
    outcome.reader = Some(reader);
    outcome
}
