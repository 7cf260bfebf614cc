#!/bin/sh
# collectd -> InfluxDB's collectd listener, on this machine and its loopback addresses only: the
# monitoring beside EMQX's guide, without Grafana. Everything it writes is in one folder.
#
#   chain.sh install        packages: collectd, and InfluxDB 1.8 (built by Go) or 1.6 (Debian's)
#   chain.sh up FOLDER      start both; collectd also sends to Tacho (collectd://127.0.0.1:25827)
#   chain.sh status FOLDER  are they running, and what is measured
#   chain.sh down FOLDER    stop both and remove the folder
#
# Environment: INFLUXDB_PORT (8086), COLLECTD_PORT (25826, InfluxDB's listener), TACHO_PORT (25827),
# INTERVAL (10, seconds), HOST_NAME (this machine's), INFLUXD (the program), TYPES_DB.
set -eu

INFLUXDB_VERSION=v1.8.3
PATH=$PATH:/usr/sbin:/usr/local/sbin:${GOPATH:-${HOME:-/root}/go}/bin

fail() {
  echo "chain.sh: $1" >&2
  exit 1
}

need() {
  command -v "$1" >/dev/null || fail "there is no $1: run '$0 install'"
}

install_packages() {
  apt-get install -y --no-install-recommends collectd-core curl
  if command -v influxd >/dev/null; then
    return
  fi
  if command -v go >/dev/null; then
    GOFLAGS=-mod=mod go install "github.com/influxdata/influxdb/cmd/influxd@$INFLUXDB_VERSION"
  else
    apt-get install -y --no-install-recommends influxdb
  fi
}

influxdb_config() {
  cat <<EOF
reporting-disabled = true
bind-address = "127.0.0.1:0"
[meta]
  dir = "$folder/influxdb/meta"
[data]
  dir = "$folder/influxdb/data"
  wal-dir = "$folder/influxdb/wal"
[monitor]
  store-enabled = false
[http]
  bind-address = "127.0.0.1:$influxdb_port"
  log-enabled = false
[[collectd]]
  enabled = true
  bind-address = "127.0.0.1:$collectd_port"
  database = "collectd"
  typesdb = "$types_db"
  batch-timeout = "1s"
EOF
}

collectd_config() {
  cat <<EOF
Hostname "$host_name"
FQDNLookup false
Interval $interval
BaseDir "$folder"
PIDFile "$folder/collectd.pid"
TypesDB "$types_db"
LoadPlugin logfile
LoadPlugin cpu
LoadPlugin memory
LoadPlugin load
LoadPlugin interface
LoadPlugin disk
LoadPlugin df
LoadPlugin protocols
LoadPlugin contextswitch
LoadPlugin network
<Plugin logfile>
  LogLevel notice
  File "$folder/collectd.log"
</Plugin>
<Plugin cpu>
  ReportByCpu false
  ReportByState true
  ValuesPercentage true
</Plugin>
<Plugin disk>
  Disk "/^(loop|ram|zram)/"
  IgnoreSelected true
</Plugin>
<Plugin df>
  FSType tmpfs
  FSType devtmpfs
  FSType overlay
  IgnoreSelected true
</Plugin>
<Plugin protocols>
  Value "/^Tcp:RetransSegs$/"
  Value "/^TcpExt:Listen(Overflows|Drops)$/"
</Plugin>
<Plugin network>
  Server "127.0.0.1" "$collectd_port"
  Server "127.0.0.1" "$tacho_port"
</Plugin>
EOF
}

# Runs a program in the background, with its process id in a file.
start() {
  name=$1
  shift
  nohup "$@" >"$folder/$name.out" 2>&1 </dev/null &
  echo $! >"$folder/$name.started"
}

# Is the process of that file still the program?
is_running() {
  pid=$(cat "$folder/$1.started" 2>/dev/null) || return 1
  [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$1" ]
}

wait_for_influxdb() {
  tries=0
  until curl -fs "http://127.0.0.1:$influxdb_port/ping" >/dev/null; do
    is_running influxd || fail "InfluxDB ended: $(tail -n 3 "$folder/influxd.out")"
    tries=$((tries + 1))
    [ "$tries" -lt 300 ] || fail "InfluxDB does not answer on port $influxdb_port"
    sleep 0.2
  done
}

up() {
  [ ! -e "$folder" ] || [ -z "$(ls -A "$folder")" ] || fail "$folder is not empty"
  need collectd
  need curl
  influxd=${INFLUXD:-influxd}
  need "$influxd"
  [ -r "$types_db" ] || fail "there is no $types_db: set TYPES_DB"
  mkdir -p "$folder"
  folder=$(cd "$folder" && pwd)
  influxdb_config >"$folder/influxdb.conf"
  collectd_config >"$folder/collectd.conf"
  start influxd "$influxd" run -config "$folder/influxdb.conf"
  wait_for_influxdb
  for database in collectd tacho; do
    curl -fs -XPOST "http://127.0.0.1:$influxdb_port/query" \
      --data-urlencode "q=CREATE DATABASE $database" >/dev/null
  done
  start collectd "$(command -v collectd)" -f -C "$folder/collectd.conf"
  sleep 0.5
  is_running collectd || fail "collectd ended: $(tail -n 3 "$folder/collectd.out")"
  echo "InfluxDB: http://127.0.0.1:$influxdb_port, databases collectd and tacho"
  echo "collectd: every $interval s, also to collectd://127.0.0.1:$tacho_port"
}

status() {
  for name in influxd collectd; do
    is_running "$name" && echo "$name runs" || fail "$name does not run"
  done
  curl -fs -G "http://127.0.0.1:$influxdb_port/query" --data-urlencode db=collectd \
    --data-urlencode "q=SHOW MEASUREMENTS"
}

down() {
  [ -f "$folder/influxdb.conf" ] || fail "$folder was not made by '$0 up'"
  for name in collectd influxd; do
    if is_running "$name"; then
      kill "$pid"
      tries=0
      while is_running "$name" && [ "$tries" -lt 100 ]; do
        tries=$((tries + 1))
        sleep 0.1
      done
      ! is_running "$name" || kill -9 "$pid"
    fi
  done
  rm -rf "$folder"
}

influxdb_port=${INFLUXDB_PORT:-8086}
collectd_port=${COLLECTD_PORT:-25826}
tacho_port=${TACHO_PORT:-25827}
interval=${INTERVAL:-10}
host_name=${HOST_NAME:-$(cat /proc/sys/kernel/hostname)}
types_db=${TYPES_DB:-/usr/share/collectd/types.db}

case "${1:-}" in
install) install_packages ;;
up | status | down)
  folder=${2:-}
  [ -n "$folder" ] || fail "name a folder: $0 $1 FOLDER"
  "$1"
  ;;
*)
  sed -n '2,12s/^# \{0,1\}//p' "$0"
  exit 1
  ;;
esac
