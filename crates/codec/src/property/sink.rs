//! Writing of optional properties.

use super::id;
use super::repeated::UserProperties;
use crate::EncodeError;
use crate::write::Sink;

/// Writing of optional properties: absent ones write nothing.
pub(crate) trait PropertySink: Sink {
    #[inline]
    fn put_bool_property(&mut self, identifier: u8, value: Option<bool>) {
        if let Some(value) = value {
            self.put(&[identifier, u8::from(value)]);
        }
    }

    #[inline]
    fn put_u16_property(&mut self, identifier: u8, value: Option<u16>) {
        if let Some(value) = value {
            self.put_u8(identifier);
            self.put_u16(value);
        }
    }

    #[inline]
    fn put_u32_property(&mut self, identifier: u8, value: Option<u32>) {
        if let Some(value) = value {
            self.put_u8(identifier);
            self.put_u32(value);
        }
    }

    #[inline]
    fn put_binary_property(
        &mut self,
        identifier: u8,
        value: Option<&[u8]>,
    ) -> Result<(), EncodeError> {
        if let Some(value) = value {
            self.put_u8(identifier);
            self.put_binary(value)?;
        }
        Ok(())
    }

    #[inline]
    fn put_string_property(
        &mut self,
        identifier: u8,
        value: Option<&str>,
    ) -> Result<(), EncodeError> {
        self.put_binary_property(identifier, value.map(str::as_bytes))
    }

    #[inline]
    fn put_user_properties(&mut self, properties: UserProperties<'_>) -> Result<(), EncodeError> {
        if let Some(bytes) = properties.as_properties() {
            self.put(bytes);
            return Ok(());
        }
        for (name, value) in properties {
            self.put_u8(id::USER_PROPERTY);
            self.put_binary(name.as_bytes())?;
            self.put_binary(value.as_bytes())?;
        }
        Ok(())
    }
}

impl<S: Sink> PropertySink for S {}
