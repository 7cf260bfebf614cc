use std::io::{self, IoSlice, Write};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;

/// Accepts at most `room` bytes per write.
struct Narrow {
    room: usize,
    bytes: Vec<u8>,
    writes: usize,
}

impl Write for Narrow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.writes += 1;
        let before = self.bytes.len();
        for slice in slices {
            let left = self.room - (self.bytes.len() - before);
            self.bytes.extend_from_slice(&slice[..slice.len().min(left)]);
        }
        Ok(self.bytes.len() - before)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Clone, Debug)]
enum Step {
    Copy(usize),
    Share(usize),
    Encode(usize),
    Write(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0usize..300).prop_map(Step::Copy),
        (0usize..3000).prop_map(Step::Share),
        prop_oneof![0usize..300, 60_000usize..70_000].prop_map(Step::Encode),
        prop_oneof![0usize..50, 0usize..100_000].prop_map(Step::Write),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn all_bytes_leave_in_order_with_writes_of_any_length(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut pool = BufferPool::default();
        let mut output: Output<Arc<[u8]>> = Output::new();
        let mut sink = Narrow { room: 0, bytes: Vec::new(), writes: 0 };
        let mut expected: Vec<u8> = Vec::new();
        let mut next = 0u8;
        let mut bytes = |len: usize| -> Vec<u8> {
            (0..len).map(|_| { next = next.wrapping_mul(5).wrapping_add(1); next }).collect()
        };
        for step in steps {
            match step {
                Step::Copy(len) => {
                    let bytes = bytes(len);
                    output.prepare(&mut pool);
                    output.extend_from_slice(&bytes);
                    expected.extend_from_slice(&bytes);
                }
                Step::Share(len) => {
                    let bytes = bytes(len);
                    output.prepare(&mut pool);
                    output.push_shared(Arc::from(bytes.as_slice()));
                    expected.extend_from_slice(&bytes);
                }
                Step::Encode(len) => {
                    let bytes = bytes(len);
                    output.prepare(&mut pool);
                    output.as_vec_mut().extend_from_slice(&bytes);
                    expected.extend_from_slice(&bytes);
                }
                Step::Write(room) => {
                    if !output.is_empty() {
                        sink.room = room;
                        let written = output.write_to(&mut sink, &mut pool).unwrap();
                        prop_assert!(written.taken <= written.offered);
                    }
                }
            }
            prop_assert_eq!(output.len_bytes(), expected.len() - sink.bytes.len());
            prop_assert_eq!(output.is_empty(), output.len_bytes() == 0);
        }
        sink.room = usize::MAX;
        while !output.is_empty() {
            output.write_to(&mut sink, &mut pool).unwrap();
        }
        prop_assert!(sink.bytes == expected);
        output.clear(&mut pool);
        prop_assert_eq!(output.tail.capacity() + output.len_bytes() + output.owned_bytes(), 0);
    }
}

#[test]
fn one_write_takes_copied_and_shared_bytes_together() {
    let mut pool = BufferPool::default();
    let mut output: Output<Arc<[u8]>> = Output::new();
    for _ in 0..10 {
        output.prepare(&mut pool);
        output.extend_from_slice(b"head");
        output.push_shared(Arc::from(&b"payload"[..]));
    }
    let mut sink = Narrow { room: usize::MAX, bytes: Vec::new(), writes: 0 };
    output.write_to(&mut sink, &mut pool).unwrap();
    assert_eq!(sink.writes, 1);
    assert_eq!(sink.bytes, b"headpayload".repeat(10));
    assert!(output.is_empty());
}

#[test]
fn an_encoder_may_remove_bytes_that_it_has_appended() {
    let mut pool = BufferPool::default();
    let mut output: Output<Arc<[u8]>> = Output::new();
    output.prepare(&mut pool);
    output.extend_from_slice(b"written and kept");
    let mut sink = Narrow { room: 7, bytes: Vec::new(), writes: 0 };
    output.write_to(&mut sink, &mut pool).unwrap();
    output.prepare(&mut pool);
    let before = output.as_vec_mut().len();
    output.extend_from_slice(b" and taken back");
    output.as_vec_mut().truncate(before);
    sink.room = usize::MAX;
    output.write_to(&mut sink, &mut pool).unwrap();
    assert_eq!(sink.bytes, b"written and kept");
    assert_eq!(output.len_bytes(), 0);
}

#[test]
fn drained_bytes_begin_after_the_written_ones() {
    let mut pool = BufferPool::default();
    let mut output: Output<Arc<[u8]>> = Output::new();
    output.extend_from_slice(b"abc");
    output.push_shared(Arc::from(&b"def"[..]));
    output.extend_from_slice(b"ghi");
    let mut sink = Narrow { room: 4, bytes: Vec::new(), writes: 0 };
    output.write_to(&mut sink, &mut pool).unwrap();
    let mut rest = Vec::new();
    output
        .drain_into(&mut pool, |bytes| {
            rest.extend_from_slice(bytes);
            Ok::<(), ()>(())
        })
        .unwrap();
    assert_eq!(rest, b"efghi");
    assert!(output.is_empty());
}
