//! Checks of publications.

use toml::Spanned;

use super::checker::{Checked, Checker};
use crate::data::Table;
use crate::quantity::PerSecond;
use crate::raw::{RawPublish, RawRate, RawTrace};
use crate::rows::Rows;
use crate::stream::{Arrivals, Model, PhasePolicy, Publish, Rate, RateFrom, Trace};
use crate::template::Template;
use crate::types::ProtocolVersion;

impl Checker<'_> {
    fn response_topic(
        &self,
        raw: &RawPublish,
        version: ProtocolVersion,
    ) -> Checked<Option<Template>> {
        let Some(topic) = &raw.response_topic else { return Ok(None) };
        if version != ProtocolVersion::V5 {
            return Err(self
                .error(topic.span(), "'response_topic' requires MQTT 5")
                .label("the clients use an older version"));
        }
        self.topic(topic, "topic").map(Some)
    }

    pub(super) fn publish(&self, raw: &RawPublish, version: ProtocolVersion) -> Checked<Publish> {
        Ok(Publish {
            topic: self.topic(&raw.topic, "topic")?,
            response_topic: self.response_topic(raw, version)?,
            qos: raw.qos.as_ref().map_or(Ok(0), |qos| self.qos(qos))?,
            retain: raw.retain,
            model: self.model(raw)?,
            payload: self.payload(&raw.payload)?,
        })
    }

    fn model(&self, raw: &RawPublish) -> Checked<Model> {
        let name = raw.model.as_ref().map_or("", |model| model.get_ref().as_str());
        let name = match (name, &raw.trace, &raw.burst) {
            ("", Some(_), _) => "trace",
            ("", _, Some(_)) => "bursts",
            ("", ..) => "open",
            (name, ..) => name,
        };
        let for_one_model = [
            (raw.window.as_ref().map(Spanned::span), "window", "closed"),
            (raw.burst.as_ref().map(Spanned::span), "burst", "bursts"),
            (raw.trace.as_ref().map(Spanned::span), "trace", "trace"),
        ];
        let stray =
            for_one_model.into_iter().find(|(span, _, owner)| span.is_some() && *owner != name);
        let catch_up = raw.catch_up.unwrap_or(true);
        let model = match name {
            "open" => {
                Model::Open { rate: self.stream_rate(raw)?, phase: self.phase(raw)?, catch_up }
            }
            "poisson" => Model::Poisson { rate: self.stream_rate(raw)?, catch_up },
            "bursts" => {
                let Some(burst) = &raw.burst else {
                    return Err(self
                        .error(raw.topic.span(), "the size of the bursts is missing")
                        .help("add burst = 10"));
                };
                let burst = self.whole(burst, "a burst", 1, 1_000_000)? as u32;
                let (rate, phase) = (self.stream_rate(raw)?, self.phase(raw)?);
                Model::Bursts { rate, burst, phase, catch_up }
            }
            "trace" => {
                let Some(trace) = &raw.trace else {
                    return Err(self.error(raw.topic.span(), "the trace is missing").help(
                        "add trace = { file = \"arrivals.csv\" } or { at = [\"0s\", ...] }",
                    ));
                };
                Model::Trace { trace: self.trace(trace)?, catch_up }
            }
            "jmeter" => {
                Model::Jmeter { rate: self.stream_rate(raw)?, wait: raw.wait.unwrap_or(false) }
            }
            "closed" => {
                let window = raw.window.as_ref();
                let window =
                    window.map_or(Ok(1), |window| self.whole(window, "a window", 1, 65_535))?;
                Model::Closed { window: window as u32 }
            }
            _ => {
                // Invariant: only a given name is none of these.
                let model = raw.model.as_ref().unwrap_or(&raw.topic);
                let choices = "\"open\", \"poisson\", \"bursts\", \"trace\", \"jmeter\" or \
                               \"closed\"";
                return Err(self.choice(model, "model", choices));
            }
        };
        match stray {
            Some((Some(span), key, owner)) => Err(self
                .error(span, format!("'{key}' belongs to model = \"{owner}\""))
                .label(format!("the model here is \"{name}\""))),
            _ => Ok(model),
        }
    }

    fn phase(&self, raw: &RawPublish) -> Checked<PhasePolicy> {
        Ok(match raw.phase.as_ref().map(|phase| (phase, phase.get_ref().as_str())) {
            None | Some((_, "uniform")) => PhasePolicy::Uniform,
            Some((_, "random")) => PhasePolicy::Random,
            Some((_, "aligned")) => PhasePolicy::Aligned,
            Some((phase, _)) => {
                let choices = "\"uniform\", \"random\" or \"aligned\"";
                return Err(self.choice(phase, "phase", choices));
            }
        })
    }

    fn stream_rate(&self, raw: &RawPublish) -> Checked<Rate> {
        let Some(rate) = &raw.rate else {
            return Err(self
                .error(raw.topic.span(), "this stream has no rate")
                .help("add rate = { total = 100 } or rate = { per_client = 10 }"));
        };
        let RawRate { total, per_client } = rate.get_ref();
        match (total, per_client) {
            (Some(total), None) => Ok(Rate::Total(self.rate(total)?)),
            (None, Some(each)) => Ok(Rate::PerClient(self.rate(each)?)),
            _ => Err(self
                .error(rate.span(), "a rate is either total or per client")
                .label("{ total = 100 } or { per_client = 10 }")),
        }
    }

    fn rate(&self, rate: &Spanned<PerSecond>) -> Checked<PerSecond> {
        match rate.get_ref().0 {
            value if value > 0.0 && value * self.adjustment.scale <= 1e9 => {
                Ok(PerSecond(value * self.adjustment.scale))
            }
            value if value > 0.0 => {
                Err(self.error(rate.span(), "more than 1,000,000,000 messages per second"))
            }
            value => Err(self
                .error(rate.span(), format!("at a rate of {value} no messages are published"))
                .label("more than 0 messages per second")),
        }
    }

    fn trace(&self, raw: &Spanned<RawTrace>) -> Checked<Trace> {
        let RawTrace { at, rates, file, repeat, each, speed } = raw.get_ref();
        let (arrivals, span) = match (at, rates, file) {
            (Some(at), None, None) => (Arrivals::At(at.get_ref().clone()), at.span()),
            (None, Some(rates), None) => {
                let rate_from = rates.get_ref().iter();
                let rate_from = rate_from.map(|raw| RateFrom { from: raw.from, rate: raw.rate });
                (Arrivals::Rates(rate_from.collect()), rates.span())
            }
            (None, None, Some(file)) => {
                let table = self.table(file, &Rows::default())?;
                if table.column("at").is_none() {
                    return Err(self
                        .error(file.span(), "this table has no column 'at'")
                        .help("'at' is the time of a message, or the start of a 'rate'"));
                }
                (Arrivals::File(table), file.span())
            }
            _ => {
                return Err(self
                    .error(raw.span(), "a trace has exactly one of 'at', 'rates' and 'file'")
                    .label("give one of them"));
            }
        };
        let given = speed.as_ref().map_or(1.0, |speed| *speed.get_ref());
        if let Some(speed) = speed.as_ref().filter(|_| !(given.is_normal() && given > 0.0)) {
            return Err(self.error(speed.span(), "a speed is a number above 0"));
        }
        let repeat = repeat.as_ref().map(|repeat| *repeat.get_ref());
        let trace = Trace { arrivals, repeat, each: *each, speed: given * self.adjustment.scale };
        // Expanding it finds its errors.
        trace.spelled_out(1).map_err(|title| self.error(span, title))?;
        Ok(trace)
    }

    /// A table beside the scenario's file.
    pub(super) fn table(&self, file: &Spanned<std::path::PathBuf>, how: &Rows) -> Checked<Table> {
        Table::read(&self.source.path(file.get_ref()), how)
            .map_err(|title| self.error(file.span(), title))
    }
}
