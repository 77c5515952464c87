package engine

import (
	"context"
	"errors"
	"testing"
)

func TestOnce(t *testing.T) {
	reads, failure := 0, errors.New("no answer")
	read := Once(func(context.Context) (int, error) {
		reads++
		if reads == 1 {
			return 0, failure
		}
		return reads, nil
	})
	if _, err := read(t.Context()); !errors.Is(err, failure) {
		t.Errorf("the first read: %v", err)
	}
	for range 3 {
		if n, err := read(t.Context()); n != 2 || err != nil {
			t.Errorf("what failed is read again, and then no more: %d, %v", n, err)
		}
	}
}

func TestOnceIsLeft(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	read := Once(func(context.Context) (int, error) { close(asked); <-answer; return 7, nil })
	first := make(chan int)
	go func() { n, _ := read(t.Context()); first <- n }()
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("who gives up while another reads: %v", err)
	}
	close(answer)
	if n := <-first; n != 7 {
		t.Errorf("who reads gets %d", n)
	}
}
