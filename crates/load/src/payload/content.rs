//! Generates and checks the payloads of all streams.

use std::sync::Arc;

use super::{
    Facts, HEADER_BYTES, Header, JMETER_SEPARATOR, JMETER_STAMP_BYTES, PRINTABLE_BYTES, Payload,
    Pool, Template,
};

/// Places in the random text at which fillers of JMeter's form begin: streams take them in turn, in
/// steps that have no divisor in common with it.
const FILLERS: usize = 1024;
const FILLER_STEP: usize = 37;

/// The data that the payloads of all streams share.
#[derive(Debug)]
pub(crate) struct Contents {
    pool: Pool,
    zeros: Vec<u8>,
    /// Random text of JMeter's alphabet.
    text: Vec<u8>,
    seed: u64,
    unix_offset_ns: u64,
    /// Whether some stream has printable headers.
    pub(crate) any_printable: bool,
}

/// The content of the messages of one stream.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub(crate) kind: ContentKind,
    client: Box<str>,
}

#[derive(Debug, Clone)]
pub(crate) enum ContentKind {
    Random { bytes: usize },
    Zeros { bytes: usize },
    Text(Arc<Template>),
    Jmeter { bytes: usize, timestamp: bool },
}

impl Content {
    pub(crate) fn new(payload: &Payload, client: &str) -> Self {
        let mut name = "";
        let kind = match payload {
            Payload::Random { bytes } => ContentKind::Random { bytes: *bytes as usize },
            Payload::Zeros { bytes } => ContentKind::Zeros { bytes: *bytes as usize },
            Payload::Text(template) => {
                name = client;
                ContentKind::Text(Arc::clone(template))
            }
            Payload::Jmeter { bytes, timestamp } => {
                ContentKind::Jmeter { bytes: *bytes as usize, timestamp: *timestamp }
            }
        };
        Self { kind, client: name.into() }
    }

    /// Size of each payload; `None` where it varies.
    pub(crate) const fn fixed_bytes(&self) -> Option<usize> {
        match self.kind {
            ContentKind::Random { bytes } | ContentKind::Zeros { bytes } => Some(bytes),
            ContentKind::Jmeter { bytes, timestamp: false } => Some(bytes),
            ContentKind::Jmeter { bytes, timestamp: true } => Some(JMETER_STAMP_BYTES + bytes),
            ContentKind::Text(_) => None,
        }
    }
}

impl Contents {
    /// The data for streams with these contents; `unix_offset_ns` is Unix time minus
    /// CLOCK_MONOTONIC.
    pub(crate) fn new<'a>(
        seed: u64,
        unix_offset_ns: u64,
        all: impl Iterator<Item = &'a Content>,
    ) -> Self {
        /// The alphabet of mqtt-jmeter's random strings.
        const ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxmy012345678";
        let (mut random, mut zeros, mut text, mut any_printable) = (0, 0, 0, false);
        for content in all {
            match &content.kind {
                ContentKind::Random { bytes } => random = random.max(*bytes),
                ContentKind::Zeros { bytes } => zeros = zeros.max(*bytes),
                ContentKind::Text(_) => any_printable = true,
                ContentKind::Jmeter { bytes, .. } => {
                    text = text.max(*bytes);
                    any_printable = true;
                }
            }
        }
        let mut rng = fastrand::Rng::with_seed(seed);
        let text = if text == 0 { 0 } else { text + FILLERS };
        let text = (0..text).map(|_| ALPHABET[rng.usize(..ALPHABET.len())]).collect();
        let pool = Pool::new(seed, random);
        Self { pool, zeros: vec![0; zeros], text, seed, unix_offset_ns, any_printable }
    }

    /// Appends the payload of a message of the stream with this content and topic.
    #[inline]
    pub(crate) fn write(&self, content: &Content, topic: &str, header: &Header, out: &mut Vec<u8>) {
        match content.kind {
            ContentKind::Random { bytes } => self.pool.write(header, bytes, out),
            _ => self.write_other(content, topic, header, out),
        }
    }

    fn write_other(&self, content: &Content, topic: &str, header: &Header, out: &mut Vec<u8>) {
        match &content.kind {
            ContentKind::Random { bytes } => self.pool.write(header, *bytes, out),
            ContentKind::Zeros { bytes } => {
                out.extend_from_slice(&header.encode());
                out.extend_from_slice(&self.zeros[..bytes - HEADER_BYTES]);
            }
            ContentKind::Text(template) => {
                let facts = Facts {
                    header,
                    client: &content.client,
                    topic,
                    seed: self.seed,
                    unix_offset_ns: self.unix_offset_ns,
                };
                template.write(&facts, out);
            }
            ContentKind::Jmeter { bytes, timestamp } => {
                if *timestamp {
                    self.stamp(header, out);
                }
                header.write_printable(out);
                // Invariant: the text is longer than the largest message by `FILLERS`.
                let from = header.stream.index() * FILLER_STEP % FILLERS;
                out.extend_from_slice(&self.text[from..][..bytes - PRINTABLE_BYTES]);
            }
        }
    }

    fn stamp(&self, header: &Header, out: &mut Vec<u8>) {
        use std::io::Write as _;
        let unix_ms = header.sent_ns().wrapping_add(self.unix_offset_ns) / 1_000_000;
        // Invariant: writing to memory does not fail.
        write!(out, "{unix_ms:013}{JMETER_SEPARATOR}").expect("a vector takes everything");
    }

    /// Reads the header of a message of this run. `hint` is its position in the last text.
    #[inline]
    pub(crate) fn decode(&self, payload: &[u8], run: u32, hint: &mut usize) -> Option<Header> {
        let header = Header::decode(payload).filter(|header| header.run == run);
        if header.is_some() || !self.any_printable {
            return header;
        }
        Header::find_printable(payload, hint).filter(|header| header.run == run)
    }

    /// Whether `payload` is what [`Contents::write`] generates from its header.
    #[inline]
    pub(crate) fn is_intact(
        &self,
        content: &Content,
        topic: &str,
        header: &Header,
        payload: &[u8],
        scratch: &mut Vec<u8>,
    ) -> bool {
        match content.kind {
            ContentKind::Random { bytes } => self.pool.is_intact(header, payload, bytes),
            _ => {
                scratch.clear();
                self.write_other(content, topic, header, scratch);
                scratch == payload
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::StreamIndex;

    const HEADER: Header = Header {
        run: 3,
        stream: StreamIndex::new(4),
        seq: 5,
        probe: false,
        intended_ns: 7_000_000,
        late_us: 8,
    };

    fn written(payload: &Payload) -> (Contents, Content, Vec<u8>) {
        let content = Content::new(payload, "client");
        let contents = Contents::new(1, 1_600_000_000_000_000_000, [&content].into_iter());
        let mut out = Vec::new();
        contents.write(&content, "topic", &HEADER, &mut out);
        (contents, content, out)
    }

    #[test]
    fn every_kind_is_written_found_and_checked() {
        let template = Template::parse("{{client}} {{time_ns}} {{random 1 6}}").expect("parses");
        for payload in [
            Payload::Random { bytes: 100 },
            Payload::Zeros { bytes: 24 },
            Payload::Zeros { bytes: 100 },
            Payload::Text(Arc::new(template)),
            Payload::Jmeter { bytes: 128, timestamp: true },
            Payload::Jmeter { bytes: 44, timestamp: false },
        ] {
            let (contents, content, mut out) = written(&payload);
            let len = content.fixed_bytes().unwrap_or(out.len());
            assert_eq!(out.len(), len, "{payload:?}");
            assert!(out.len() <= payload.bytes_max("client", "topic"));
            assert_eq!(contents.decode(&out, 3, &mut 0), Some(HEADER), "{payload:?}");
            assert_eq!(contents.decode(&out, 2, &mut 0), None);
            let mut scratch = Vec::new();
            assert!(contents.is_intact(&content, "topic", &HEADER, &out, &mut scratch));
            let last = out.len() - 1;
            out[last] ^= 1;
            assert!(!contents.is_intact(&content, "topic", &HEADER, &out, &mut scratch));
        }
    }

    /// A thread of JMeter draws its text once and sends it with all its messages.
    #[test]
    fn jmeter_payloads_differ_between_publishers_and_not_between_messages() {
        let content = Content::new(&Payload::Jmeter { bytes: 128, timestamp: false }, "client");
        let contents = Contents::new(1, 0, [&content].into_iter());
        let filler = |stream, seq| {
            let header = Header { stream: StreamIndex::new(stream), seq, ..HEADER };
            let mut out = Vec::new();
            contents.write(&content, "topic", &header, &mut out);
            out.split_off(PRINTABLE_BYTES)
        };
        assert_eq!(filler(4, 1), filler(4, 2));
        let all: std::collections::BTreeSet<_> =
            (0..1_000).map(|stream| filler(stream, 1)).collect();
        assert_eq!(all.len(), 1_000);
    }

    #[test]
    fn jmeter_payloads_have_its_format() {
        let (_, _, out) = written(&Payload::Jmeter { bytes: 128, timestamp: true });
        let text = String::from_utf8(out).expect("is text");
        let (stamp, rest) = text.split_once("ts_sep_flag").expect("has the separator");
        assert_eq!(stamp, "1600000000007");
        assert_eq!(rest.len(), 128);
        assert!(rest.bytes().all(|byte| matches!(byte, b'a'..=b'y' | b'0'..=b'8')));
    }
}
