//! Payloads, checked.

use toml::Spanned;

use super::checker::{Checked, Checker};
use crate::data::DataFile;
use crate::error::ScenarioError;
use crate::limits::{PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN};
use crate::raw::RawPayload;
use crate::rows::Rows;
use crate::stream::Payload;

/// Default size of a payload.
const PAYLOAD_BYTES: u32 = 128;

impl Checker<'_> {
    pub(super) fn payload(&self, raw: &RawPayload) -> Checked<Payload> {
        let kind = payload_kind(raw);
        let payload = match kind {
            "random" => Payload::Random { size: self.payload_size(raw, PAYLOAD_BYTES_MIN)? },
            "zeros" => Payload::Zeros { size: self.payload_size(raw, PAYLOAD_BYTES_MIN)? },
            "jmeter" => Payload::Jmeter {
                size: self.payload_size(raw, tacho_load::Plan::TEXT_BYTES_MIN.into())?,
                timestamp: raw.timestamp.as_ref().is_none_or(|flag| *flag.get_ref()),
            },
            "text" => self.text_payload(raw)?,
            "file" => {
                let file = raw.file.as_ref().ok_or_else(|| self.missing_key(raw, "file"))?;
                let read = DataFile::read(&self.source.path(file.get_ref()));
                Payload::File { file: read.map_err(|title| self.error(file.span(), title))? }
            }
            "csv" => self.csv_payload(raw)?,
            _ => {
                let choices = "\"random\", \"zeros\", \"text\", \"file\", \"csv\" or \"jmeter\"";
                // Invariant: a kind that follows from other keys is one of those above.
                return Err(match &raw.kind {
                    Some(kind) => self.choice(kind, "kind", choices),
                    None => self.missing_key(raw, "kind"),
                });
            }
        };
        self.keys_of_other_kinds(raw, kind)?;
        Ok(payload)
    }

    fn payload_size(&self, raw: &RawPayload, min: u64) -> Checked<u32> {
        let Some(size) = &raw.size else { return Ok(PAYLOAD_BYTES) };
        let bytes = size.get_ref().0;
        if bytes < min as i64 {
            return Err(self
                .error(size.span(), format!("a payload of {bytes} bytes is too small to measure"))
                .label(format!("at least {min}"))
                .help("every message carries its publisher, sequence number and intended time"));
        }
        self.whole(size, "a payload size", 0, PAYLOAD_BYTES_MAX).map(|size| size as u32)
    }

    fn text_payload(&self, raw: &RawPayload) -> Checked<Payload> {
        let text = raw.text.as_ref().ok_or_else(|| self.missing_key(raw, "text"))?;
        tacho_load::Template::parse(text.get_ref())
            .map_err(|error| self.error(text.span(), error.to_string()))?;
        Ok(Payload::Text { text: text.get_ref().clone() })
    }

    fn csv_payload(&self, raw: &RawPayload) -> Checked<Payload> {
        let file = raw.csv.as_ref().ok_or_else(|| self.missing_key(raw, "csv"))?;
        let csv = self.table(file, &Rows::default())?;
        if let Some(text) = &raw.text {
            let (columns, rows) = (&csv.columns, csv.rows.to_vec());
            tacho_load::Template::with_rows(text.get_ref(), columns, rows)
                .map_err(|error| self.error(text.span(), error.to_string()))?;
        }
        Ok(Payload::Csv { csv, text: raw.text.as_ref().map(|text| text.get_ref().clone()) })
    }

    fn missing_key(&self, raw: &RawPayload, key: &str) -> ScenarioError {
        // Invariant: a kind that was not written follows from its key, so none is missing.
        let span = raw.kind.as_ref().map_or(0..0, Spanned::span);
        let kind = payload_kind(raw);
        self.error(span, format!("a payload of kind \"{kind}\" needs '{key}'"))
    }

    /// Refuses keys that have no effect on a payload of this kind.
    fn keys_of_other_kinds(&self, raw: &RawPayload, kind: &str) -> Checked<()> {
        let keys = [
            ("size", raw.size.as_ref().map(Spanned::span), &["random", "zeros", "jmeter"][..]),
            ("timestamp", raw.timestamp.as_ref().map(Spanned::span), &["jmeter"]),
            ("text", raw.text.as_ref().map(Spanned::span), &["text", "csv"]),
            ("file", raw.file.as_ref().map(Spanned::span), &["file"]),
            ("csv", raw.csv.as_ref().map(Spanned::span), &["csv"]),
        ];
        for (key, span, kinds) in keys {
            if let Some(span) = span.filter(|_| !kinds.contains(&kind)) {
                return Err(self
                    .error(span, format!("'{key}' does not apply to a payload of kind \"{kind}\""))
                    .label(format!("only for {}", kinds.join(", "))));
            }
        }
        Ok(())
    }
}

/// The kind of a payload: as written, or the one that its keys imply.
fn payload_kind(raw: &RawPayload) -> &str {
    if let Some(kind) = &raw.kind {
        return kind.get_ref();
    }
    match (&raw.csv, &raw.file, &raw.text) {
        (Some(_), ..) => "csv",
        (_, Some(_), _) => "file",
        (.., Some(_)) => "text",
        _ => "random",
    }
}
