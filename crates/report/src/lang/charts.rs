//! Titles, axes and lines of charts.

use super::catalogue;

catalogue! {
    graphs_of_the_rows: "Graphs of the rows", "各行的图表";
    graphs_as_published:
        "Rate, mean, 99th percentile and maximum over the measured window of each row, as the BifroMQ report shows them.",
        "每一行在测量窗口内的速率、平均值、第 99 百分位与最大值，与 BifroMQ 报告的图表相同。";
    time_in_the_window_s: "time in the measured window (s)", "测量窗口内的时间（秒）";
    order_of_trials: "order of trials", "试验顺序";
    met_all_objectives: "met all objectives", "满足全部目标";
    missed_one: "missed one", "未满足某个目标";
    disturbed: "disturbed", "受到干扰";
    generator_bound: "generator-bound", "受限于负载生成器";
    trial: "trial", "试验";
    highest_pass: "highest pass", "最高通过值";
    lowest_fail: "lowest fail", "最低失败值";
    trials: "Trials", "试验";
    latency_at_parts_of_the_capacity:
        "Latency at parts of the capacity", "容量的各个比例下的延迟";
    trials_of_the_search: "Trials of the search", "搜索中的试验";
    purpose: "purpose", "目的";
    value: "value", "取值";
    length: "length", "时长";
    avg: "avg", "平均值";
    outcome: "outcome", "结果";
    pass: "pass", "通过";
    fail: "fail", "失败";
    throughput_messages_in_out_per_second:
        "throughput: messages in + out per second",
        "吞吐量：流入 + 流出消息/秒";
    step: "step", "步骤";
    cpu_axis: "CPU (percent)", "CPU（百分比）";
    time_since_the_start_of_the_run_s: "time since the start of the run (s)", "运行开始后的时间（秒）";
    measured_band: "measured", "测量窗口";
    messages_per_second_title: "Messages per second", "消息/秒";
    messages_per_second: "messages per second", "消息/秒";
    logins_per_second_title: "Logins per second", "登录/秒";
    logins_per_second: "logins per second", "登录/秒";
    login_latency: "Login latency", "登录延迟";
    login_latency_is_since_due:
        "From the time a login with right credentials was due to the CONNACK that accepts it.",
        "使用正确凭据的登录，从计划时刻到接受它的 CONNACK。";
    sent: "sent", "已发送";
    offered: "offered", "应发送";
    end_to_end_latency: "End-to-end latency", "端到端延迟";
    latency_is_since_due: "From the time a message was due to its receipt.", "从消息的计划发送时刻到被接收。";
    end_to_end: "end to end", "端到端";
    rate_messages_received: "Rate: messages received", "速率：已接收消息";
    mean_latency_title: "Mean latency", "平均延迟";
    greatest_latency: "Greatest latency", "最大延迟";
    service_from_written: "service (from the time it was written)", "服务时间（从写出时刻起）";
    send_delay_line: "send delay (of the generator)", "发送延迟（负载生成器）";
    share_of_messages_that_were_at_least_as_fast:
        "share of messages that were at least as fast",
        "延迟不高于此值的消息占比";
    round_trip_to_the_broker_beside_latency:
        "Round trip to the broker beside latency",
        "到 Broker 的往返时间与延迟";
    latency_p99: "latency p99", "延迟 p99";
    latency_p50: "latency p50", "延迟 p50";
    round_trip_max: "round trip max", "往返最大";
    round_trip_p50: "round trip p50", "往返 p50";
    broker_process: "broker process", "Broker 进程";
    brokers_cores_busy: "broker's cores, busy", "Broker 所用核的忙碌率";
    generator_threads: "generator threads", "负载生成器线程";
    cpu_of_broker_and_generator: "CPU of broker and generator", "Broker 与负载生成器的 CPU";
    percent_one_core_100: "percent (one core = 100)", "百分比（单核 = 100）";
    broker_rss: "broker (RSS)", "Broker（RSS）";
    cpu_of_brokers_and_generator: "CPU of brokers and generator", "各 Broker 与负载生成器的 CPU";
    cpu_of_the_broker: "CPU of the broker", "Broker 的 CPU";
    memory_of_the_brokers: "Memory of the brokers", "各 Broker 的内存";
    default_broker: "default", "默认";
    messages_of_the_broker: "Messages in and out", "流入与流出的消息";
    sent_by_clients: "from clients", "来自客户端";
    to_clients: "to clients", "发往客户端";
    sent_by_bridges_of_others: "from bridges of others", "来自其他 Broker 的桥接";
    to_bridges: "by its bridges to others", "经自身桥接发往其他 Broker";
    what_bridged_messages_are:
        "To and from clients as these count them; by bridges as brokers count them, repetitions included.",
        "客户端消息由客户端计数；桥接消息由 Broker 计数，含重发。";
    round_trip_to_the_broker: "Round trip to the broker", "到 Broker 的往返时间";
    connections_of_the_broker: "Connections", "连接";
    of_its_bridges: "of its bridges, up", "自身桥接（已建立）";
    messages_that_wait_in_bridges: "Messages that wait in its bridges", "自身桥接中等待的消息";
    messages: "messages", "消息";
    waiting_or_in_flight: "waiting, or sent and not acknowledged", "等待中，或已发送未确认";
    memory_of_the_broker: "Memory of the broker", "Broker 的内存";
    bytes: "bytes", "字节";
    send_delay_of_the_generator: "Send delay of the generator", "负载生成器的发送延迟";
    messages_sent_late_or_never: "Messages sent late or never", "迟发或未发的消息";
    messages_in_a_second: "messages in a second", "每秒消息数";
    more_than_1_ms_late: "more than 1 ms late", "迟发超过 1 毫秒";
    never_sent: "never sent", "从未发送";
    virtual_users: "Virtual users", "虚拟用户";
    connected: "connected", "已连接";
    connect: "connect", "连接";
    subscribe: "subscribe", "订阅";
    publish: "publish", "发布";
    publish_acknowledged: "publish (acknowledged)", "发布（已确认）";
    publish_to_receive: "publish to receive", "从发布到接收";
    response_time_all_requests_mean: "Response time, all requests (mean)", "响应时间，全部请求（平均）";
    what_response_times_are:
        "Connect to CONNACK, SUBSCRIBE to SUBACK, PUBLISH to its last acknowledgement.",
        "CONNECT 到 CONNACK，SUBSCRIBE 到 SUBACK，PUBLISH 到最后一次确认。";
    response_time_connect: "Response time: connect", "响应时间：连接";
    response_time_publish: "Response time: publish", "响应时间：发布";
    response_time_subscribe: "Response time: subscribe", "响应时间：订阅";
    succeeded_mean: "succeeded, mean", "成功，平均";
    succeeded_p99: "succeeded, p99", "成功，p99";
    failed_mean: "failed, mean", "失败，平均";
    all_requests: "all requests", "全部请求";
    succeeded: "succeeded", "成功";
    failed_requests: "failed", "失败";
    overall_throughput: "Overall throughput", "总吞吐量";
    requests_per_second: "requests per second", "请求/秒";
    receive: "receive", "接收";
    throughput_succeeded: "Throughput, succeeded", "吞吐量（成功）";
    connections_lost: "connections lost", "断开的连接";
    throughput_failed: "Throughput, failed", "吞吐量（失败）";
    failures_per_second: "failures per second", "失败/秒";
    downloaded: "downloaded", "下载";
    uploaded: "uploaded", "上传";
    bytes_of_all_clients: "Bytes of all clients", "所有客户端的字节数";
    bytes_per_second: "bytes per second", "字节/秒";
    user: "user", "用户态";
    system: "system", "内核态";
    softirq: "softirq", "软中断";
    irq: "irq", "硬中断";
    nice: "nice", "低优先级";
    wait_io: "wait-IO", "等待 I/O";
    steal: "steal", "被虚拟化占用";
    idle: "idle", "空闲";
    cpu_usage: "CPU usage", "CPU 使用率";
    percent: "percent", "百分比";
    used: "used", "已用";
    buffered: "buffered", "缓冲";
    cached: "cached", "缓存";
    slab_reclaimable: "slab, reclaimable", "slab（可回收）";
    slab_not_reclaimable: "slab, not reclaimable", "slab（不可回收）";
    free_memory: "free", "空闲";
    memory_usage: "Memory usage", "内存使用";
    network_usage: "Network usage", "网络流量";
    disk_traffic: "Disk traffic", "磁盘流量";
    disk_operations: "Disk operations", "磁盘操作";
    operations_per_second: "operations per second", "操作/秒";
    disk_busy: "Disks busy", "磁盘忙碌率";
    disk_waits: "Time of a disk operation", "磁盘操作耗时";
    mean_of_an_operation: "mean, waiting included", "平均值（含等待）";
    disk_space: "Disk space", "磁盘空间";
    percent_used: "percent used", "已用百分比";
    n_1_min: "1 min", "1 分钟";
    n_5_min: "5 min", "5 分钟";
    n_15_min: "15 min", "15 分钟";
    cpu_load: "CPU load", "CPU 负载";
    runnable_tasks: "runnable tasks", "可运行任务数";
    segments_sent_again: "segments sent again", "重传的报文段";
    accept_queue_full: "accept queue full", "accept 队列已满";
    packets_dropped: "packets dropped", "丢弃的数据包";
    network_trouble: "Network trouble", "网络异常";
    events_per_second: "events per second", "事件/秒";
    for_a_core: "for a core", "等待 CPU";
    for_a_disk: "for a disk", "等待磁盘";
    for_memory: "for memory", "等待内存";
    tasks_that_waited: "Tasks that waited", "等待资源的任务";
    percent_of_the_time: "percent of the time", "时间占比（百分比）";
    what_round_trips_are:
        "PINGREQ to PINGRESP on a connection of its own: the time of network and event loop without routing.",
        "独立连接上 PINGREQ 到 PINGRESP 的时间：网络与事件循环本身的开销，不含任何路由。";
    least_and_greatest_value: "least and greatest value", "最小值与最大值";
}
