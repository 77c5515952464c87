//go:build linux

package main

import (
	"errors"
	"os"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// itemTime is how long an item of a list takes.
const itemTime = 20 * time.Millisecond

// workOff pops items from a list, and pushes each to another one when it is done, until it receives a stop signal.
func workOff(list string, stop <-chan os.Signal) error {
	address, key, _ := strings.Cut(list, "/")
	client, err := redis.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		item, err := redis.String(client.Do("LPOP", key))
		if err == nil {
			<-time.After(itemTime) // an item in progress is finished despite a stop signal
			_, err = client.Do("RPUSH", key+"-done", item)
		}
		if err != nil && !errors.Is(err, redis.ErrNil) {
			return err
		}
		select {
		case <-stop:
			return nil
		case <-time.After(itemTime / 10):
		}
	}
}
