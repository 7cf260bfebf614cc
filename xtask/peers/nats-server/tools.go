//go:build tools

// Package natsserver names the program that is built here, so that Go keeps its modules listed.
package natsserver

import _ "github.com/nats-io/nats-server/v2"
