//! Templates for topics and payloads of bridges: text with variables such as `${topic}`.

use std::fmt;
use std::str::FromStr;

use tacho_codec::QoS;

/// A parsed template. Rendering only copies bytes; a template that is just `${topic}` or
/// `${payload}` need not be rendered.
#[derive(Clone, PartialEq, Eq)]
pub struct Template {
    source: Box<str>,
    parts: Box<[TemplatePart]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Text(Box<str>),
    Variable(Variable),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variable {
    Topic,
    Payload,
    QoS,
    Retain,
}

/// Why a text is not a valid template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// An unknown variable.
    #[error(
        "there is no variable `${{{0}}}`: use ${{topic}}, ${{payload}}, ${{qos}} and ${{retain}} \
         (and $${{ for a plain ${{)"
    )]
    Unknown(String),
    /// A variable without its `}`.
    #[error("`${{` has no closing `}}` (write $${{ for a plain ${{)")]
    Open,
    /// A topic that contains the payload.
    #[error("a topic cannot contain ${{payload}}")]
    PayloadInTopic,
    /// An empty topic.
    #[error("a topic must not be empty")]
    EmptyTopic,
    /// A topic with a wildcard.
    #[error("a topic name must not contain `{0}`")]
    Wildcard(char),
    /// A topic with a null character.
    #[error("a topic must not contain the null character")]
    Nul,
}

/// The values of the variables for one message.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    /// Topic on the source side.
    pub topic: &'a str,
    /// Payload on the source side.
    pub payload: &'a [u8],
    /// QoS on the source side.
    pub qos: QoS,
    /// RETAIN flag on the source side.
    pub retain: bool,
}

impl Variable {
    const ALL: [Self; 4] = [Self::Topic, Self::Payload, Self::QoS, Self::Retain];

    const fn name(self) -> &'static str {
        match self {
            Self::Topic => "topic",
            Self::Payload => "payload",
            Self::QoS => "qos",
            Self::Retain => "retain",
        }
    }

    /// The bytes of the variable for a message.
    fn bytes<'a>(self, values: &Values<'a>) -> &'a [u8] {
        match self {
            Self::Payload => values.payload,
            other => other.text(values).as_bytes(),
        }
    }

    /// The text of the variable for a message; empty for the payload, which is not text.
    const fn text<'a>(self, values: &Values<'a>) -> &'a str {
        match (self, values.qos, values.retain) {
            (Self::Topic, ..) => values.topic,
            (Self::Payload, ..) => "",
            (Self::QoS, QoS::AtMostOnce, _) => "0",
            (Self::QoS, QoS::AtLeastOnce, _) => "1",
            (Self::QoS, QoS::ExactlyOnce, _) => "2",
            (Self::Retain, _, true) => "true",
            (Self::Retain, _, false) => "false",
        }
    }
}

impl Template {
    /// `${topic}`: keeps the topic.
    pub fn same_topic() -> Self {
        Self::only(Variable::Topic)
    }

    /// `${payload}`: keeps the payload.
    pub fn same_payload() -> Self {
        Self::only(Variable::Payload)
    }

    fn only(variable: Variable) -> Self {
        let source = format!("${{{}}}", variable.name()).into();
        Self { source, parts: [TemplatePart::Variable(variable)].into() }
    }

    /// Checks that rendered topics can be published to.
    pub(crate) fn check_topic(&self) -> Result<(), TemplateError> {
        if self.parts.is_empty() {
            return Err(TemplateError::EmptyTopic);
        }
        for part in &self.parts {
            match part {
                TemplatePart::Variable(Variable::Payload) => {
                    return Err(TemplateError::PayloadInTopic);
                }
                TemplatePart::Variable(_) => {}
                TemplatePart::Text(text) => {
                    if let Some(wildcard) = text.chars().find(|c| "+#".contains(*c)) {
                        return Err(TemplateError::Wildcard(wildcard));
                    }
                    if text.contains('\0') {
                        return Err(TemplateError::Nul);
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether the template keeps topics.
    pub fn keeps_topic(&self) -> bool {
        matches!(&*self.parts, [TemplatePart::Variable(Variable::Topic)])
    }

    /// Whether the rendered text depends on the topic only.
    pub(crate) fn is_of_topic_alone(&self) -> bool {
        let plain = |part: &TemplatePart| {
            matches!(part, TemplatePart::Text(_) | TemplatePart::Variable(Variable::Topic))
        };
        self.parts.iter().all(plain)
    }

    /// Whether the template keeps payloads.
    pub fn keeps_payload(&self) -> bool {
        matches!(&*self.parts, [TemplatePart::Variable(Variable::Payload)])
    }

    /// Appends the rendered text of a message.
    pub fn render(&self, values: &Values<'_>, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => out.extend_from_slice(text.as_bytes()),
                TemplatePart::Variable(variable) => out.extend_from_slice(variable.bytes(values)),
            }
        }
    }

    /// Appends the rendered topic of a message. It is text, since a topic cannot contain the
    /// payload.
    pub fn render_topic(&self, values: &Values<'_>, out: &mut String) {
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => out.push_str(text),
                TemplatePart::Variable(variable) => out.push_str(variable.text(values)),
            }
        }
    }

    /// The text before and after `${topic}`, if the template contains it once and no other
    /// variable.
    pub(super) fn around_topic(&self) -> Option<(&str, &str)> {
        let start = self.source.find("${topic}")?;
        let once =
            self.parts.iter().filter(|p| **p == TemplatePart::Variable(Variable::Topic)).count();
        (once == 1 && self.is_of_topic_alone() && !self.source.contains("$${"))
            .then(|| (&self.source[..start], &self.source[start + "${topic}".len()..]))
    }

    /// The text, if there is no variable in it.
    pub(super) fn constant(&self) -> Option<&str> {
        match &*self.parts {
            [TemplatePart::Text(text)] => Some(text),
            _ => None,
        }
    }
}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(source: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut rest = source;
        while let Some(at) = rest.find("${") {
            if rest[..at].ends_with('$') {
                // `$${` is a plain `${`.
                text.push_str(&rest[..at]);
                text.push('{');
                rest = &rest[at + 2..];
                continue;
            }
            text.push_str(&rest[..at]);
            let (name, behind) = rest[at + 2..].split_once('}').ok_or(TemplateError::Open)?;
            let variable = Variable::ALL.into_iter().find(|variable| variable.name() == name);
            let variable = variable.ok_or_else(|| TemplateError::Unknown(name.to_owned()))?;
            if !text.is_empty() {
                parts.push(TemplatePart::Text(std::mem::take(&mut text).into()));
            }
            parts.push(TemplatePart::Variable(variable));
            rest = behind;
        }
        text.push_str(rest);
        if !text.is_empty() {
            parts.push(TemplatePart::Text(text.into()));
        }
        Ok(Self { source: source.into(), parts: parts.into() })
    }
}

/// As in the configuration.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.source, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: Values<'_> =
        Values { topic: "a/b", payload: b"p\xff", qos: QoS::ExactlyOnce, retain: true };

    fn template(text: &str) -> Template {
        text.parse().expect(text)
    }

    #[test]
    fn variables_render_the_values_of_the_message() {
        for (text, expected) in [
            ("remote/${topic}", &b"remote/a/b"[..]),
            ("${topic}${topic}", b"a/ba/b"),
            ("${qos}-${retain}-${payload}.", b"2-true-p\xff."),
            ("<${payload}>", b"<p\xff>"),
            ("plain", b"plain"),
            ("", b""),
            ("$ $topic {topic} $${topic} }", b"$ $topic {topic} ${topic} }"),
            ("$$${topic}", b"$${topic}"),
        ] {
            let mut out = Vec::new();
            template(text).render(&VALUES, &mut out);
            assert_eq!(out, expected, "{text}");
            assert_eq!(template(text).to_string(), text);
        }
        let mut topic = String::new();
        template("x/${topic}/${qos}").render_topic(&VALUES, &mut topic);
        assert_eq!(topic, "x/a/b/2");
    }

    #[test]
    fn templates_that_keep_topic_or_payload_are_recognized() {
        assert!(template("${topic}").keeps_topic() && template("${payload}").keeps_payload());
        assert!(!template("${payload} ").keeps_payload() && !template("x").keeps_topic());
        assert_eq!(template("${topic}"), Template::same_topic());
        assert_eq!(template("${payload}"), Template::same_payload());
    }

    #[test]
    fn invalid_templates_are_refused_with_the_reason() {
        for (text, words) in [
            ("${host}", "`${host}`"),
            ("${}", "`${}`"),
            ("${Topic}", "${topic}, ${payload}"),
            ("a/${topic", "no closing `}`"),
        ] {
            let error = text.parse::<Template>().expect_err(text).to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        for (text, words) in [
            ("", "empty"),
            ("a/+/${topic}", "`+`"),
            ("a/#", "`#`"),
            ("a\0", "null"),
            ("a/${payload}", "${payload}"),
        ] {
            let error = template(text).check_topic().expect_err(text).to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        assert_eq!(template("x/${topic}/${qos}/${retain}").check_topic(), Ok(()));
    }
}
