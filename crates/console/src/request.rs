//! A run as the console is asked for it, and the command line that makes it.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use tacho_http::Problem;

use crate::tags::checked_tags;

/// Entries of one list, such as thresholds.
const ENTRIES_MAX: usize = 100;
/// Bytes of one value.
const VALUE_BYTES_MAX: usize = 2000;

/// A request for a run; files, such as that of a password, are named and never sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RunRequest {
    pub(crate) command: RunCommand,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scenario: Option<String>,
    /// An uploaded plan or scenario file, instead of a scenario's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upload: Option<String>,
    /// Uploaded files that it names.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub(crate) data: Vec<String>,
    #[serde(deserialize_with = "values", skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) variables: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) broker: Option<BrokerRequest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) credentials: Option<CredentialRequest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<TlsRequest>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) virtual_users: BTreeMap<String, u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ramp_up_s: Option<f64>,
    /// Virtual load machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) machines: Option<u32>,
    /// Agents that make the load: `local:N`, a number of those on the bus, or `LABEL=VALUE:N`.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub(crate) agents: Vec<String>,
    /// The bus that they are on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bus: Option<String>,
    /// A file on the console's machine with a login of the bus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bus_credentials: Option<String>,
    /// Of a plan: times that threads run through their groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) loops: Option<LoopRequest>,
    /// Of a plan: how rows of its data files are dealt out to load machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rows: Option<RowRequest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) warmup_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) repeat: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub(crate) tags: Vec<String>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub(crate) thresholds: Vec<String>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub(crate) monitors: Vec<String>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub(crate) outputs: Vec<String>,
    /// Of a search.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub(crate) objectives: Vec<String>,
    /// Of a search: what is to be as large as possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) variable: Option<String>,
    /// Of a ladder: `variable=values`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) steps: Option<String>,
    /// Of a ladder: conditions after which it ends.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub(crate) stop_when: Vec<String>,
    /// Of a suite: the rows that contain one of these.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub(crate) only: Vec<String>,
}

/// What is to be measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunCommand {
    #[default]
    Run,
    Ladder,
    Capacity,
    Suite,
    Compare,
}

/// One broker, or those that are compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum BrokerRequest {
    One(String),
    Several(Vec<String>),
}

/// A number of loops, or the word `forever`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum LoopRequest {
    Times(u32),
    Word(String),
}

/// How rows are dealt out to load machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RowRequest {
    /// Over all of them.
    Split,
    /// All rows for each.
    Copy,
}

/// How clients log in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CredentialRequest {
    pub(crate) username: Option<String>,
    /// A file on the console's machine with the password.
    pub(crate) password_file: Option<String>,
}

/// Certificates: files on the console's machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TlsRequest {
    pub(crate) ca_file: Option<String>,
    pub(crate) cert_file: Option<String>,
    pub(crate) key_file: Option<String>,
}

/// The words of a command line, each with the field that it comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestLine {
    words: Vec<(String, String)>,
}

impl RunRequest {
    /// The kind of run that comes of it, as records name it.
    pub(crate) fn kind(&self) -> &'static str {
        match self.command {
            RunCommand::Run if self.repeat.is_some_and(|repeat| repeat > 1) => "repeats",
            RunCommand::Run => "run",
            RunCommand::Ladder => "ladder",
            RunCommand::Capacity => "capacity",
            RunCommand::Suite => "suite",
            RunCommand::Compare => "comparison",
        }
    }

    /// Brokers, in words.
    pub(crate) fn target(&self) -> String {
        match &self.broker {
            None => "builtin".to_owned(),
            Some(BrokerRequest::One(broker)) => broker.clone(),
            Some(BrokerRequest::Several(brokers)) => brokers.join(", "),
        }
    }

    /// The command line, without the program; `file` is where the upload is.
    ///
    /// # Errors
    /// What is wrong with the request itself, whatever the command says to the rest.
    pub(crate) fn line(&self, file: Option<&str>) -> Result<RequestLine, Problem> {
        self.check()?;
        let mut line = RequestLine::default();
        let scenario = match (file, &self.scenario) {
            (Some(file), _) => file,
            (None, Some(name)) => plain_name(name)?,
            (None, None) => {
                return Err(Problem::new("scenario", "choose a scenario, or upload a file"));
            }
        };
        line.word(
            "command",
            match self.command {
                RunCommand::Run | RunCommand::Suite => "run",
                RunCommand::Ladder => "ladder",
                RunCommand::Capacity => "capacity",
                RunCommand::Compare => "compare",
            },
        );
        line.word("scenario", scenario);
        self.add_kind(&mut line)?;
        self.add_broker(&mut line)?;
        self.add_agents(&mut line)?;
        for (name, value) in &self.variables {
            line.option(&format!("variables.{name}"), "--var", &format!("{name}={value}"));
        }
        for (group, count) in &self.virtual_users {
            let value = format!("{group}={count}");
            line.option(&format!("virtual_users.{group}"), "--virtual-users", &value);
        }
        if let Some(machines) = self.machines {
            line.option("machines", "--machines", &machines.to_string());
        }
        match &self.loops {
            Some(LoopRequest::Times(times)) => {
                line.option("loops", "--jmx-loops", &times.to_string());
            }
            Some(LoopRequest::Word(word)) => line.option("loops", "--jmx-loops", word),
            None => {}
        }
        match self.rows {
            Some(RowRequest::Split) => line.option("rows", "--jmx-rows", "split"),
            Some(RowRequest::Copy) => line.option("rows", "--jmx-rows", "copy"),
            None => {}
        }
        line.seconds("ramp_up_s", "--ramp-up", self.ramp_up_s)?;
        line.seconds("duration_s", "--hold", self.duration_s)?;
        line.seconds("warmup_s", "--warmup", self.warmup_s)?;
        line.each("thresholds", "--threshold", &self.thresholds);
        line.each("monitors", "--monitor", &self.monitors);
        line.each("outputs", "--out", &self.outputs);
        line.optional("name", "--name", self.name.as_ref());
        line.optional("note", "--note", self.note.as_ref());
        Ok(line)
    }

    fn check(&self) -> Result<(), Problem> {
        for (field, list) in [
            ("thresholds", &self.thresholds),
            ("agents", &self.agents),
            ("monitors", &self.monitors),
            ("outputs", &self.outputs),
            ("objectives", &self.objectives),
            ("stop_when", &self.stop_when),
            ("only", &self.only),
            ("data", &self.data),
        ] {
            if list.len() > ENTRIES_MAX {
                let message = format!("{} entries, at most {ENTRIES_MAX}", list.len());
                return Err(Problem::new(field, message));
            }
        }
        if self.variables.len() > ENTRIES_MAX || self.virtual_users.len() > ENTRIES_MAX {
            return Err(Problem::new("variables", format!("at most {ENTRIES_MAX}")));
        }
        checked_tags(self.tags.clone()).map(drop).map_err(|why| Problem::new("tags", why))
    }

    /// What only some commands take.
    fn add_kind(&self, line: &mut RequestLine) -> Result<(), Problem> {
        let only = |field: &str, command: &str| {
            Err(Problem::new(field, format!("only {command} has this")))
        };
        match (self.command, &self.steps) {
            (RunCommand::Ladder, Some(steps)) => line.word("steps", plain_word("steps", steps)?),
            (RunCommand::Ladder, None) => {
                let example = "write a variable and its values: target_throughput=5000..20000:5000";
                return Err(Problem::new("steps", example));
            }
            (_, Some(_)) => return only("steps", "a ladder"),
            (_, None) => {}
        }
        match self.command {
            RunCommand::Capacity => line.each("objectives", "--objective", &self.objectives),
            _ if self.objectives.is_empty() => {}
            _ => return only("objectives", "a capacity search"),
        }
        match (self.command, &self.variable) {
            (RunCommand::Capacity, variable) => {
                line.optional("variable", "--variable", variable.as_ref());
            }
            (_, Some(_)) => return only("variable", "a capacity search"),
            (_, None) => {}
        }
        match self.command {
            RunCommand::Ladder => line.each("stop_when", "--stop-when", &self.stop_when),
            _ if self.stop_when.is_empty() => {}
            _ => return only("stop_when", "a ladder"),
        }
        match self.command {
            RunCommand::Suite => line.each("only", "--only", &self.only),
            _ if self.only.is_empty() => {}
            _ => return only("only", "a suite"),
        }
        self.add_repeats(line)
    }

    fn add_repeats(&self, line: &mut RequestLine) -> Result<(), Problem> {
        let Some(repeat) = self.repeat else { return Ok(()) };
        match self.command {
            RunCommand::Run | RunCommand::Ladder => {
                line.option("repeat", "--repeat", &repeat.to_string());
            }
            RunCommand::Compare => line.option("repeat", "--repeats", &repeat.to_string()),
            RunCommand::Capacity | RunCommand::Suite if repeat == 1 => {}
            RunCommand::Capacity | RunCommand::Suite => {
                let message = "only a run, a ladder or a comparison has this";
                return Err(Problem::new("repeat", message));
            }
        }
        Ok(())
    }

    fn add_agents(&self, line: &mut RequestLine) -> Result<(), Problem> {
        let of_bus = [("bus", &self.bus), ("bus_credentials", &self.bus_credentials)];
        let is_given = |(_, value): &(&str, &Option<String>)| {
            value.as_ref().is_some_and(|value| !value.is_empty())
        };
        if self.agents.is_empty() && of_bus.iter().any(is_given) {
            return Err(Problem::new("agents", "choose the agents of this bus, such as 4"));
        }
        line.each("agents", "--agents", &self.agents);
        line.optional("bus", "--bus", self.bus.as_ref());
        line.optional("bus_credentials", "--bus-credentials", self.bus_credentials.as_ref());
        Ok(())
    }

    fn add_broker(&self, line: &mut RequestLine) -> Result<(), Problem> {
        match (&self.broker, self.command) {
            (None, _) => {}
            (Some(BrokerRequest::Several(brokers)), RunCommand::Compare) => {
                if brokers.len() < 2 || brokers.iter().any(|broker| broker.contains(',')) {
                    let message = "name two brokers or more, each without a comma";
                    return Err(Problem::new("broker", message));
                }
                line.option("broker", "--brokers", &brokers.join(","));
            }
            (Some(BrokerRequest::Several(brokers)), _) => line.each("broker", "--broker", brokers),
            (Some(BrokerRequest::One(broker)), _) => line.option("broker", "--broker", broker),
        }
        if let Some(CredentialRequest { username, password_file }) = &self.credentials {
            line.optional("credentials.username", "--username", username.as_ref());
            let file = password_file.as_ref();
            line.optional("credentials.password_file", "--password-file", file);
        }
        if let Some(TlsRequest { ca_file, cert_file, key_file }) = &self.tls {
            line.optional("tls.ca_file", "--ca", ca_file.as_ref());
            line.optional("tls.cert_file", "--cert", cert_file.as_ref());
            line.optional("tls.key_file", "--key", key_file.as_ref());
        }
        Ok(())
    }
}

impl RequestLine {
    /// The words.
    pub(crate) fn words(&self) -> Vec<String> {
        self.words.iter().map(|(_, word)| word.clone()).collect()
    }

    /// As a shell takes it.
    pub(crate) fn shown(&self) -> String {
        shown(&self.words())
    }

    /// The field that a message about `flag` is about: of several with this flag the one that the
    /// message names.
    pub(crate) fn field(&self, flag: Option<&str>, message: &str) -> Option<String> {
        let with_flag = |(_, word): &&(String, String)| match flag {
            Some(flag) => word == flag || word.starts_with(&format!("{flag}=")),
            None => false,
        };
        let fields: Vec<&str> =
            self.words.iter().filter(with_flag).map(|(field, _)| field.as_str()).collect();
        let names = |field: &&str| {
            field.rsplit_once('.').is_some_and(|(_, name)| message.contains(&format!("'{name}'")))
        };
        // Of thresholds and the like the one whose text the message repeats.
        let is_quoted = |field: &&str| {
            let is_own = |(of, word): &&(String, String)| of == field && Some(&**word) != flag;
            self.words.iter().filter(is_own).any(|(_, word)| {
                let value = word.split_once('=').filter(|_| word.starts_with("--"));
                message.contains(value.map_or(word.as_str(), |(_, value)| value))
            })
        };
        let mut of_all = self.words.iter().map(|(field, _)| field.as_str());
        let found = match &fields[..] {
            [] => of_all.find(names),
            [one] => Some(*one),
            several => {
                let mut all = several.iter().copied();
                let named = all.clone().find(names);
                named.or_else(|| all.find(is_quoted)).or_else(|| several.first().copied())
            }
        };
        found.map(str::to_owned)
    }

    fn word(&mut self, field: &str, word: &str) {
        self.words.push((field.to_owned(), word.to_owned()));
    }

    /// A flag with its value; in one word where the value looks like a flag itself.
    fn option(&mut self, field: &str, flag: &str, value: &str) {
        if value.starts_with('-') {
            return self.word(field, &format!("{flag}={value}"));
        }
        self.word(field, flag);
        self.word(field, value);
    }

    fn optional(&mut self, field: &str, flag: &str, value: Option<&String>) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            self.option(field, flag, value);
        }
    }

    /// The same flag for each value, whose fields are `thresholds[0]` and so on.
    fn each(&mut self, field: &str, flag: &str, values: &[String]) {
        for (index, value) in values.iter().enumerate() {
            self.option(&format!("{field}[{index}]"), flag, value);
        }
    }

    fn seconds(&mut self, field: &str, flag: &str, seconds: Option<f64>) -> Result<(), Problem> {
        match seconds {
            None => Ok(()),
            Some(seconds) if seconds.is_finite() && seconds >= 0.0 => {
                self.option(field, flag, &format!("{}ms", (seconds * 1e3).round()));
                Ok(())
            }
            Some(_) => Err(Problem::new(field, "write a number of seconds from 0")),
        }
    }
}

/// Words as a shell takes them.
pub(crate) fn shown(words: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    let quoted = words.iter().map(|word| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    });
    std::iter::once("tacho".to_owned()).chain(quoted).collect::<Vec<_>>().join(" ")
}

/// The name of a scenario or suite: never a path, which would lead anywhere on this machine.
fn plain_name(name: &str) -> Result<&str, Problem> {
    let is_usable = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    match !name.is_empty() && !name.starts_with('-') && name.chars().all(is_usable) {
        true => Ok(name),
        false => {
            let message = "write the name of a scenario or suite; a file is uploaded first";
            Err(Problem::new("scenario", message))
        }
    }
}

/// A word that stands by itself and must not look like a flag.
fn plain_word<'w>(field: &str, word: &'w str) -> Result<&'w str, Problem> {
    match word.starts_with('-') || word.is_empty() {
        false => Ok(word),
        true => Err(Problem::new(field, format!("'{word}' makes no sense here"))),
    }
}

/// Takes `null` for the empty value.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Values of variables: texts, numbers, or true and false.
fn values<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    use serde_json::Value;
    let given: BTreeMap<String, Value> = or_default(deserializer)?;
    let text = |(name, value): (String, Value)| match value {
        Value::String(text) if text.len() <= VALUE_BYTES_MAX => Ok((name, text)),
        Value::Number(number) => Ok((name, number.to_string())),
        Value::Bool(flag) => Ok((name, flag.to_string())),
        _ => Err(serde::de::Error::custom(format!(
            "the variable '{name}' is a text of at most {VALUE_BYTES_MAX} bytes, a number, true or \
             false"
        ))),
    };
    given.into_iter().map(text).collect()
}

#[cfg(test)]
mod tests;
