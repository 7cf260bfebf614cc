//! The version of the record.

/// Version of the record's form.
pub const SCHEMA_VERSION: u32 = 2;
