//! Files of a run.

use std::path::Path as FilePath;

use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use tacho_record::past::{Past, PastError};
use tacho_record::{Comparison, RunDirectory};
use tacho_report::{Lang, ReportData, comparison_html, html, with_files};

use super::answers::ApiError;
use super::state::{Api, blocking};
use crate::files::serve;
use crate::guard::REPORT_POLICY;
use crate::regular;

/// Of the page in Chinese.
const CHINESE: &str = "report.zh.html";
/// The record of a comparison.
const COMPARISON: &str = "comparison.json";
/// A larger one is none of ours.
const RECORD_BYTES_MAX: u64 = 256 << 20;

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
    let page = blocking(move || in_chinese(&directory));
    let mut response = Html(page.await?).into_response();
    let policy = HeaderValue::from_static(REPORT_POLICY);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

/// The report, rendered anew.
fn in_chinese(directory: &FilePath) -> Result<String, ApiError> {
    let page = match Past::read(directory) {
        Ok(past) => {
            let data = ReportData::new(&past.data, Lang::Zh);
            html(&data.ok_or_else(|| ApiError::conflict("the run has nothing to report"))?)
        }
        Err(PastError::Comparison { .. }) => {
            let text = regular::read(&directory.join(COMPARISON), RECORD_BYTES_MAX)?;
            let comparison: Comparison = serde_json::from_slice(&text)
                .map_err(|error| ApiError::conflict(format!("{COMPARISON}: {error}")))?;
            comparison_html(&comparison, &[], Lang::Zh)
        }
        Err(error) => return Err(ApiError::conflict(error.to_string())),
    };
    let names = RunDirectory::existing(directory).names();
    let names = names.map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(with_files(&page, &names))
}
