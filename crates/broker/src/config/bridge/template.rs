//! What a bridge makes of topics and payloads: text with `${topic}` and its kin in it.

use std::fmt;
use std::str::FromStr;

use tacho_codec::QoS;

/// A template, parsed once. Rendering it copies bytes and does nothing else; one that is only
/// `${topic}` or `${payload}` need not be rendered.
#[derive(Clone, PartialEq, Eq)]
pub struct Template {
    source: Box<str>,
    parts: Box<[Part]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
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

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A variable that there is not.
    #[error(
        "there is no variable `${{{0}}}`: use ${{topic}}, ${{payload}}, ${{qos}} and ${{retain}} \
         (and $${{ for a plain ${{)"
    )]
    Unknown(String),
    /// No end of a variable.
    #[error("`${{` has no `}}` behind it (write $${{ for a plain ${{)")]
    Open,
    /// A topic with a payload in it.
    #[error("a topic cannot have ${{payload}} in it")]
    PayloadInTopic,
    /// A topic of nothing.
    #[error("a topic must not be empty")]
    EmptyTopic,
    /// A topic that nobody can publish to.
    #[error("a topic that is published to must not contain `{0}`")]
    Wildcard(char),
    /// A topic with a null character.
    #[error("a topic must not contain the null character")]
    Nul,
}

/// What a message has for the variables.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    /// Its topic on the side where it comes from.
    pub topic: &'a str,
    /// Its payload there.
    pub payload: &'a [u8],
    /// Its QoS there.
    pub qos: QoS,
    /// Its RETAIN flag there.
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

    /// Its bytes of a message.
    fn of<'a>(self, values: &Values<'a>) -> &'a [u8] {
        match self {
            Self::Payload => values.payload,
            other => other.text(values).as_bytes(),
        }
    }

    /// Its text of a message; none if it is bytes.
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
    /// `${topic}`: the topic as it is.
    pub fn same_topic() -> Self {
        Self::of(Variable::Topic)
    }

    /// `${payload}`: the payload as it is.
    pub fn same_payload() -> Self {
        Self::of(Variable::Payload)
    }

    fn of(variable: Variable) -> Self {
        let source = format!("${{{}}}", variable.name()).into();
        Self { source, parts: [Part::Variable(variable)].into() }
    }

    /// Checks that it makes topics that can be published to.
    pub(crate) fn check_topic(&self) -> Result<(), TemplateError> {
        if self.parts.is_empty() {
            return Err(TemplateError::EmptyTopic);
        }
        for part in &self.parts {
            match part {
                Part::Variable(Variable::Payload) => return Err(TemplateError::PayloadInTopic),
                Part::Variable(_) => {}
                Part::Text(text) => {
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

    /// Whether it leaves topics as they are.
    pub fn keeps_topic(&self) -> bool {
        matches!(&*self.parts, [Part::Variable(Variable::Topic)])
    }

    /// Whether it always makes the same of a topic, whatever else the message is.
    pub(crate) fn is_of_topic_alone(&self) -> bool {
        let plain = |part: &Part| matches!(part, Part::Text(_) | Part::Variable(Variable::Topic));
        self.parts.iter().all(plain)
    }

    /// Whether it leaves payloads as they are.
    pub fn keeps_payload(&self) -> bool {
        matches!(&*self.parts, [Part::Variable(Variable::Payload)])
    }

    /// Appends what it makes of a message.
    pub fn render(&self, values: &Values<'_>, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Part::Text(text) => out.extend_from_slice(text.as_bytes()),
                Part::Variable(variable) => out.extend_from_slice(variable.of(values)),
            }
        }
    }

    /// Appends the topic that it makes of a message. Payloads have no place in a topic, so that
    /// this is text.
    pub fn render_topic(&self, values: &Values<'_>, out: &mut String) {
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Variable(variable) => out.push_str(variable.text(values)),
            }
        }
    }

    /// Whether topics that it makes are text, `${topic}` as a whole, and nothing else: what stands
    /// before it and behind it.
    pub(super) fn around_topic(&self) -> Option<(&str, &str)> {
        let start = self.source.find("${topic}")?;
        let once = self.parts.iter().filter(|p| **p == Part::Variable(Variable::Topic)).count();
        (once == 1 && self.is_of_topic_alone() && !self.source.contains("$${"))
            .then(|| (&self.source[..start], &self.source[start + "${topic}".len()..]))
    }

    /// The text, if there is no variable in it.
    pub(super) fn constant(&self) -> Option<&str> {
        match &*self.parts {
            [Part::Text(text)] => Some(text),
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
                // Two of them stand for one, and what follows is text.
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
                parts.push(Part::Text(std::mem::take(&mut text).into()));
            }
            parts.push(Part::Variable(variable));
            rest = behind;
        }
        text.push_str(rest);
        if !text.is_empty() {
            parts.push(Part::Text(text.into()));
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
    fn variables_are_what_the_message_has() {
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
    fn what_stays_as_it_is_is_known() {
        assert!(template("${topic}").keeps_topic() && template("${payload}").keeps_payload());
        assert!(!template("${payload} ").keeps_payload() && !template("x").keeps_topic());
        assert_eq!(template("${topic}"), Template::same_topic());
        assert_eq!(template("${payload}"), Template::same_payload());
    }

    #[test]
    fn what_is_no_template_is_refused_with_words() {
        for (text, words) in [
            ("${host}", "`${host}`"),
            ("${}", "`${}`"),
            ("${Topic}", "${topic}, ${payload}"),
            ("a/${topic", "no `}`"),
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
