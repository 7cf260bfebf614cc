use proptest::prelude::*;

use super::*;

pub(super) fn any_header() -> impl Strategy<Value = Header> {
    (0..1u32 << 24, 0..PROBE, any::<u32>(), any::<bool>(), any::<u64>(), any::<u32>()).prop_map(
        |(run, stream, seq, probe, intended_ns, late_us)| Header {
            run,
            stream: StreamIndex::new(stream),
            seq,
            probe,
            intended_ns,
            late_us,
        },
    )
}

#[test]
fn layout_is_as_documented() {
    let header = Header {
        run: 0x01_02_03,
        stream: StreamIndex::new(0x04_05_06_07),
        seq: 0x08_09_0A_0B,
        probe: false,
        intended_ns: 0x10_11_12_13_14_15_16_17,
        late_us: 0x0C_0D_0E_0F,
    };
    let mut expected: Vec<u8> = (0..0x18).collect();
    expected[0] = MAGIC;
    assert_eq!(header.encode(), expected[..]);
}

#[test]
fn fill_is_not_zeros_and_differs_between_messages() {
    let pool = Pool::new(1, 128);
    let stream = StreamIndex::default();
    let (first, second) = (pool.fill(stream, 0, 128).to_vec(), pool.fill(stream, 1, 128).to_vec());
    assert_eq!(first.len(), 104);
    assert!(first.iter().filter(|byte| **byte == 0).count() < 8);
    assert_ne!(first, second);
    assert_eq!(first, Pool::new(1, 128).fill(stream, 0, 128));
    assert_ne!(first, Pool::new(2, 128).fill(stream, 0, 128));
}

#[test]
fn smallest_payload_is_the_header_alone() {
    let pool = Pool::new(1, 24);
    let stream = StreamIndex::new(2);
    let header = Header { run: 1, stream, seq: 3, probe: false, intended_ns: 4, late_us: 5 };
    let mut out = Vec::new();
    pool.write(&header, 24, &mut out);
    assert_eq!(out, header.encode());
    assert!(pool.is_intact(&header, &out, 24));
    assert_eq!(Header::decode(&out[..23]), None);
}

proptest! {
    #[test]
    fn decode_is_the_inverse_of_encode(header in any_header()) {
        prop_assert_eq!(Header::decode(&header.encode()), Some(header));
    }

    #[test]
    fn every_damaged_byte_is_noticed(
        header in any_header(),
        size in 25usize..300,
        at: prop::sample::Index,
        flip in 1u8..,
    ) {
        let pool = Pool::new(7, 300);
        let mut out = Vec::new();
        pool.write(&header, size, &mut out);
        prop_assert!(pool.is_intact(&header, &out, size));
        prop_assert!(!pool.is_intact(&header, &out[..size - 1], size));
        let at = HEADER_BYTES + at.index(size - HEADER_BYTES);
        out[at] ^= flip;
        prop_assert!(!pool.is_intact(&header, &out, size));
    }
}
