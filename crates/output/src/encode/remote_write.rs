//! Messages of Prometheus' remote write 1.0
//! (prometheus.io/docs/specs/remote_write_spec; prompb/types.proto and remote.proto).

use prost::{Enumeration, Message};

/// A request.
#[derive(Clone, PartialEq, Message)]
pub(super) struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) timeseries: Vec<TimeSeries>,
    #[prost(message, repeated, tag = "3")]
    pub(super) metadata: Vec<MetricMetadata>,
}

/// The kind of a family of series.
#[derive(Clone, PartialEq, Message)]
pub(super) struct MetricMetadata {
    #[prost(enumeration = "MetadataType", tag = "1")]
    pub(super) r#type: i32,
    #[prost(string, tag = "2")]
    pub(super) metric_family_name: String,
}

/// Kinds of families.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub(super) enum MetadataType {
    Unknown = 0,
    Counter = 1,
    Gauge = 2,
    Histogram = 3,
}

/// The samples of a series, in order of time.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    pub(super) labels: Vec<LabelPair>,
    #[prost(message, repeated, tag = "2")]
    pub(super) samples: Vec<FloatSample>,
    #[prost(message, repeated, tag = "4")]
    pub(super) histograms: Vec<NativeHistogram>,
}

/// A label.
#[derive(Clone, PartialEq, Message)]
pub(super) struct LabelPair {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

/// A number at a time.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct FloatSample {
    #[prost(double, tag = "1")]
    pub(super) value: f64,
    #[prost(int64, tag = "2")]
    pub(super) timestamp: i64,
}

/// A native histogram of whole numbers at a time; it has no values below 0.
#[derive(Clone, PartialEq, Message)]
pub(super) struct NativeHistogram {
    // Alone in their `oneof`s, whose other members are counts of floats.
    #[prost(uint64, optional, tag = "1")]
    pub(super) count_int: Option<u64>,
    #[prost(double, tag = "3")]
    pub(super) sum: f64,
    #[prost(sint32, tag = "4")]
    pub(super) schema: i32,
    #[prost(double, tag = "5")]
    pub(super) zero_threshold: f64,
    #[prost(uint64, optional, tag = "6")]
    pub(super) zero_count_int: Option<u64>,
    #[prost(message, repeated, tag = "11")]
    pub(super) positive_spans: Vec<BucketSpan>,
    #[prost(sint64, repeated, tag = "12")]
    pub(super) positive_deltas: Vec<i64>,
    #[prost(int64, tag = "15")]
    pub(super) timestamp: i64,
}

/// Buckets that follow each other, after a gap.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct BucketSpan {
    #[prost(sint32, tag = "1")]
    pub(super) offset: i32,
    #[prost(uint32, tag = "2")]
    pub(super) length: u32,
}
