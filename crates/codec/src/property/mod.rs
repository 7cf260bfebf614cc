//! Properties of 5.0 (section 2.2.2): identifiers, typed reading and writing.

mod decode;
pub(crate) mod id;
pub(crate) mod repeated;
mod sink;

pub(crate) use decode::{
    NOT_ALLOWED, block, boolean, nonzero_u16, nonzero_u32, once, response_topic, subscription_id,
    user_property,
};
pub use repeated::{
    SubscriptionIds, SubscriptionIdsBuf, SubscriptionIdsIter, UserProperties, UserPropertiesBuf,
    UserPropertiesIter,
};
pub(crate) use sink::PropertySink;
