//go:build linux

package main

import (
	"io"
	"net"
	"os"
	"time"
)

// swallow takes all that is sent to a port, until it is told to stop.
func swallow(port string, stop <-chan os.Signal) error {
	listener, err := net.Listen("tcp", ":"+port) //nolint:noctx // until it is told to stop
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
			return nil //nolint:nilerr // it was told to stop
		}
		go func() {
			_, _ = io.Copy(io.Discard, connection) // who sends may go
			_ = connection.Close()
		}()
	}
}

// send sends a lump of bytes to an address every tick until it is told to stop, and tries again while nobody takes it.
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
			connection, err = net.DialTimeout("tcp", address, time.Second) //nolint:noctx // bounded by itself
		}
		if err == nil {
			_, err = connection.Write(make([]byte, lump))
		}
		if err != nil {
			connection = nil
		}
	}
}
