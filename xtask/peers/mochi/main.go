// A broker made of the Go library mochi-mqtt, to measure beside others: its defaults, anonymous
// clients, and on request the storage that its authors recommend.
package main

import (
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/hooks/storage/badger"
	"github.com/mochi-mqtt/server/v2/listeners"
)

func main() {
	address := flag.String("listen", "127.0.0.1:1883", "address to listen on")
	dir := flag.String("dir", "", "keep sessions in badger, below this folder")
	version := flag.Bool("version", false, "print the library's version and end")
	flag.Parse()
	if *version {
		println("mochi-mqtt " + mqtt.Version)
		return
	}

	server := mqtt.New(nil)
	check(server.AddHook(new(auth.AllowHook), nil))
	if *dir != "" {
		check(server.AddHook(new(badger.Hook), &badger.Options{Path: *dir}))
	}
	check(server.AddListener(listeners.NewTCP(listeners.Config{ID: "tcp", Address: *address})))
	check(server.Serve())

	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	<-signals
	check(server.Close())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
