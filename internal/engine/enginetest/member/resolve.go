//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// resolve writes the IP addresses of an address's host, once there are any.
func resolve(address string, stop <-chan os.Signal) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	for {
		found, err := net.LookupHost(host) //nolint:noctx // Docker's own DNS answers at once
		if err == nil {
			fmt.Fprintln(os.Stdout, strings.Join(found, " "))
			return nil
		}
		select {
		case <-stop:
			return errors.Join(errors.New("told to stop"), err)
		case <-time.After(look):
		}
	}
}
