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

// workOff takes items off a list, and adds each to another one when it is done, until it is told to stop.
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
			<-time.After(itemTime) // who is told to stop does what was begun
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
