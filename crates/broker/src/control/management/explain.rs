//! What a client may do by the rules in force, and why.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use tacho_access::{AskedAction, Attributes, ClientRules, Origin, Who};
use tacho_http::ApiError;

use super::Api;
use super::answers::{query, topic};
use crate::asked_access::{AccessAnswer, AskedAccess};
use crate::config::SubscribeCheck;
use crate::query::Query as Ask;

/// The client identifier of one that is not named.
const CLIENT_ID: &str = "client";
const QOS_MAX: u8 = 2;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExplainQuery {
    action: ActionName,
    #[serde(default)]
    topic: String,
    #[serde(default)]
    qos: u8,
    #[serde(default)]
    retain: bool,
    client_id: Option<String>,
    /// The client is as it would be with this login, not as it is connected.
    user: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ActionName {
    Connect,
    Publish,
    Subscribe,
    Receive,
}

pub(super) async fn explain(
    State(api): State<Api>,
    parsed: Result<Query<ExplainQuery>, QueryRejection>,
) -> Result<Json<AccessAnswer>, ApiError> {
    let asked = query(parsed)?;
    if asked.qos > QOS_MAX {
        return Err(ApiError::about("qos", "write 0, 1 or 2"));
    }
    let action = match asked.action {
        ActionName::Connect => AskedAction::Connect,
        ActionName::Publish => AskedAction::Publish,
        ActionName::Subscribe => AskedAction::Subscribe,
        ActionName::Receive => AskedAction::Receive,
    };
    if matches!(action, AskedAction::Publish | AskedAction::Receive) {
        topic(&asked.topic)?;
    }
    let settings = &api.broker().config.access;
    let file = settings.rules_file.as_ref().or(settings.acl_file.as_ref());
    let question = AskedAccess {
        client_id: asked.client_id.as_deref().unwrap_or(CLIENT_ID).into(),
        action,
        topic: asked.topic,
        qos: asked.qos,
        retain: asked.retain,
        is_filtered: settings.subscribe == SubscribeCheck::Filtered,
        file: file.map(|path| path.display().to_string()),
    };
    let wrong = |sentence: String| ApiError::about("topic", sentence);
    if let (Some(client_id), None) = (&asked.client_id, &asked.user) {
        let (shard, _) = api.owner_of(client_id);
        let boxed = Box::new(question.clone());
        let answer = api.view().ask(shard, |reply| Ask::Explain(boxed, reply)).await?;
        if let Some(answer) = answer {
            return answer.map(Json).map_err(wrong);
        }
    }
    let policy = api.policy();
    let attributes = Attributes::default();
    let who = Who {
        user: asked.user.as_deref(),
        client_id: &question.client_id,
        origin: Origin::UNKNOWN,
        attributes: Some(&attributes),
    };
    let rules = ClientRules { token: None, list: policy.list() };
    question.answer(rules, &who, false).map(Json).map_err(wrong)
}
