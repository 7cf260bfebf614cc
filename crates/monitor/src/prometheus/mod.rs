//! Host metrics from a Prometheus endpoint: node_exporter's, or a program's own.

mod host;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use host::Endpoint;
