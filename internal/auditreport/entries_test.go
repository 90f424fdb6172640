package auditreport

import (
	"bufio"
	"io"
	"testing"
	"testing/synctest"

	"robotsgate/internal/audit"
	"robotsgate/internal/console"
)

// TestEntriesOfPipe: an entry is printed before standard input has ended.
func TestEntriesOfPipe(t *testing.T) {
	host, err := audit.ParseHostPattern("a.example")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) { // reports a deadlock
		in, input := io.Pipe()
		output, out := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			o := Options{Filter: &audit.Filter{Host: host}, JSON: true, File: []string{"-"}}
			ended <- List(console.Streams{In: in, Out: out, Err: io.Discard}, o)
		}()
		const entry = `{"time":"2026-01-02T03:04:05Z","id":"A","method":"GET","origin":"http://a.example","path":"/"}` + "\n"
		if _, err := io.WriteString(input, entry); err != nil {
			t.Fatal(err)
		}
		if got, err := bufio.NewReader(output).ReadString('\n'); got != entry {
			t.Errorf("got %q, %v", got, err)
		}
		input.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
