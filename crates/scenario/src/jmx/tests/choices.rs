//! What is chosen for a plan when it is run.

use super::*;
use crate::{JmxOptions, PlanLoops, RowDivision};

/// The user names of the plan's four senders on two machines, and the notes.
fn user_names(rows: Option<RowDivision>, options: &str) -> (Vec<String>, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let lines: String = (0..20).map(|row| format!("user{row}\n")).collect();
    std::fs::write(folder.path().join("users.csv"), lines).expect("writes");
    let connect = "<net.xmeter.samplers.ConnectSampler";
    let set = format!(
        "<CSVDataSet testclass='CSVDataSet' testname='Users' enabled='true'>\
         <stringProp name='filename'>D:\\load\\users.csv</stringProp>\
         <stringProp name='variableNames'>user</stringProp>{options}</CSVDataSet><hashTree/>{connect}"
    );
    let suffix = "<boolProp name=\"mqtt.client_id_suffix";
    let user = format!("<stringProp name='mqtt.user_name'>${{user}}</stringProp>{suffix}");
    let text = fixture("pairs.jmx").text.replacen(connect, &set, 1).replacen(suffix, &user, 1);
    let source = SourceText::file(&folder.path().join("users.jmx"), &text);
    let jmx = JmxOptions { rows, ..JmxOptions::DEFAULT };
    let adjustment = Adjustment { machines: Some(2), jmx, ..Adjustment::NONE };
    let translation = translate(&source, &vars(&[("senders", "4")]), &adjustment);
    let translation = translation.unwrap_or_else(|error| panic!("{error}"));
    let scenario = Scenario::parse(&translation.source, &[], Limits::NONE);
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{}", translation.source.text));
    let group = &scenario.groups["Senders"];
    let name = |client| group.username(ClientPlace::new(client, 2)).expect("has one");
    ((0..4).map(name).collect(), translation.notes)
}

#[test]
fn rows_are_split_or_copied_whatever_the_plan_says() {
    // Clients 0 and 2 are on the first machine, 1 and 3 on the second one.
    let per_machine = "<stringProp name='rowsForDockers'>10</stringProp>";
    for (rows, options, expected) in [
        (None, "", ["user0", "user1", "user2", "user3"]),
        (None, per_machine, ["user0", "user10", "user1", "user11"]),
        (Some(RowDivision::Split), per_machine, ["user0", "user1", "user2", "user3"]),
        (Some(RowDivision::Copy), per_machine, ["user0", "user0", "user1", "user1"]),
        (Some(RowDivision::Copy), "", ["user0", "user0", "user1", "user1"]),
    ] {
        assert_eq!(user_names(rows, options).0, expected, "{rows:?} {options}");
    }
    let notes = user_names(None, "").1;
    assert!(notes.iter().any(|note| note.contains("'users.csv' beside the plan")), "{notes:?}");
}

#[test]
fn loops_of_thread_groups_are_chosen() {
    let measured = |inner: &str, loops: Option<PlanLoops>| {
        let plan = fixture("pairs.jmx").text;
        let endless = "<intProp name=\"LoopController.loops\">-1";
        let leaves = "testname=\"MQTT DisConnect\" enabled=\"true\"";
        assert!(plan.contains(endless) && plan.contains(leaves));
        let text = plan
            .replace(endless, &format!("<intProp name=\"LoopController.loops\">{inner}"))
            .replace(leaves, "testname=\"MQTT DisConnect\" enabled=\"false\"");
        let jmx = JmxOptions { loops, ..JmxOptions::DEFAULT };
        let adjustment = Adjustment { jmx, ..Adjustment::NONE };
        let translation = translate(&SourceText::new("x.jmx", &text), &[], &adjustment);
        let translation = translation.unwrap_or_else(|error| panic!("{inner}: {error}"));
        let scenario = Scenario::parse(&translation.source, &[], Limits::NONE).expect("a scenario");
        let is_noted = translation.notes.iter().any(|note| note.contains("infinite loop inside"));
        (scenario.phases.measure.0.as_secs(), is_noted)
    };
    // Each of ten senders sends 20 messages a second.
    assert_eq!(measured("40", None), (2, false));
    assert_eq!(measured("40", Some(PlanLoops::Times(3))), (6, false));
    assert_eq!(measured("40", Some(PlanLoops::Forever)), (30, false));
    assert_eq!(measured("-1", Some(PlanLoops::Times(3))), (30, true), "it never comes to an end");
}

#[test]
fn loops_are_written_as_a_number_or_a_word() {
    assert_eq!(PlanLoops::parse("forever"), Ok(PlanLoops::Forever));
    assert_eq!(PlanLoops::parse(" 7 "), Ok(PlanLoops::Times(7)));
    for bad in ["", "0", "-1", "1.5", "ever", "99999999999"] {
        assert!(PlanLoops::parse(bad).expect_err(bad).contains("'forever'"), "{bad}");
    }
}

#[test]
fn a_plan_is_looked_at_without_its_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let connect = "<net.xmeter.samplers.ConnectSampler";
    let set = format!(
        "<CSVDataSet testclass='CSVDataSet' testname='Users' enabled='true'>\
         <stringProp name='filename'>/data/${{folder}}/users.csv</stringProp>\
         <stringProp name='variableNames'></stringProp></CSVDataSet><hashTree/>\
         <CSVDataSet testclass='CSVDataSet' testname='Off' enabled='false'>\
         <stringProp name='filename'>off.csv</stringProp></CSVDataSet><hashTree/>{connect}"
    );
    let text = fixture("pairs.jmx").text.replacen(connect, &set, 1);
    let source = SourceText::file(&folder.path().join("users.jmx"), &text);
    let looked = survey(&source).expect("is a plan");
    let [file] = &looked.files[..] else { panic!("{:?}", looked.files) };
    assert_eq!((file.name.as_str(), file.element.as_str()), ("users.csv", "Users"));
    assert_eq!((file.is_there, file.rows, file.columns.len()), (false, None, 0));
    assert!(text.lines().nth(file.line as usize - 1).is_some_and(|line| line.contains("Users")));
    let names: Vec<&str> = looked.variables.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names[..3], ["host", "port", "q"], "all of them");
    std::fs::write(folder.path().join("users.csv"), "id,name\na,b\nc,d\n").expect("writes");
    let looked = survey(&source).expect("is a plan");
    let file = &looked.files[0];
    assert_eq!((file.is_there, file.rows), (true, Some(2)));
    assert_eq!(file.columns, ["id", "name"]);
    let elsewhere = tempfile::tempdir().expect("a folder");
    let other = elsewhere.path().join("secrets.csv");
    std::fs::write(&other, "hunter2\n").expect("writes");
    let text = text.replace("/data/${folder}/users.csv", &other.display().to_string());
    let looked = survey(&SourceText::file(&folder.path().join("x.jmx"), &text)).expect("a plan");
    let file = &looked.files[0];
    assert_eq!((file.is_there, file.rows, file.columns.len()), (true, None, 0), "not told");
    assert!(survey(&SourceText::new("x.jmx", "<plan/>")).is_err());
}

#[test]
fn a_plan_shows_exactly_its_runtime_variables() {
    let plan = fixture("pairs.jmx").text;
    let runtime = plan.replacen("testname=\"Workload\"", "testname=\"xmeter_runtime_vars\"", 1);
    let head = "<Arguments testclass=\"Arguments\" testname=\"xmeter_runtime_vars\"";
    let other = format!(
        "<Arguments testclass='Arguments' testname='Own' enabled='true'>\
         <elementProp name='hidden' elementType='Argument'>\
         <stringProp name='Argument.name'>hidden</stringProp>\
         <stringProp name='Argument.value'>1</stringProp></elementProp></Arguments><hashTree/>{head}"
    );
    let names = |text: &str| -> Vec<String> {
        let looked = survey(&SourceText::new("x.jmx", text)).expect("is a plan");
        looked.variables.into_iter().map(|one| one.name).collect()
    };
    let with_other = runtime.replacen(head, &other, 1);
    assert!(with_other.contains("hidden"));
    assert_eq!(names(&with_other), names(&plan), "nothing of other elements");
    let all = with_other.replace("xmeter_runtime_vars", "Workload");
    assert!(names(&all).contains(&"hidden".to_owned()), "without such an element all of them");
}
