//! Reason string and user properties, the two properties that most answers share.

use crate::property::repeated::Span;
use crate::property::{self, PropertySink, id};
use crate::read::Reader;
use crate::write::{Properties, Sink, properties_len, put_properties};
use crate::{DecodeError, EncodeError, UserProperties};

/// The two properties, to be written.
pub(super) struct ReasonProperties<'a> {
    pub(super) reason_string: Option<&'a str>,
    pub(super) user_properties: UserProperties<'a>,
}

impl Properties for ReasonProperties<'_> {
    fn write<S: Sink>(&self, sink: &mut S) -> Result<(), EncodeError> {
        sink.put_string_property(id::REASON_STRING, self.reason_string)?;
        sink.put_user_properties(self.user_properties)
    }
}

/// Writes a property block, which may be omitted when it is empty.
pub(super) fn put_properties_if_any<S: Sink>(
    sink: &mut S,
    properties: &impl Properties,
) -> Result<(), EncodeError> {
    if properties_len(properties)? == 0 { Ok(()) } else { put_properties(sink, properties) }
}

/// Decodes a block that may contain a reason string and user properties only.
pub(super) fn decode_reason_properties(
    mut block: Reader<'_>,
) -> Result<(Option<&str>, UserProperties<'_>), DecodeError> {
    let mut reason_string = None;
    let mut user_properties = Span::default();
    while !block.is_empty() {
        let before = block.rest();
        match block.u8()? {
            id::REASON_STRING => property::once(&mut reason_string, block.string()?)?,
            id::USER_PROPERTY => {
                property::user_property(&mut block)?;
                user_properties.extend(before, block.rest());
            }
            _ => return Err(property::NOT_ALLOWED),
        }
    }
    Ok((reason_string, UserProperties::from_span(user_properties)))
}
