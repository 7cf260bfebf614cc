//! Arguments about outputs: services and files that get figures while they arise.

use clap::Args;
use tacho_output::target::OUTPUTS_VARIABLE;
use tacho_output::{OutputSetting, OutputStartError, OutputTarget, Outputs};

use crate::exit::{self, Failure};

/// Where figures go while they arise.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutArguments {
    /// Send the figures of each second to a service or a file while they arise; may be given
    /// several times. Default: the outputs in TACHO_OUT, separated by white space
    ///
    /// influxdb=http://HOST:8086/DATABASE, influxdb=http://HOST:8086?org=ORG&bucket=BUCKET,
    /// prometheus=http://HOST:9090/api/v1/write, otlp=http://HOST:4318, json=FILE, csv=FILE, or
    /// @FILE with one of these per line. Options follow a '?', such as token-file=FILE,
    /// every=5s, on-failure=end, schema=jmeter; docs/outputs.md has all of them. An output never
    /// slows the run: a finding says how many figures a service did not take.
    // Read by `open`: the message of a parser here would repeat the value, with what it may hold.
    #[arg(long = "out", value_name = "KIND=ADDRESS")]
    outputs: Vec<String>,
}

impl OutArguments {
    /// Is there no `--out`?
    pub(crate) fn is_empty(&self) -> bool {
        self.outputs.is_empty()
    }

    /// Checks what the arguments name, without opening it.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.outputs.iter().try_for_each(|text| match OutputTarget::parse_argument(text) {
            Ok(_) => Ok(()),
            Err(error) => Err(Failure::new(exit::INVALID_CONFIG, format!("--out: {error}"))),
        })
    }

    /// Opens what the arguments name, or else the environment; the threads run on `cpus`.
    pub(crate) fn open(&self, cpus: Vec<usize>) -> Result<Outputs, Failure> {
        let invalid = |error| Failure::new(exit::INVALID_CONFIG, error);
        let targets = match (&self.outputs[..], std::env::var(OUTPUTS_VARIABLE)) {
            ([], Ok(text)) => OutputTarget::parse_all(&text)
                .map_err(|error| invalid(format!("{OUTPUTS_VARIABLE}: {error}")))?,
            (given, _) => given
                .iter()
                .map(|text| OutputTarget::parse_argument(text))
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| invalid(format!("--out: {error}")))?
                .concat(),
        };
        Outputs::start(&OutputSetting { targets, cpus }).map_err(|error| match error {
            OutputStartError::Thread(_) => Failure::new(exit::UNEXPECTED, error),
            error => invalid(error.to_string()),
        })
    }
}
