//! A text of a plan with its references resolved.

/// A text with its references resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Value(pub(super) Vec<ValuePart>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ValuePart {
    Text(String),
    /// A variable of the plan, by the name that it has in the scenario.
    Variable {
        name: String,
        value: String,
    },
    /// The expression of a template: differs for each client.
    PerClient(String),
    /// A column of a file with a row for each client: of the data set with this number.
    Column {
        name: String,
        set: usize,
    },
}

impl Value {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self(vec![ValuePart::Text(text.into())])
    }

    pub(super) fn per_client(expression: impl Into<String>) -> Self {
        Self(vec![ValuePart::PerClient(expression.into())])
    }

    /// The text, when it is the same for all clients.
    pub(super) fn fixed(&self) -> Option<String> {
        let parts = self.0.iter().map(|part| match part {
            ValuePart::Text(text) => Some(text.as_str()),
            ValuePart::Variable { value, .. } => Some(value.as_str()),
            ValuePart::PerClient(_) | ValuePart::Column { .. } => None,
        });
        parts.collect()
    }

    /// The one variable that it is, by its name in the scenario.
    pub(super) fn variable(&self) -> Option<&str> {
        match &self.0[..] {
            [ValuePart::Variable { name, .. }] => Some(name),
            _ => None,
        }
    }

    /// Does it hold this expression of a template?
    pub(super) fn holds(&self, expression: &str) -> bool {
        self.0.iter().any(|part| matches!(part, ValuePart::PerClient(inner) if inner == expression))
    }

    /// The one column that it is, and the number of its data set.
    pub(super) fn column(&self) -> Option<(&str, usize)> {
        match &self.0[..] {
            [ValuePart::Column { name, set }] => Some((name, *set)),
            _ => None,
        }
    }

    /// Is it empty for every client?
    pub(super) fn is_blank(&self) -> bool {
        self.fixed().is_some_and(|text| text.trim().is_empty())
    }

    /// As a template of a scenario file.
    pub(super) fn template(&self) -> Result<String, String> {
        let mut template = String::new();
        for part in &self.0 {
            match part {
                ValuePart::Text(text) if text.contains("{{") => {
                    return Err(format!("'{text}': a scenario cannot have '{{{{' in a text"));
                }
                ValuePart::Text(text) => template.push_str(text),
                ValuePart::Variable { name, .. } => template.push_str(&format!("{{{{{name}}}}}")),
                ValuePart::PerClient(inner) => template.push_str(&format!("{{{{{inner}}}}}")),
                ValuePart::Column { name, .. } => {
                    return Err(format!(
                        "the column '{name}' can be nothing but a whole client id, user name or \
                         password"
                    ));
                }
            }
        }
        Ok(template)
    }

    /// The same behind and before further text.
    pub(super) fn then(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Cut at a character, as a list of topics is.
    pub(super) fn split(&self, at: char) -> Vec<Self> {
        let mut values = vec![Self::default()];
        let cut = |text: &str| text.contains(at);
        for part in &self.0 {
            let text = match part {
                ValuePart::Text(text) => text,
                ValuePart::Variable { value, .. } if cut(value) => value,
                whole => {
                    if let Some(last) = values.last_mut() {
                        last.0.push(whole.clone());
                    }
                    continue;
                }
            };
            for (index, piece) in text.split(at).enumerate() {
                if index > 0 {
                    values.push(Self::default());
                }
                if let (Some(last), false) = (values.last_mut(), piece.is_empty()) {
                    last.0.push(ValuePart::Text(piece.to_owned()));
                }
            }
        }
        values
    }
}

impl ValuePart {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Text(text)
            | Self::PerClient(text)
            | Self::Column { name: text, .. }
            | Self::Variable { value: text, .. } => text.len(),
        }
    }
}
