//! InfluxDB's line protocol (docs.influxdata.com/influxdb/v1/write_protocols).

use std::fmt::Write as _;

use super::OutputBody;

/// Lines for the next request.
#[derive(Debug, Default)]
pub(super) struct Lines {
    text: String,
    count: u64,
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FieldValue<'a> {
    Float(f64),
    Integer(u64),
    Text(&'a str),
}

impl Lines {
    /// Appends a line. Tags are ordered by name here, empty ones left out, as are numbers that the
    /// protocol cannot write. Nothing is appended without a field.
    pub(super) fn add(
        &mut self,
        measurement: &str,
        tags: &[(&str, &str)],
        fields: &[(&str, FieldValue<'_>)],
        at_ms: u64,
    ) {
        let is_number = |value: &FieldValue<'_>| match value {
            FieldValue::Float(value) => value.is_finite(),
            FieldValue::Integer(_) | FieldValue::Text(_) => true,
        };
        let fields: Vec<_> = fields.iter().filter(|(_, value)| is_number(value)).collect();
        if fields.is_empty() {
            return;
        }
        let mut tags: Vec<_> = tags.iter().filter(|(_, value)| !value.is_empty()).collect();
        tags.sort_unstable_by_key(|(name, _)| *name);
        let text = &mut self.text;
        escape(text, measurement, &[',', ' ']);
        for (name, value) in tags {
            text.push(',');
            escape(text, name, &[',', '=', ' ']);
            text.push('=');
            escape(text, value, &[',', '=', ' ']);
        }
        for (index, (name, value)) in fields.iter().enumerate() {
            text.push(if index == 0 { ' ' } else { ',' });
            escape(text, name, &[',', '=', ' ']);
            // Writing to a String cannot fail.
            let _ = match value {
                FieldValue::Float(value) => write!(text, "={value}"),
                FieldValue::Integer(value) => write!(text, "={value}i"),
                FieldValue::Text(value) => {
                    let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
                    write!(text, "=\"{}\"", quoted.replace(['\n', '\r'], " "))
                }
            };
        }
        let _ = writeln!(text, " {at_ms}");
        self.count += 1;
    }

    /// Number of lines.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The lines so far; none are left.
    pub(super) fn body(&mut self) -> Option<OutputBody> {
        let lines = std::mem::take(self);
        (lines.count > 0)
            .then(|| OutputBody { bytes: lines.text.into_bytes(), records: lines.count })
    }
}

/// Appends a name or the value of a tag. A line break, and a backslash at the end, which would
/// escape the character behind it, cannot be written.
fn escape(text: &mut String, word: &str, special: &[char]) {
    let (word, ending) = match word.strip_suffix('\\') {
        Some(word) => (word, "/"),
        None => (word, ""),
    };
    for character in word.chars() {
        let character = if character.is_control() { ' ' } else { character };
        if special.contains(&character) {
            text.push('\\');
        }
        text.push(character);
    }
    text.push_str(ending);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(measurement: &str, tags: &[(&str, &str)], fields: &[(&str, FieldValue<'_>)]) -> String {
        let mut lines = Lines::default();
        lines.add(measurement, tags, fields, 17);
        let body = lines.body().unwrap_or_default();
        String::from_utf8(body.bytes).expect("UTF-8")
    }

    #[test]
    fn names_and_tags_are_escaped_and_ordered() {
        let fields = [("a b", FieldValue::Float(1.5)), ("n", FieldValue::Integer(3))];
        let tags = [("run", "a,b=c d"), ("broker", ""), ("group", "g")];
        assert_eq!(
            line("m x", &tags, &fields),
            "m\\ x,group=g,run=a\\,b\\=c\\ d a\\ b=1.5,n=3i 17\n"
        );
    }

    #[test]
    fn what_the_protocol_cannot_write_is_replaced_or_left_out() {
        let fields = [
            ("nan", FieldValue::Float(f64::NAN)),
            ("infinite", FieldValue::Float(f64::INFINITY)),
            ("text", FieldValue::Text("say \"no\" \\ twice\nagain")),
        ];
        assert_eq!(
            line("m", &[("host", "c:\\"), ("run", "a\\b\nc")], &fields),
            "m,host=c:/,run=a\\b\\ c text=\"say \\\"no\\\" \\\\ twice again\" 17\n"
        );
        assert_eq!(line("m", &[], &fields[..2]), "");
    }
}
