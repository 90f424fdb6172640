package body

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// A tunnel without traffic ends. Silence in one direction does not end it while the other
// direction is busy.
func TestRelayIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, gateClient := net.Pipe()
		gateOrigin, origin := net.Pipe()
		r := Relay{Idle: time.Minute, Silence: 15 * time.Minute}
		done := make(chan int64)
		go func() { done <- r.Between(gateClient, gateOrigin) }()
		start := time.Now()
		go io.Copy(io.Discard, client)
		for range 10 { // the client is silent for five minutes
			origin.Write([]byte("still here"))
			time.Sleep(30 * time.Second) // fake clock
		}
		if down := <-done; down != 100 {
			t.Errorf("%d bytes were carried, want 100", down)
		}
		if took := time.Since(start); took < 5*time.Minute || took > 7*time.Minute {
			t.Errorf("it ended after %v", took)
		}
		if _, err := origin.Write([]byte("x")); err == nil {
			t.Error("the origin's connection is still open")
		}
	})
}

// A halfCloser is a pipe whose half can be closed, like that of a TCP connection.
type halfCloser struct{ net.Conn }

func (halfCloser) CloseWrite() error { return nil }

// When one side has ended, the other may be silent for a minute.
func TestRelayHalfClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, gateClient := net.Pipe()
		gateOrigin, origin := net.Pipe()
		defer origin.Close()
		r := Relay{Idle: time.Hour, Silence: time.Hour}
		start := time.Now()
		client.Close()
		r.Between(gateClient, halfCloser{gateOrigin})
		if took := time.Since(start); took != time.Minute {
			t.Errorf("it ended after %v, want a minute", took)
		}
	})
}

// A client that reads slowly is not cut off like a silent one, but a client that reads nothing
// is cut off at last.
func TestRelaySlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, gateClient := net.Pipe()
		gateOrigin, origin := net.Pipe()
		r := Relay{Idle: time.Minute, Silence: 15 * time.Minute}
		done := make(chan int64)
		go func() { done <- r.Between(gateClient, gateOrigin) }()
		go origin.Write(make([]byte, 100<<10))
		start := time.Now()
		for range 3 {
			time.Sleep(10 * time.Minute) // fake clock
			io.ReadFull(client, make([]byte, 32<<10))
		}
		<-done
		if took := time.Since(start); took != 45*time.Minute {
			t.Errorf("it ended after %v", took)
		}
	})
}
