//! Files of a run.

use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use tacho_record::past::Past;
use tacho_report::{Lang, ReportData, html, with_files};

use super::answers::ApiError;
use super::state::{Api, blocking};
use crate::files::serve;
use crate::guard::REPORT_POLICY;

/// Of the page in Chinese.
const CHINESE: &str = "report.zh.html";

pub(crate) async fn file(
    State(api): State<Api>,
    Path((id, name)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let directory = api.directory(&id)?;
    Ok(serve(directory, name).await)
}

/// The report in English, as the run has written it.
pub(crate) async fn report(
    State(api): State<Api>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let directory = api.directory(&id)?;
    Ok(serve(directory, "report.html".to_owned()).await)
}

/// The report in Chinese, made of the run's files where it was not written so.
pub(crate) async fn chinese_report(
    State(api): State<Api>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let directory = api.directory(&id)?;
    if directory.join(CHINESE).is_file() {
        return Ok(serve(directory, CHINESE.to_owned()).await);
    }
    let page = blocking(move || {
        let past = Past::read(&directory).map_err(|error| ApiError::conflict(error.to_string()))?;
        let names = past.directory().names();
        let names = names.map_err(|error| ApiError::internal(error.to_string()))?;
        let data = ReportData::new(&past.data, Lang::Zh);
        let data = data.ok_or_else(|| ApiError::conflict("the run has nothing to report"))?;
        Ok(with_files(&html(&data), &names))
    });
    let mut response = Html(page.await?).into_response();
    let policy = HeaderValue::from_static(REPORT_POLICY);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}
