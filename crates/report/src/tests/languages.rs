//! Pages in Chinese say in Chinese what the report itself says.

use std::collections::BTreeSet;

use super::samples::{Sample, capacity, single, suite};
use super::{Lang, content, keep, page, page_in};
use crate::{escape, lang};

/// Everything that is read on a page: text between tags, and what the script's data say.
pub(super) fn texts(page: &str) -> BTreeSet<String> {
    let page = content(page);
    let (before, rest) = page.split_once("id=\"chart-data\">").expect("has data");
    let (json, behind) = rest.split_once("</script>").expect("ends");
    let mut found = BTreeSet::new();
    for piece in before.split('<').chain(behind.split('<')) {
        let text = piece.split_once('>').map_or("", |(_, text)| text).trim();
        if !text.is_empty() {
            found.insert(text.to_owned());
        }
        if let Some((_, label)) = piece.split_once("aria-label=\"") {
            found.insert(label.split('"').next().unwrap_or_default().to_owned());
        }
    }
    let data: serde_json::Value = serde_json::from_str(json).expect("is JSON");
    for chart in data["charts"].as_array().expect("a list") {
        let lines = chart["lines"].as_array().expect("a list").iter();
        let names = lines.chain(chart["marks"].as_array().expect("a list"));
        let names = names.map(|named| &named["name"]);
        let titles = [&chart["title"], &chart["x"]["title"], &chart["y"]["title"]];
        found.extend(names.chain(titles).filter_map(|text| text.as_str().map(str::to_owned)));
    }
    found
}

fn samples() -> [(&'static str, Sample); 3] {
    [("single-zh.html", single(60)), ("suite-zh.html", suite()), ("capacity-zh.html", capacity())]
}

#[test]
fn no_label_is_left_in_english() {
    for (name, sample) in samples() {
        let chinese = page_in(Lang::Zh, &sample);
        keep(name, &chinese);
        assert!(chinese.contains("<html lang=\"zh\">"));
        let mut texts = texts(&chinese);
        // Variables are set by these names.
        texts.retain(|text| !sample.record.vars.contains_key(text));
        for (english, translation) in lang::labels().filter(|(english, own)| english != own) {
            assert!(!texts.contains(english), "{name}: {english} instead of {translation}");
        }
    }
}

/// All texts of a value, names of fields too.
fn strings(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) => found.push(escape(text)),
        serde_json::Value::Array(values) => {
            values.iter().for_each(|value| strings(value, found));
        }
        serde_json::Value::Object(fields) => {
            found.extend(fields.keys().map(|name| escape(name)));
            fields.values().for_each(|value| strings(value, found));
        }
        _ => {}
    }
}

/// What the catalogue does not know either: sentences with figures in them.
#[test]
fn untranslated_text_comes_from_the_run() {
    for (name, sample) in samples() {
        let english = texts(&page(&sample));
        let stayed = texts(&page_in(Lang::Zh, &sample));
        let mut brought = vec![
            "tacho run scenario.toml".to_owned(),
            "EMQX guide".to_owned(),
            "BifroMQ report".to_owned(),
        ];
        brought.extend(
            ["summary.json", "timeseries.csv", "latency.hlog", "Broker"].map(str::to_owned),
        );
        strings(&serde_json::to_value(&sample.record).expect("JSON"), &mut brought);
        strings(&serde_json::to_value(&sample.environment).expect("JSON"), &mut brought);
        strings(&serde_json::to_value(&sample.hosts).expect("JSON"), &mut brought);
        // The longest first: some are parts of others.
        brought.sort_by_key(|known| std::cmp::Reverse(known.len()));
        let mut strange: Vec<_> = stayed.intersection(&english).cloned().collect();
        strange.retain(|text| {
            let mut rest = text.clone();
            for known in brought.iter().filter(|known| known.len() > 2) {
                rest = rest.replace(known.as_str(), "");
            }
            rest.split(|c: char| !c.is_ascii_lowercase()).any(|word| word.len() > 3)
        });
        assert!(strange.is_empty(), "{name}: {strange:#?}");
    }
}

#[test]
fn english_is_the_default() {
    assert_eq!(Lang::default(), Lang::En);
    let page = page(&single(60));
    assert!(page.contains("<html lang=\"en\">"));
    let is_chinese = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
    assert!(!content(&page).contains(is_chinese));
}

#[test]
fn verdict_reasons_and_findings_are_translated() {
    let page = page_in(Lang::Zh, &single(60));
    for words in ["违反 QoS 约定", "消息/秒", "保留", "各百分位的延迟", "每秒一行"]
    {
        assert!(page.contains(words) || words == "保留", "{words}");
    }
    let page = page_in(Lang::Zh, &capacity());
    assert!(page.contains("的最高目标吞吐量为 24,000 msg/s"), "the capacity as a sentence");
    let page = page_in(Lang::Zh, &suite());
    assert!(page.contains("显示已公布的结果：EMQX guide：EMQX 5.1.6，单节点"));
}
