//! Headings, heads of tables and labels of pages.

use super::catalogue;

catalogue! {
    nothing_was_recorded: "Nothing was recorded.", "没有记录到数据。";
    too_few_samples: " (too few samples)", "（样本太少）";
    measured_window: "measured window", "测量窗口";
    least_value: "min", "最小";
    max: "max", "最大";
    mean: "mean", "平均";
    contents: "Contents", "目录";
    name_of_the_run: "Name", "名称";
    note_on_the_run: "Note", "备注";
    load_test: "Load test", "负载测试";
    load_test_in_steps: "Load test in steps", "阶梯负载测试";
    capacity_search: "Capacity search", "容量搜索";
    comparison: "Comparison", "对比测试";
    test_suite: "Test suite", "测试套件";
    info: "info", "提示";
    warning: "warning", "警告";
    error: "error", "错误";
    files: "Files", "文件";
    rates_and_latency_over_time: "Rates and latency over time", "速率与延迟随时间的变化";
    phases: "Phases", "阶段";
    response_times_throughput_and_failures:
        "Response times, throughput and failures",
        "响应时间、吞吐量与失败";
    broker_network_and_generator: "Broker, network and generator", "Broker、网络与负载生成器";
    figures_of_the_measured_window: "Figures of the measured window", "测量窗口的数据";
    messages_per_second_in_out: "messages per second, in + out", "消息/秒（流入 + 流出）";
    mean_latency: "mean latency", "平均延迟";
    p99_of_latency: "99th percentile of latency", "延迟的第 99 百分位";
    repeated_load_test: "Repeated load test", "重复的负载测试";
    over_the_runs: "Over the runs", "各次运行的统计";
    median: "median", "中位数";
    runs_that_count: "runs that count", "计入的运行";
    deliveries_lost: "deliveries lost", "丢失的投递";
    acknowledged_but_lost: "acknowledged, but lost", "已确认却丢失";
    deliveries_acknowledged_but_lost:
        "deliveries acknowledged, but lost, warm-up included", "已确认却丢失的投递（含预热）";
    warm_up_included: "  warm-up included", "  其中含预热";
    yes: "yes", "是";
    cpu_of_the_brokers_host: "CPU of the broker's host", "Broker 主机的 CPU";
    cpu_of_the_brokers_cores: "CPU of the broker's cores", "Broker 所用核的 CPU";
    broker_cpu_one_core_100_percent: "broker CPU, one core = 100 %", "Broker CPU（单核 = 100 %）";
    not_observed: "not observed", "未观测";
    memory_of_the_broker_rss: "memory of the broker (RSS)", "Broker 内存（RSS）";
    measured_windows_figures_of_the_last:
        "measured windows; figures of the last",
        "个测量窗口；此处为最后一个的数据";
    latency_by_percentile: "Latency by percentile", "各百分位的延迟";
    latency: "latency", "延迟";
    too_few_for_this_percentile: "–: too few samples for this percentile.", "–：样本太少，无法给出该百分位。";
    in_the_columns_of_published_tables: "In the columns of published tables", "按已公布表格的列";
    brokers: "Brokers", "Broker 一览";
    broker: "broker", "Broker";
    in_s: "in/s", "流入/秒";
    out_s: "out/s", "流出/秒";
    tps_in_out: "TPS in + out", "TPS（流入 + 流出）";
    whose_column: "whose", "统计对象";
    host_cpu: "host CPU", "主机 CPU";
    shared_subscriptions: "Shared subscriptions", "共享订阅";
    filter: "filter", "主题过滤器";
    members: "members", "成员";
    received: "received", "已接收";
    least: "least", "最少";
    most: "most", "最多";
    gini: "Gini", "基尼系数";
    health_of_the_generator: "Health of the generator", "负载生成器的健康检查";
    check: "check", "检查项";
    figure: "figure", "数值";
    must_stay_below: "must stay below", "必须低于";
    holds: "holds", "满足";
    does_not_hold: "does not hold", "不满足";
    and_others: "and", "另有";
    lost_messages_by_sequence_number: "Lost messages by sequence number", "丢失的消息（按序号）";
    in_all: "in all", "总计";
    losses_that_the_scenario_declares: "Losses that the scenario declares", "场景声明的丢失";
    thresholds: "Thresholds", "阈值";
    condition: "condition", "条件";
    first_failures_of_clients: "First failures of clients", "客户端最初的失败";
    how_to_reproduce: "How to reproduce", "如何复现";
    the_command_with_passwords_and_tokens_left_out:
        "The command, with passwords and tokens left out:",
        "所用命令（密码与令牌已略去）：";
    the_same_load:
        "The same load from the files beside this page, unaffected by later changes of scenarios:",
        "用本页旁边的文件重放同样的负载（不受内置场景后来变化的影响）：";
    seed: "seed", "随机种子";
    broker_command: "broker command", "Broker 启动命令";
    median_time_to_connack: "median time to CONNACK", "收到 CONNACK 的中位时间";
    median_time_of_tls_and_websocket_handshakes:
        "median time of TLS and WebSocket handshakes",
        "TLS 与 WebSocket 握手的中位时间";
    median_time_to_suback: "median time to SUBACK", "收到 SUBACK 的中位时间";
    clients_connected: "clients connected", "已连接的客户端";
    failures_of_clients: "failures of clients", "客户端失败次数";
    scenario: "Scenario", "场景";
    clock_error_unknown: "clock error unknown", "时钟误差未知";
    watched_hosts: "Watched hosts", "被监控的主机";
    environment: "Environment", "环境";
    machine: "Machine", "机器";
    kernel_settings: "Kernel settings", "内核参数";
    capacity: "Capacity", "容量";
    none: "none", "无";
    lowest_that_failed: "lowest that failed", "未通过的最小值";
    highest_tps_of_a_valid_step: "highest TPS of a valid step", "有效步骤的最高 TPS";
    p99_there: "99th percentile there", "该步骤的第 99 百分位延迟";
    steps_measured: "steps measured", "已测步骤";
    points_skipped: "points skipped", "跳过的测点";
    recommended_workload: "Recommended workload", "推荐负载";
    series: "series", "系列";
    objective: "objective", "目标";
    whose_cpu: "whose CPU", "CPU 统计对象";
    interval_95: "95 % interval", "95 % 置信区间";
    nearest_step: "nearest step", "最近的步骤";
    steps: "Steps", "步骤";
    scenarios: "Scenarios", "各场景";
    the_same_steps_with_connections_and_rates_apart:
        "The same steps with connections and rates apart",
        "同样的步骤，连接数与速率分列";
    end_to_end_latency_by_percentile: "End-to-end latency by percentile", "各百分位的端到端延迟";
    steps_that_do_not_count: "Steps that do not count", "不计入结果的步骤";
    hollow_and_hatched:
        "Hollow in the charts and hatched in the tables; no result is drawn from them.",
        "在图中为空心，在表中带斜纹；不据此得出任何结论。";
    skipped: "Skipped", "已跳过";
    point: "point", "测点";
    why: "why", "原因";
    phase_column: "phase", "阶段";
    begins: "from", "开始";
    acknowledged: "acknowledged", "已确认";
    received_per_second: "received per second", "接收/秒";
    killed_at: "killed at", "终止于";
    serving_again_after: "serving again after", "恢复服务用时";
    waited_at_the_worst: "waited in bridges at the worst", "桥接中等待的最大消息数";
    no_more_waited_after: "no more than before after", "恢复到之前水平用时";
    brokers_killed_and_started_again: "Brokers killed and started again", "被终止并重新启动的 Broker";
    qos0_is_kept: "QoS 0 is kept for absent clients", "为离线客户端保留 QoS 0 消息";
    qos0_is_not_kept: "QoS 0 is not kept for absent clients", "不为离线客户端保留 QoS 0 消息";
    unknown: "unknown", "未知";
}
