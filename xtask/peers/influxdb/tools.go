//go:build tools

// Package influxdb names the program that is built here, so that Go keeps its modules listed.
package influxdb

import _ "github.com/influxdata/influxdb/cmd/influxd"
