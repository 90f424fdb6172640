package client

import (
	"net"
	"testing"
)

// The prefix is not kept for as long as the connection.
func TestPrefixedKeepsNothing(t *testing.T) {
	client, gate := net.Pipe()
	defer client.Close()
	defer gate.Close()
	r := NewPrefixed(gate, []byte("hello"))
	p := make([]byte, 3)
	for _, want := range []string{"hel", "lo"} {
		if n, err := r.Read(p); string(p[:n]) != want || err != nil {
			t.Errorf("got %q, %v, want %q", p[:n], err, want)
		}
	}
	if r.first != nil {
		t.Error("the prefix is kept")
	}
}
