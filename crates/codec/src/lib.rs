//! Encodes and decodes MQTT 3.1, 3.1.1 and 5.0 packets, for clients and servers.
//!
//! - [`split_frame`] splits a byte stream into [`Frame`]s, without allocation, with a size limit.
//! - [`Packet::decode`] decodes a frame into borrowed types. It is strict: everything that the
//!   specification calls malformed or a protocol error is refused with the matching
//!   [`ReasonCode`]. [`Publish::decode`] does the same for the most frequent packet and never
//!   allocates.
//! - [`Packet::encode`] and the `encode` of each packet type append to the caller's buffer.
//! - [`PublishHead`] encodes a PUBLISH once and patches the copy for each receiver.
//!
//! ```
//! use tacho_codec::{Direction, Packet, Publish, Version, split_frame};
//!
//! let publish = Publish { topic: "greeting", payload: b"hello", ..Publish::default() };
//! let mut stream = Vec::new();
//! publish.encode(Version::V311, &mut stream)?;
//!
//! let frame = split_frame(&stream, 65_536)?.expect("the whole packet is there");
//! let packet = Packet::decode(&frame, Version::V311, Direction::ToServer)?;
//! assert_eq!(packet, Packet::Publish(publish));
//! let consumed = frame.total_len;
//! stream.drain(..consumed);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! No I/O, no clock, no state: rules that depend on earlier packets (unknown topic aliases, packet
//! identifiers in use, receive maximum) belong to the session.

mod error;
mod frame;
mod head;
mod packet;
mod packet_id;
mod property;
mod qos;
mod read;
mod reason;
mod text;
mod varint;
mod version;
mod write;

pub use error::{DecodeError, EncodeError};
pub use frame::{Frame, announced_len, split_frame};
pub use head::PublishHead;
pub use packet::Packet;
pub use packet::ack::Ack;
pub use packet::announced::Announced;
pub use packet::auth::Auth;
pub use packet::bridge_bit::{has_bridge_bit, set_bridge_bit, without_bridge_bit};
pub use packet::connack::{ConnAck, ConnAckProperties};
pub use packet::connect::{Connect, ConnectProperties};
pub use packet::disconnect::Disconnect;
pub use packet::kind::{AckKind, PacketType, check_first_byte};
pub use packet::publish::{Publish, PublishProperties};
pub use packet::suback::SubAck;
pub use packet::subscribe::{RetainHandling, Subscribe, SubscribeFilter, SubscribeOptions};
pub use packet::unsuback::UnsubAck;
pub use packet::unsubscribe::Unsubscribe;
pub use packet::will::{Will, WillProperties};
pub use packet_id::PacketId;
pub use property::{
    SubscriptionIds, SubscriptionIdsBuf, SubscriptionIdsIter, UserProperties, UserPropertiesBuf,
    UserPropertiesIter,
};
pub use qos::{InvalidQoS, QoS};
pub use reason::ReasonCode;
pub use text::{TopicNameError, check_topic_name, is_valid_text, is_valid_topic_name};
pub use varint::{VARINT_MAX, varint_len};
pub use version::{Direction, Version};
