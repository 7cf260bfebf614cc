//! What the brokers' hosts are: this machine, or as their agents describe them.

use std::path::Path;

use tacho_monitor::{
    HostDescription, MonitorSpec, ProcRoot, SourceReport, SourceSpec, describe_host,
};
use tacho_record::TargetRecord;

use super::target::RunTarget;

/// Adds to the records of `targets` what their hosts are; `watched` and `reports` are of the same
/// sources.
pub(super) fn describe(
    records: &mut [TargetRecord],
    targets: &[RunTarget],
    watched: &[MonitorSpec],
    reports: &[SourceReport],
) {
    for (record, target) in records.iter_mut().zip(targets) {
        let told = by_agent(&record.name, reports);
        record.host = told.or_else(|| target.is_local.then(|| this_machine(target, watched)));
    }
}

/// What an agent told: that of the broker, or the only one where it is bound to none.
fn by_agent(name: &str, reports: &[SourceReport]) -> Option<HostDescription> {
    let told = || reports.iter().filter(|report| report.description.is_some());
    let bound = told().find(|report| report.target.as_deref() == Some(name));
    let only = || told().next().filter(|one| one.target.is_none() && told().count() == 1);
    bound.or_else(only)?.description.clone()
}

fn this_machine(target: &RunTarget, watched: &[MonitorSpec]) -> HostDescription {
    let name = target.record.name.as_str();
    let is_mine = |spec: &&MonitorSpec| {
        spec.source == SourceSpec::Local && spec.target.as_deref().is_none_or(|bound| bound == name)
    };
    let asked = watched.iter().filter(is_mine).find_map(|spec| spec.data_dir.as_deref());
    let data: Option<&Path> = target.data_dir.as_deref().or(asked);
    describe_host(&ProcRoot::default(), data, target.record.pid.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(target: Option<&str>, host: Option<&str>) -> SourceReport {
        let described =
            |host: &str| HostDescription { host: host.to_owned(), ..Default::default() };
        SourceReport {
            source: "agent://a:1".to_owned(),
            target: target.map(str::to_owned),
            rows: 1,
            dropped: 0,
            errors: 0,
            last_error: None,
            clock_error_ns_max: None,
            description: host.map(described),
        }
    }

    fn target(name: &str, is_local: bool) -> RunTarget {
        RunTarget {
            record: TargetRecord { name: name.to_owned(), ..TargetRecord::default() },
            addresses: Vec::new(),
            cores: Vec::new(),
            is_local,
            data_dir: None,
            course: std::sync::Arc::new(crate::run::Course::new(None, false)),
            bridges: std::sync::Arc::default(),
        }
    }

    fn described(targets: &[RunTarget], reports: &[SourceReport]) -> Vec<Option<String>> {
        let mut records: Vec<TargetRecord> =
            targets.iter().map(|target| target.record.clone()).collect();
        describe(&mut records, targets, &[], reports);
        records.into_iter().map(|record| Some(record.host?.host)).collect()
    }

    #[test]
    fn each_broker_has_the_host_that_its_agent_describes() {
        let targets = [target("node1", false), target("node2", false), target("node3", false)];
        let reports = [
            report(Some("node2"), Some("b2")),
            report(Some("node1"), Some("b1")),
            // An agent of an earlier version tells nothing.
            report(Some("node3"), None),
        ];
        let hosts = ["b1", "b2"].map(|host| Some(host.to_owned()));
        assert_eq!(described(&targets, &reports), [&hosts[..], &[None]].concat());
    }

    #[test]
    fn an_agent_that_is_bound_to_no_broker_describes_them_only_where_it_is_alone() {
        let targets = [target("", false)];
        let (first, second) = (report(None, Some("b1")), report(None, Some("b2")));
        assert_eq!(described(&targets, std::slice::from_ref(&first)), [Some("b1".to_owned())]);
        assert_eq!(described(&targets, &[first, second]), [None]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_broker_here_has_this_machine_and_the_disk_of_its_data() {
        let mut here = target("", true);
        here.data_dir = Some(std::env::temp_dir());
        let mut records = vec![here.record.clone()];
        describe(&mut records, &[here], &[], &[]);
        let host = records.remove(0).host.expect("this machine");
        assert!(host.kernel.is_some() && host.cores.is_some() && !host.settings.is_empty());
        assert!(host.data_disk.is_some_and(|disk| !disk.file_system.is_empty()));
    }
}
