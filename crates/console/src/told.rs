//! What is wrong, as pages read it: the sentence in English, its code with the values in it, and
//! the same in Chinese.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header;
use axum::middleware::Next;
use axum::response::Response;
use serde::Serialize;
use tacho_http::{ApiError, Problem};
use tacho_report::said;

/// Something that is wrong, in words and as data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ToldProblem {
    /// The field of the request, if it is about one.
    field: Option<String>,
    /// In English.
    message: String,
    /// Which sentence it is; absent for those of other programs, and what follows with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    /// The values in the sentence by their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<&'static str, String>,
    /// In Chinese.
    #[serde(skip_serializing_if = "Option::is_none")]
    message_zh: Option<String>,
}

#[derive(Serialize)]
struct ToldError {
    error: ToldProblem,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<ToldProblem>,
}

impl From<Problem> for ToldProblem {
    fn from(Problem { field, message }: Problem) -> Self {
        let (code, parameters, message_zh) = match said(&message) {
            Some(said) => (Some(said.code), said.values, Some(said.zh)),
            None => (None, BTreeMap::new(), None),
        };
        Self { field, message, code, parameters, message_zh }
    }
}

/// All that is wrong.
pub(crate) fn told(problems: impl IntoIterator<Item = Problem>) -> Vec<ToldProblem> {
    problems.into_iter().map(ToldProblem::from).collect()
}

/// A sentence in Chinese, where that is known.
pub(crate) fn in_chinese(sentence: &str) -> Option<String> {
    said(sentence).map(|said| said.zh)
}

/// Says of errors what they are in both languages.
pub(crate) async fn tell_errors(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let Some(error) = response.extensions_mut().remove::<ApiError>() else { return response };
    let problems = told(error.problems().iter().cloned());
    let told = ToldError { error: error.error().clone().into(), problems };
    // Fails for no text; the answer in English is right, too.
    let Ok(json) = serde_json::to_vec(&told) else { return response };
    let (mut head, _) = response.into_parts();
    head.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(head, Body::from(json))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_told_as_data_where_it_is_known() {
        let told = ToldProblem::from(Problem::new("scenario", "there is no run 'a'"));
        let json = serde_json::to_value(&told).expect("is JSON");
        assert_eq!((&json["code"], &json["parameters"]["id"]), (&"run.none".into(), &"a".into()));
        assert_eq!(
            (&json["field"], &json["message_zh"]),
            (&"scenario".into(), &"没有测试“a”".into())
        );
        let other = ToldProblem::from(Problem { field: None, message: "Traceback".to_owned() });
        let json = serde_json::to_value(&other).expect("is JSON");
        assert_eq!(json, serde_json::json!({"field": null, "message": "Traceback"}));
    }
}
