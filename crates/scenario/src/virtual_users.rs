//! Numbers of clients that are set from outside, group by group.

use super::error::{ScenarioError, SourceText};
use super::limits::Limits;
use super::types::Scenario;

impl Scenario {
    /// The same scenario with other numbers of clients in some groups, checked again as a whole.
    ///
    /// # Errors
    /// When a group does not exist, or the scenario makes no sense with that many clients.
    pub fn with_clients(&self, clients: &[(String, u32)]) -> Result<Self, ScenarioError> {
        if clients.is_empty() {
            return Ok(self.clone());
        }
        let mut changed = self.clone();
        for (name, count) in clients {
            let Some(group) = changed.groups.get_mut(name) else {
                let known: Vec<&str> = self.groups.keys().map(String::as_str).collect();
                return Err(ScenarioError::new(format!(
                    "the scenario has no group '{name}', only {}",
                    known.join(", ")
                )));
            };
            group.clients = *count;
        }
        let source =
            SourceText::new(&format!("{} with other clients", self.name), &changed.to_toml());
        let mut checked = Self::parse(&source, &[], Limits::NONE)?;
        checked.notes = changed.notes;
        Ok(checked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Adjustment;

    #[test]
    fn groups_get_other_clients_and_the_rest_stays() {
        let scenario = Scenario::load("fan-in", &[], &Adjustment::NONE, Limits::NONE);
        let scenario = scenario.expect("is built in");
        let groups: Vec<String> = scenario.groups.keys().cloned().collect();
        let changed = scenario.with_clients(&[(groups[0].clone(), 40)]).expect("makes sense");
        assert_eq!(changed.groups[&groups[0]].clients, 40);
        let mut back = changed;
        back.groups.get_mut(&groups[0]).expect("is there").clients =
            scenario.groups[&groups[0]].clients;
        assert_eq!(back, scenario);
        assert_eq!(scenario.with_clients(&[]).expect("nothing changes"), scenario);
    }

    #[test]
    fn a_group_that_does_not_exist_is_named_with_those_that_do() {
        let scenario = Scenario::load("symmetric", &[], &Adjustment::NONE, Limits::NONE);
        let error = scenario.expect("is built in").with_clients(&[("x".to_owned(), 1)]);
        let error = error.expect_err("no such group").to_string();
        assert!(error.contains("'x'") && error.contains("pub, sub"), "{error}");
    }
}
