//! The purpose of the files of a run directory.

use super::catalogue;

catalogue! {
    comparison_json:
        "the comparison: every figure of this page, for programs",
        "对比结果：本页全部数据，供程序读取";
    summary_json: "the run record: every figure of this page, for programs", "运行记录：本页全部数据，供程序读取";
    timeseries_csv: "a row per second", "每秒一行";
    brokers_csv: "a row per second and broker", "每个 Broker 每秒一行";
    groups_csv: "a row per second and group of clients", "每组客户端每秒一行";
    groups_hlog: "latency histograms of each second and group", "每组客户端每秒的延迟直方图";
    resources_csv: "watched hosts and processes, a row per figure and second", "被监控的主机与进程，每项每秒一行";
    steps_csv: "a row per step", "每个步骤一行";
    latency_hlog: "latency histograms of each second, HdrHistogram's interval log", "每秒的延迟直方图，HdrHistogram 间隔日志";
    e2e_hgrm: "percentiles of the end-to-end latency, for HdrHistogram's plotter", "端到端延迟的百分位，供 HdrHistogram 绘图工具使用";
    service_hgrm: "percentiles of the service time", "服务时间的百分位";
    ack_hgrm: "percentiles of the time to the last acknowledgement", "到最后一次确认的时间的百分位";
    send_delay_hgrm: "percentiles of the generator's lateness", "负载生成器迟发程度的百分位";
    results_jtl: "a row per sample, as JMeter writes them: for its dashboard", "JMeter 格式，每个样本一行：供其仪表板使用";
    results_aggregated_jtl: "samples per second, for JMeter's listeners; not for its dashboard", "每秒汇总的样本，供 JMeter 监听器使用，不适用于其仪表板";
    junit_xml: "thresholds and verdicts, for CI", "阈值与结论，供 CI 使用";
    summary_md: "the result as Markdown", "Markdown 格式的结果";
    scenario_toml: "the scenario as it ran: run it again with `tacho run scenario.toml`", "实际运行的场景：用 `tacho run scenario.toml` 重新运行";
    environment_json: "the machine and its settings", "机器及其设置";
    broker_log: "the broker's output", "Broker 的日志";
}
