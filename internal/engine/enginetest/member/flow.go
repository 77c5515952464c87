//go:build linux

package main

import (
	"io"
	"net"
	"os"
	"time"
)

// swallow reads and discards all data sent to a port until it receives a stop signal.
func swallow(port string, stop <-chan os.Signal) error {
	listener, err := net.Listen("tcp", ":"+port) //nolint:noctx // closed by the stop signal
	if err != nil {
		return err
	}
	go func() {
		<-stop
		_ = listener.Close()
	}()
	for {
		connection, err := listener.Accept()
		if err != nil {
			return nil //nolint:nilerr // closed by the stop signal
		}
		go func() {
			_, _ = io.Copy(io.Discard, connection) // the sender may disconnect
			_ = connection.Close()
		}()
	}
}

// send sends 64 KiB to an address every tick until it receives a stop signal, and retries while nobody accepts the
// connection.
func send(address string, stop <-chan os.Signal) {
	const lump, tick = 64 << 10, 100 * time.Millisecond
	beat := time.NewTicker(tick)
	defer beat.Stop()
	var connection net.Conn
	for {
		select {
		case <-stop:
			return
		case <-beat.C:
		}
		var err error
		if connection == nil {
			connection, err = net.DialTimeout("tcp", address, time.Second) //nolint:noctx // has its own timeout
		}
		if err == nil {
			_, err = connection.Write(make([]byte, lump))
		}
		if err != nil {
			connection = nil
		}
	}
}
