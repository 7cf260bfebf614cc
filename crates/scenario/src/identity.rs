//! Client identifiers and credentials for the clients of all groups, from outside a scenario.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use tacho_load::plan::check_text;
use tacho_load::{ScramHash, TlsIdentity};

use super::data::Table;
use super::rows::Rows;
use super::template::{ClientPlace, Template};
use super::token::{Token, TokenPlace};
use super::types::{Group, Phases, ProtocolVersion, Scenario};

/// The columns of a file without a line of names.
const COLUMNS: [&str; 3] = ["username", "password", "client_id"];

/// A template of client identifiers in which `{{group}}` is the name of the client's group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIds(String);

impl ClientIds {
    /// Checks a template.
    ///
    /// # Errors
    /// A sentence when an expression in braces is not supported, or the identifiers cannot be sent.
    pub fn parse(text: &str) -> Result<Self, String> {
        let ids = Self(text.to_owned());
        let first = ids.of_group("group")?.expand(0);
        check_text(&first).map_err(|why| format!("this client id cannot be sent: {why}"))?;
        Ok(ids)
    }

    /// The template of one group.
    fn of_group(&self, group: &str) -> Result<Template, String> {
        let (mut text, mut rest) = (String::new(), self.0.as_str());
        while let Some((before, behind)) = rest.split_once("{{") {
            text.push_str(before);
            rest = match behind.split_once("}}") {
                Some((inner, behind)) if inner.trim() == "group" => {
                    text.push_str(group);
                    behind
                }
                _ => {
                    text.push_str("{{");
                    behind
                }
            };
        }
        text.push_str(rest);
        Template::parse(&text)
    }
}

/// A CSV file with the credentials of one client per row: `user,password[,client_id]`, or columns
/// as its first line names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialFile {
    table: Table,
    rows: Rows,
}

impl CredentialFile {
    /// Reads a file.
    ///
    /// # Errors
    /// A sentence without any content of the file, when it cannot be read or has other columns.
    pub fn read(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let broken = |error: csv::Error| format!("cannot read the credentials '{shown}': {error}");
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_path(&path);
        let reader = reader
            .as_mut()
            .map_err(|error| format!("cannot read the credentials '{shown}': {error}"))?;
        let first = reader.records().next().transpose().map_err(broken)?.unwrap_or_default();
        let named: Option<Vec<&str>> = first
            .iter()
            .map(|cell| match cell.trim() {
                "user" => Some(COLUMNS[0]),
                name => COLUMNS.into_iter().find(|known| *known == name),
            })
            .collect();
        let (columns, skip) = match (named, first.len()) {
            (Some(names), 1..) => (names, 1),
            (_, count @ 2..=3) => (COLUMNS[..count].to_vec(), 0),
            (_, count) => {
                return Err(format!(
                    "the credentials '{shown}' have {count} columns: each row is user,password or \
                     user,password,client_id"
                ));
            }
        };
        let columns = columns.into_iter().map(str::to_owned).collect();
        let rows = Rows { columns, skip, ..Rows::default() };
        Ok(Self { table: Table::read(&path, &rows)?, rows })
    }
}

impl Scenario {
    /// Gives the clients of all groups identifiers of this template. A table of credentials with
    /// identifiers wins over them.
    ///
    /// # Errors
    /// A sentence, when the name of a group cannot be part of a template.
    pub fn set_client_ids(&mut self, ids: &ClientIds) -> Result<(), String> {
        for (name, group) in &mut self.groups {
            group.client_id = ids.of_group(name)?;
        }
        Ok(())
    }

    /// Deals the rows of a file out to the clients of the brokers for which `is_concerned` holds:
    /// group by group, each row once.
    ///
    /// # Errors
    /// A sentence with the number of rows that are needed, when there are too few.
    pub fn deal_credentials(
        &mut self,
        file: &CredentialFile,
        is_concerned: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        let mut first = 0;
        let mut shares = Vec::new();
        for (name, group) in &mut self.groups {
            let target = group.target.as_deref().unwrap_or(Self::DEFAULT_TARGET);
            if group.clients == 0 || !is_concerned(target) {
                continue;
            }
            group.credentials = Some(file.table.clone());
            group.rows = Rows { first, ..file.rows.clone() };
            first += u64::from(group.clients);
            shares.push(format!("{} of '{name}'", group.clients));
        }
        let (needed, rows) = (first, file.table.rows.len() as u64);
        if rows < needed {
            return Err(format!(
                "{needed} clients ({}) need {needed} rows of credentials, '{}' has {rows}: add {} \
                 rows, or use fewer clients",
                shares.join(", "),
                file.table.path.display(),
                needed - rows
            ));
        }
        Ok(())
    }

    /// Has the clients of all groups log in by tokens, whatever the scenario says.
    pub fn set_token(&mut self, token: &Token) {
        for group in self.groups.values_mut() {
            (group.connect.scram, group.connect.token) = (None, Some(token.clone()));
        }
    }

    /// Has the clients of all groups log in by SCRAM, whatever the scenario says.
    pub fn set_scram(&mut self, hash: ScramHash) {
        for group in self.groups.values_mut() {
            (group.connect.scram, group.connect.token) = (Some(hash), None);
        }
    }

    /// Checks that tokens last as long as they have to, and fit the version and the logins.
    ///
    /// # Errors
    /// A sentence that names the group.
    pub fn check_tokens(&self) -> Result<(), String> {
        for (name, group) in &self.groups {
            let connect = &group.connect;
            let by_auth = connect.scram.is_some()
                || connect.token.as_ref().is_some_and(|token| token.place == TokenPlace::Auth);
            if by_auth && self.version_of(group) != ProtocolVersion::V5 {
                return Err(format!("the group '{name}' authenticates by AUTH: that needs MQTT 5"));
            }
            let Some(token) = &connect.token else { continue };
            if group.login.is_some_and(|login| login.unknown_share > 0.0) {
                return Err(format!(
                    "the group '{name}' logs in by tokens, which name their own users: \
                     'unknown_share' has no meaning"
                ));
            }
            let Phases { warmup, measure, drain, .. } = self.phases;
            let ramp = match (connect.rate, connect.ramp) {
                (Some(rate), _) => Duration::from_secs_f64(f64::from(group.clients) / rate.0),
                (None, ramp) => ramp.unwrap_or_default().0,
            };
            let (needed, what) = match &group.login {
                Some(login) => (login.stay.0, "a stay"),
                None => (ramp + warmup.0 + measure.0 + drain.0, "the run"),
            };
            let renews = token.place == TokenPlace::Auth || group.reconnect.is_some();
            if !renews && token.lifetime.0 <= needed {
                return Err(format!(
                    "the tokens of the group '{name}' end before {what} does, which takes {} s: \
                     raise 'lifetime', or renew them with place = \"auth\"",
                    needed.as_secs()
                ));
            }
        }
        Ok(())
    }

    /// Checks that the clients that are to present wrong credentials, or to prove that they know
    /// right ones, have these.
    ///
    /// # Errors
    /// A sentence that names the group, and says where its clients get them from.
    pub fn check_logins(&self) -> Result<(), String> {
        let loaded = |(_, group): &(&String, &Group)| group.clients > 0;
        for (name, group) in self.groups.iter().filter(loaded) {
            self.check_scram(name, group)?;
            let Some(login) = group.login else { continue };
            let places =
                || (0..group.clients.into()).map(|client| ClientPlace::new(client, self.machines));
            let has_token = group.connect.token.is_some();
            if login.wrong_share > 0.0
                && !has_token
                && places().any(|place| group.password(place).is_none())
            {
                return Err(format!(
                    "clients of the group '{name}' are to present wrong passwords and have no right \
                     ones: use --credentials, --password-file or TACHO_PASSWORD"
                ));
            }
            if login.unknown_share > 0.0 && places().any(|place| group.username(place).is_none()) {
                return Err(format!(
                    "clients of the group '{name}' are to present unknown user names and have no \
                     known ones: use --credentials, --username or TACHO_USERNAME"
                ));
            }
        }
        Ok(())
    }

    fn check_scram(&self, name: &str, group: &Group) -> Result<(), String> {
        if group.connect.scram.is_none() {
            return Ok(());
        }
        let places =
            || (0..group.clients.into()).map(|client| ClientPlace::new(client, self.machines));
        // One from the environment that is not set has an error of its own.
        let is_given = group.connect.password.is_some();
        let (what, how) = if places().any(|place| group.username(place).is_none()) {
            ("user name", "--username or TACHO_USERNAME")
        } else if !is_given && places().any(|place| group.password(place).is_none()) {
            ("password", "--password-file or TACHO_PASSWORD")
        } else {
            return Ok(());
        };
        Err(format!(
            "clients of the group '{name}' log in by SCRAM and have no {what}: use --credentials, \
             {how}"
        ))
    }

    /// The certificate of a client's own, where the clients of its broker have such ones: read or
    /// signed when it is asked for first.
    ///
    /// # Errors
    /// A sentence that names client and file.
    pub fn certificate(
        &self,
        group: &Group,
        place: ClientPlace,
    ) -> Result<Option<TlsIdentity>, String> {
        let name = || group.username(place).unwrap_or_else(|| group.client_id(place));
        let identity = self.target_of(group).1.tls.certificate(place, name);
        identity.map_err(|why| {
            format!("the client '{}' has no certificate: {why}", group.client_id(place))
        })
    }

    /// Reads or signs the certificates of all clients of a broker.
    ///
    /// # Errors
    /// A sentence that names client and file.
    pub fn prepare_certificates(&self, target: &str) -> Result<(), String> {
        for group in self.groups.values().filter(|group| self.target_of(group).0 == target) {
            for client in 0..u64::from(group.clients) {
                self.certificate(group, ClientPlace::new(client, self.machines))?;
            }
        }
        Ok(())
    }

    /// Checks that no two clients of a broker have the same identifier.
    ///
    /// # Errors
    /// A sentence that names it and the groups.
    pub fn check_client_ids(&self) -> Result<(), String> {
        let mut owners = HashMap::new();
        let loaded = |(_, group): &(&String, &Group)| group.clients > 0;
        for (name, group) in self.groups.iter().filter(loaded) {
            for client in 0..u64::from(group.clients) {
                let id = group.client_id(ClientPlace::new(client, self.machines));
                let target = group.target.as_deref();
                if let Some(other) = owners.insert((target, id.clone()), name) {
                    let groups = match other == name {
                        true => format!("two clients of the group '{name}'"),
                        false => format!("clients of the groups '{other}' and '{name}'"),
                    };
                    return Err(format!(
                        "{groups} would have the same client id '{id}': put {{{{group}}}} and \
                         {{{{client}}}} into the template of --client-id, or use different ones in \
                         the column client_id of --credentials"
                    ));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builtin, Limits, Password};

    fn small() -> Scenario {
        let vars = ["publishers", "subscribers"].map(|name| (name.to_owned(), "2".to_owned()));
        let source = Builtin::find("symmetric").expect("is built in").source();
        Scenario::parse(&source, &vars, Limits::NONE).expect("parses")
    }

    /// Identifier, user name and password of all clients.
    fn clients(scenario: &Scenario) -> Vec<[Option<String>; 3]> {
        let groups = scenario.groups.values();
        groups
            .flat_map(|group| (0..u64::from(group.clients)).map(move |client| (group, client)))
            .map(|(group, client)| {
                let place = ClientPlace::new(client, scenario.machines);
                [Some(group.client_id(place)), group.username(place), group.password(place)]
            })
            .collect()
    }

    #[test]
    fn wrong_credentials_need_right_ones() {
        let source = Builtin::find("login").expect("is built in").source();
        let vars = |name: &str| {
            [("users".to_owned(), "2".to_owned()), (name.to_owned(), "0.5".to_owned())]
        };
        for (name, word) in [("wrong_share", "passwords"), ("unknown_share", "user names")] {
            let mut scenario = Scenario::parse(&source, &vars(name), Limits::NONE).expect("parses");
            let error = scenario.check_logins().expect_err(name);
            assert!(error.contains(word) && error.contains("'user'"), "{error}");
            let user = Template::parse("user{{i}}").expect("parses");
            scenario.complete_credentials(Some(&user), Some(&Password::text("p".to_owned())));
            assert_eq!(scenario.check_logins(), Ok(()));
        }
    }

    #[test]
    fn identifiers_are_unique_over_groups() {
        let mut scenario = small();
        let ids = ClientIds::parse("dev-{{ group }}-{{client + 1}}").expect("parses");
        scenario.set_client_ids(&ids).expect("are templates");
        scenario.check_client_ids().expect("are unique");
        let ids: Vec<_> = clients(&scenario).into_iter().map(|[id, ..]| id.expect("is")).collect();
        assert_eq!(ids, ["dev-pub-1", "dev-pub-2", "dev-sub-1", "dev-sub-2"]);
        for (text, words) in [
            ("dev-{{client}}", "clients of the groups 'pub' and 'sub'"),
            ("dev-{{group}}", "two clients of the group 'pub'"),
        ] {
            scenario.set_client_ids(&ClientIds::parse(text).expect("parses")).expect("are");
            let error = scenario.check_client_ids().expect_err(text);
            assert!(error.contains(words) && error.contains("{{group}}"), "{error}");
        }
        assert!(ClientIds::parse("{{groups}}").is_err() && ClientIds::parse("{{group").is_err());
    }

    #[test]
    fn rows_of_credentials_are_dealt_out_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("users.csv");
        let rows = "u1,s1,c1\nu2,s2,c2\nu3,s3,\nu4,s4,c4\n";
        let file = |text: &str| {
            std::fs::write(&path, text).expect("is written");
            CredentialFile::read(&path)
        };
        let some = |text: &str| Some(text.to_owned());
        for text in [rows.to_owned(), format!("user, password, client_id\n{rows}")] {
            let mut scenario = small();
            let file = file(&text).expect("is CSV");
            scenario.deal_credentials(&file, |_| true).expect("are enough");
            let dealt = clients(&scenario);
            assert_eq!(dealt[0], [some("c1"), some("u1"), some("s1")]);
            assert_eq!(dealt[2], [some("sub_m1_0"), some("u3"), some("s3")], "the template's id");
            assert_eq!(dealt[3], [some("c4"), some("u4"), some("s4")]);
            let again = Scenario::parse(
                &crate::SourceText::new("again", &scenario.to_toml()),
                &[],
                Limits::NONE,
            );
            assert_eq!(clients(&again.expect("is a scenario again")), dealt);
        }
        let mut scenario = small();
        let few = file("u1,s1\nu2,s2\nu3,s3\n").expect("is CSV");
        let error = scenario.deal_credentials(&few, |_| true).expect_err("one is missing");
        assert!(error.contains("4 clients (2 of 'pub', 2 of 'sub') need 4 rows"), "{error}");
        assert!(error.contains("has 3: add 1"), "{error}");
        scenario.deal_credentials(&few, |target| target == "other").expect("concerns no group");
        assert!(!format!("{few:?}").contains("s1"), "{few:?}");
        for text in ["s1\n", "a,s1,c,d\n", "", "a,s1\nb\n"] {
            let error = file(text).expect_err("is no such file");
            assert!(error.contains("users.csv") && !error.contains("s1"), "{error}");
        }
        assert!(CredentialFile::read(Path::new("/no/such/file")).is_err());
    }
}
