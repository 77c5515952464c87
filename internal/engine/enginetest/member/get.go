//go:build linux

package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

// get writes the response of a URL.
func get(url string) error {
	response, err := http.Get(url) //nolint:gosec,noctx // the test's own URL
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	_, err = io.Copy(os.Stdout, response.Body)
	return err
}
