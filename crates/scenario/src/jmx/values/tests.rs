use super::*;

fn argument(name: &str, value: &str) -> Argument {
    Argument { name: name.to_owned(), value: value.to_owned(), description: String::new() }
}

fn values(overrides: &[(&str, &str)], arguments: &[(&str, &str)]) -> Values {
    let overrides: Vec<_> =
        overrides.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    let mut values = Values::new(&overrides);
    values.enter_group("Pub");
    for (name, value) in arguments {
        values.define(&argument(name, value)).expect("defines");
    }
    values
}

fn template(values: &mut Values, text: &str) -> String {
    values.evaluate(text).and_then(|value| value.template()).expect("evaluates")
}

#[test]
fn variables_stay_variables() {
    let mut values = values(&[], &[("qos", "1"), ("topic name", "a/${qos}")]);
    assert_eq!(template(&mut values, "x/${qos}"), "x/{{qos}}");
    assert_eq!(template(&mut values, "${topic name}"), "{{topic_name}}");
    let value = values.evaluate("${qos}").expect("evaluates");
    assert_eq!((value.variable(), value.fixed().as_deref()), (Some("qos"), Some("1")));
    assert_eq!(values.fixed("${topic name}"), Ok("a/1".to_owned()));
    assert!(values.evaluate("${none}").expect_err("is missing").contains("'none'"));
    let (_, shown) = values.finish();
    assert_eq!(shown[0].value, VarValue::Integer(1));
    assert_eq!(shown[1].value, VarValue::Text("a/1".to_owned()));
}

#[test]
fn the_command_line_sets_variables_and_properties() {
    let mut values =
        values(&[("qos", "2"), ("rate", "1.2k"), ("x", "y")], &[("qos", "1"), ("rate", "10")]);
    assert_eq!(values.fixed("${qos}/${rate}"), Ok("2/1200".to_owned()));
    assert_eq!(values.unused_override().expect("x").0, "x");
    assert_eq!(values.fixed("${__P(x)}${__P(y,7)}${__P(z)}"), Ok("y71".to_owned()));
    assert_eq!(values.fixed("${__property(x,,d)}${__property(q,,d)}"), Ok("yd".to_owned()));
    assert_eq!(values.unused_override(), None);
}

#[test]
fn clients_and_machines_are_told_apart() {
    let mut values = values(&[], &[]);
    let topic = template(&mut values, "test/${__machineName()}/${__threadNum}");
    assert_eq!(topic, "test/{{machine}}/{{i + 1}}");
    assert!(values.fixed("${__threadNum}").is_err());
    assert_eq!(template(&mut values, "${__threadGroupName}"), "Pub");
    assert_eq!(
        template(&mut values, "${__UUID()}"),
        "{{hex 8 Pub-1}}-{{hex 4 Pub-2}}-{{hex 4 Pub-3}}-{{hex 4 Pub-4}}-{{hex 12 Pub-5}}"
    );
    assert_eq!(
        template(&mut values, "${__Random(1,6,dice)}${dice}"),
        "{{random 1 6 Pub-6}}{{random 1 6 Pub-6}}"
    );
    assert_eq!(template(&mut values, "${__counter(FALSE,)}"), "{{client + 1}}");
    assert_eq!(template(&mut values, "${__RandomString(4,ab)}"), "{{chars 4 ab Pub-7}}");
    let (notes, _) = values.finish();
    assert_eq!(notes.len(), 4, "{notes:?}");
}

#[test]
fn throughput_is_per_minute() {
    let mut values = values(&[], &[("t", "10000")]);
    let mut text = |text: &str| values.fixed(text).expect("evaluates");
    assert_eq!(text("${__xmeterThroughput(${t}, SEC)}"), "600000");
    assert_eq!(text("${__xmeterThroughput(600)}"), "600");
    assert_eq!(text("${__xmeterThroughput(90,HOUR,r)}/${r}"), "1.5/1.5");
    assert!(values.evaluate("${__xmeterThroughput(1,DAY)}").is_err());
}

#[test]
fn messages_have_fields_of_their_own() {
    let mut values = values(&[], &[("unit", "C")]);
    let text = "{\"t\": ${__time()}, \"v\": ${__Random(1,9)}, \"n\": ${__counter(TRUE)}, \"u\": \"${unit}\"}";
    let message = values.message(text).and_then(|value| value.template()).expect("a template");
    assert_eq!(
        message,
        "{\"t\": {{time_ms}}, \"v\": {{random 1 9}}, \"n\": {{seq}}, \"u\": \"{{unit}}\"}"
    );
    assert!(values.message("${__threadNum}").is_err());
    assert_eq!(template(&mut values, "${__threadNum}"), "{{i + 1}}");
}

#[test]
fn unsupported_elements_are_named() {
    let mut values = values(&[], &[]);
    let error = values.evaluate("${__groovy(1+1)}").expect_err("is not supported");
    assert!(error.contains("${__groovy(1+1)}"), "{error}");
    for bad in ["${__Random(6,1)}", "${__time(yyyy)}", "${__RandomString(x)}", "${__intSum(1,b)}"] {
        assert!(values.evaluate(bad).is_err(), "{bad}");
    }
    assert_eq!(values.fixed("${__intSum(1,2,sum)}${sum}"), Ok("33".to_owned()));
    assert!(values.fixed("${__time()}").expect("a time").len() >= 13);
}

#[test]
fn lists_are_cut() {
    let mut values = values(&[], &[("list", "b,c")]);
    let value = values.evaluate("a,${list}/${__threadNum},d").expect("evaluates");
    let cut: Vec<_> =
        value.split(',').iter().map(|value| value.template().expect("a template")).collect();
    assert_eq!(cut, ["a", "b", "c/{{i + 1}}", "d"]);
}

#[test]
fn texts_do_not_grow_without_end() {
    let mut values = values(&[], &[("a", &"x".repeat(60_000))]);
    assert!(values.define(&argument("b", "${a}${a}")).is_err());
}
