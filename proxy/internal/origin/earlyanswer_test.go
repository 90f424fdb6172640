package origin

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
)

// TestEarlyAnswer: an answer can be read after the reset that it came with has failed a Write.
func TestEarlyAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := keepAnswer(net.Dial("tcp", l.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	origin, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("first")); err != nil { // the origin does not read it, so that it resets the connection
		t.Fatal(err)
	}
	io.WriteString(origin, "answer")
	origin.Close()

	for underneath, n := conn.(earlyAnswerConn).Conn, 0; ; n++ {
		if _, err := underneath.Write([]byte("rest")); errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
			break
		} else if err != nil || n == 1_000_000 {
			t.Fatalf("got %v from a connection that was reset", err)
		}
	}
	if n, err := conn.Write([]byte("rest")); n != 4 || err != nil {
		t.Errorf("Write: got %d, %v, want 4, nil", n, err)
	}
	got := make([]byte, 100)
	if n, err := conn.Read(got); string(got[:n]) != "answer" {
		t.Errorf("Read: got %q, %v, want the answer", got[:n], err)
	}
}
