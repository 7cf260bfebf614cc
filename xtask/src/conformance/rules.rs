//! The lists of rules, one rule a line: `identifier | words | why it has no test`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::cited::Statement;

/// Why a rule that no test covers needs none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Exempt {
    /// It binds clients only.
    Client,
    /// Its case cannot arise in this broker.
    Moot(String),
    /// What it needs does not exist yet.
    Later(String),
}

/// One rule of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) id: String,
    pub(super) words: String,
    pub(super) exempt: Option<Exempt>,
}

/// All lists.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) behaviours: Vec<Rule>,
    pub(super) v5: Vec<Rule>,
    pub(super) v311: Vec<Rule>,
}

impl Rules {
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let list = |name: &str| {
            let path = folder.join(name);
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {path:?}"))?;
            parse(&text).with_context(|| format!("{path:?}"))
        };
        Ok(Self {
            behaviours: list("behaviours.txt")?,
            v5: list("mqtt-5.0.txt")?,
            v311: list("mqtt-3.1.1.txt")?,
        })
    }

    pub(super) fn has_behaviour(&self, number: u16) -> bool {
        let id = number.to_string();
        self.behaviours.iter().any(|rule| rule.id == id)
    }

    pub(super) fn has_statement(&self, statement: &Statement) -> bool {
        let list = if statement.v5 { &self.v5 } else { &self.v311 };
        list.iter().any(|rule| rule.id == statement.id)
    }
}

/// Reads a list; lines that begin with `#` are comments.
pub(super) fn parse(text: &str) -> Result<Vec<Rule>> {
    let mut rules: Vec<Rule> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        let rule = parse_rule(line).with_context(|| format!("line {}: `{line}`", index + 1))?;
        if rules.iter().any(|other| other.id == rule.id) {
            bail!("line {}: {} comes twice", index + 1, rule.id);
        }
        rules.push(rule);
    }
    Ok(rules)
}

fn parse_rule(line: &str) -> Result<Rule> {
    let mut fields = line.split(" | ");
    let (Some(id), Some(words)) = (fields.next(), fields.next()) else {
        bail!("must be `identifier | words`");
    };
    let exempt = match fields.next() {
        None => None,
        Some("client") => Some(Exempt::Client),
        Some(why) => match why.split_once(": ") {
            Some(("moot", why)) => Some(Exempt::Moot(why.to_owned())),
            Some(("later", why)) => Some(Exempt::Later(why.to_owned())),
            _ => bail!("`{why}` is neither `client` nor `moot: why` nor `later: why`"),
        },
    };
    Ok(Rule { id: id.to_owned(), words: words.to_owned(), exempt })
}
