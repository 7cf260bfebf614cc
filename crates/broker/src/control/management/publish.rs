//! Messages that an operator publishes.

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::{Extension, Json};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use tacho_codec::QoS;
use tacho_http::{ApiError, body, json};

use super::Api;
use super::answers::topic;
use super::gate::Caller;
use crate::access::{AuditEvent, Name};
use crate::query::{Publication, Query as Ask};

/// What the packet has beside topic and payload, at most.
const HEAD_BYTES_MAX: usize = 32;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PublishRequest {
    topic: String,
    payload: Option<String>,
    payload_base64: Option<String>,
    qos: u8,
    retain: bool,
    expiry_s: Option<u32>,
}

/// A message was published.
#[derive(Serialize)]
pub(super) struct PublishAnswer {
    topic: String,
    payload_bytes: usize,
}

pub(super) async fn publish(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<Json<PublishAnswer>, ApiError> {
    let request: PublishRequest = json(&body(bytes)?)?;
    topic(&request.topic)?;
    let payload = match (request.payload, request.payload_base64) {
        (Some(_), Some(_)) => {
            return Err(ApiError::about("payload", "send either `payload` or `payload_base64`"));
        }
        (None, Some(text)) => BASE64
            .decode(text)
            .map_err(|error| ApiError::about("payload_base64", error.to_string()))?,
        (text, None) => text.unwrap_or_default().into_bytes(),
    };
    let qos = match request.qos {
        0 => QoS::AtMostOnce,
        1 => QoS::AtLeastOnce,
        2 => QoS::ExactlyOnce,
        _ => return Err(ApiError::about("qos", "write 0, 1 or 2")),
    };
    let bytes_max = api.broker().config.limits.packet_size_max as usize;
    if request.topic.len() + payload.len() + HEAD_BYTES_MAX > bytes_max {
        let message = format!("larger than `limits.packet_size_max`, which is {bytes_max} bytes");
        return Err(ApiError::about("payload", message));
    }
    let payload_bytes = payload.len();
    let (topic, retain, expiry_s) = (request.topic, request.retain, request.expiry_s);
    let publication =
        Box::new(Publication { topic: topic.clone(), payload, qos, retain, expiry_s });
    api.view().ask(0, |reply| Ask::Publish(publication, reply)).await??;
    let name = Some(Name::new(&topic));
    api.note(&caller, "publish", AuditEvent { topic: name, ..AuditEvent::default() });
    Ok(Json(PublishAnswer { topic, payload_bytes }))
}
